-- SPDX-License-Identifier: GPL-2.0-only
--- New scripts: bindings/command/new_script.lua under its public name.
return require 'bindings.command.new_script'
