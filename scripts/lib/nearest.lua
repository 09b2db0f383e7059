-- SPDX-License-Identifier: GPL-2.0-only
--- Suggestions for misspelled names: bindings/base/nearest.lua under its public name.
return require 'bindings.base.nearest'
