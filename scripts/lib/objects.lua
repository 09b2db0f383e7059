-- SPDX-License-Identifier: GPL-2.0-only
--- Objects by address: bindings/base/objects.lua under its public name.
return require 'bindings.base.objects'
