-- SPDX-License-Identifier: GPL-2.0-only
--- Runs the profscript command with LuaJIT's report of traces in a file:
---   ./profscript --lua tests/jitv.lua OUT NAME ARG...
local words = { ... }
require('jit.v').on(table.remove(words, 1))
return assert(loadfile(arg.data_dir .. '/bindings/init.lua'))(unpack(words))
