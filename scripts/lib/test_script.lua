-- SPDX-License-Identifier: GPL-2.0-only
--- Tests of scripts: bindings/command/test_script.lua under its public name.
return require 'bindings.command.test_script'
