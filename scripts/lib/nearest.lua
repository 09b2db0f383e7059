-- SPDX-License-Identifier: GPL-2.0-only
--- The nearest valid name to a misspelled one: bindings/base/nearest.lua under its public name.
return require 'bindings.base.nearest'
