-- SPDX-License-Identifier: GPL-2.0-only
--- Symbols of addresses in a file: bindings/command/symbolize.lua under its public name.
return require 'bindings.command.symbolize'
