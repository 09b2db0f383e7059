-- SPDX-License-Identifier: GPL-2.0-only
--- USDT probes of files: bindings/select/usdt.lua under its public name.
return require 'bindings.select.usdt'
