-- SPDX-License-Identifier: GPL-2.0-only
--- All events that -e takes on this machine: bindings/select/catalog.lua under its public name.
return require 'bindings.select.catalog'
