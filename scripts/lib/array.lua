-- SPDX-License-Identifier: GPL-2.0-only
--- Arrays of numbers: bindings/base/array.lua under its public name.
return require 'bindings.base.array'
