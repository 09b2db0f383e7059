-- SPDX-License-Identifier: GPL-2.0-only
--- Runs the profscript command with LuaJIT's report of traces (jit.v) in a file, without the traces of reports, which
--- run once:
---   ./profscript --lua tests/tools/jitv.lua OUT NAME ARG...
local words = { ... }
local attach = jit.attach

--- Whether the run ends an interval, or has ended. All else in these files runs for each batch.
local function is_report()
  local level = 3
  repeat
    local info = debug.getinfo(level, 'nS')
    local file, name = info and info.source:match 'bindings/run/(%l+)%.lua$', info and info.name
    if file == 'loop' and (name == 'tick' or name == 'call') or file == 'ending' and name ~= 'go' then return true end
    level = level + 1
  until not info
end

jit.attach = function(callback, what) -- luacheck: ignore 122
  if what ~= 'trace' then return attach(callback, what) end
  return attach(function(...)
    if not is_report() then callback(...) end
  end, what)
end

require('jit.v').on(table.remove(words, 1))
return require 'bindings.init'(unpack(words))
