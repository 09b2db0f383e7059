-- SPDX-License-Identifier: GPL-2.0-only
--- Durations, sizes and times as text: bindings/base/units.lua under its public name.
return require 'bindings.base.units'
