-- SPDX-License-Identifier: GPL-2.0-only
--- Tables for out:table(): bindings/base/table.lua under its public name.
return require 'bindings.base.table'
