-- SPDX-License-Identifier: GPL-2.0-only
--- Histograms: bindings/base/hist.lua under its public name.
return require 'bindings.base.hist'
