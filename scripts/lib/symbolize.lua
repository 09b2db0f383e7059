-- SPDX-License-Identifier: GPL-2.0-only
--- Symbolizer: bindings/command/symbolize.lua under its public name.
return require 'bindings.command.symbolize'
