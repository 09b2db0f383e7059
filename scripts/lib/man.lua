-- SPDX-License-Identifier: GPL-2.0-only
--- Manual pages: bindings/command/man.lua under its public name.
return require 'bindings.command.man'
