-- SPDX-License-Identifier: GPL-2.0-only
--- Checks of scripts: bindings/command/check_script.lua under its public name.
return require 'bindings.command.check_script'
