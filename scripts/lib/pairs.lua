-- SPDX-License-Identifier: GPL-2.0-only
--- Pairs of events: bindings/pairs/matcher.lua under its public name.
return require 'bindings.pairs.matcher'
