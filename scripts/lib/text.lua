-- SPDX-License-Identifier: GPL-2.0-only
--- Escaping of untrusted text: bindings/base/text.lua under its public name.
return require 'bindings.base.text'
