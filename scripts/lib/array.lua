-- SPDX-License-Identifier: GPL-2.0-only
--- Arrays: bindings/base/array.lua under its public name.
return require 'bindings.base.array'
