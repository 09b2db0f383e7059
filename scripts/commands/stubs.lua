-- SPDX-License-Identifier: GPL-2.0-only
--- Writes definitions for editors.
local stubs = require 'lib.engines.stubs'

return {
  summary = 'Write definitions of events and the API for editors',
  description = [[
Writes into FOLDER (default: the current one) what an editor with the Lua
language server (LuaLS) needs to complete and check scripts: the functions of
lib.*, session and out, the options, and the events of this kernel with their
fields. Also writes .luarc.json, which makes LuaLS use them, and .luacheckrc
with the globals of scripts, unless these exist.

Annotate a script's table with ---@type Profiler, and the table of handlers with
---@type Handlers, and the editor knows the fields of ev in each handler.]],
  examples = {
    { 'profscript stubs', 'write the definitions of all events of this kernel' },
    { "profscript stubs -e 'sched:*,block:*' ~/scripts", 'only of these, into another folder' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  options = {
    events = { short = 'e', type = 'string', multiple = true, argument = 'EVENT', help = 'only these events' },
    input = {},
  },
  positional = {
    { name = 'folder', required = false, help = 'folder of the scripts' },
  },

  start = function(opt, out)
    local settings = { name = 'stubs', events = opt.events or {}, input = opt.input }
    local done, message = stubs.write(opt.folder or '.', settings)
    if not done then error(message, 0) end
    out:write(('%d events; written: %s\n'):format(done.events, table.concat(done.written, ' ')))
    for _, path in ipairs(done.kept) do
      out:warn(('stubs: %s exists already and is kept; see docs/scripting.md for what it should contain'):format(path))
    end
  end,
}
