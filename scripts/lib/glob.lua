-- SPDX-License-Identifier: GPL-2.0-only
--- Shell patterns as Lua patterns: bindings/base/glob.lua under its public name.
return require 'bindings.base.glob'
