-- SPDX-License-Identifier: GPL-2.0-only
--- Keys as small integers: bindings/base/intern.lua under its public name.
return require 'bindings.base.intern'
