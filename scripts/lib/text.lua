-- SPDX-License-Identifier: GPL-2.0-only
--- Text of outside as it may be printed: bindings/base/text.lua under its public name.
return require 'bindings.base.text'
