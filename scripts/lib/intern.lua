-- SPDX-License-Identifier: GPL-2.0-only
--- Interned keys: bindings/base/intern.lua under its public name.
return require 'bindings.base.intern'
