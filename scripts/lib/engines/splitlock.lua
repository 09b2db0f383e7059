-- SPDX-License-Identifier: GPL-2.0-only
--- Test load for split locks: bindings/base/splitlock.lua under its public name.
return require 'bindings.base.splitlock'
