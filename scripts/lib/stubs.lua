-- SPDX-License-Identifier: GPL-2.0-only
--- Definition files for editors: bindings/command/stubs.lua under its public name.
return require 'bindings.command.stubs'
