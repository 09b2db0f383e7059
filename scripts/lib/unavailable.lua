-- SPDX-License-Identifier: GPL-2.0-only
--- Ends start() because this kernel or machine lacks what the profiler takes: exit status 3.
---@type fun(message: string, ...: any) a format and what it prints, or a text
return require('bindings.base.failure').unavailable
