-- SPDX-License-Identifier: GPL-2.0-only
--- Lists of CPUs: bindings/base/cpu_list.lua under its public name.
return require 'bindings.base.cpu_list'
