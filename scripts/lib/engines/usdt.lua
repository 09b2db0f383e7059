-- SPDX-License-Identifier: GPL-2.0-only
--- USDT probes: bindings/select/usdt.lua under its public name.
return require 'bindings.select.usdt'
