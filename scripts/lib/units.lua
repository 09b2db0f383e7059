-- SPDX-License-Identifier: GPL-2.0-only
--- Units: bindings/base/units.lua under its public name.
return require 'bindings.base.units'
