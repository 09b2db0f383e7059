-- SPDX-License-Identifier: GPL-2.0-only
--- Shell patterns: bindings/base/glob.lua under its public name.
return require 'bindings.base.glob'
