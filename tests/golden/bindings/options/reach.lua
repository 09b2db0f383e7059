-- SPDX-License-Identifier: GPL-2.0-only
--- Walks over all tables that a script can reach from what it is given, and prints the pointers and C arrays among
--- them: anything that a wrong index or sum leads out of.
---   profscript reach.lua --input sched.data
local MAX_DEPTH = 12

return {
  summary = 'Look for C memory',
  options = {},

  start = function(opt, out, session)
    local event, tables, seen = opt.event[1][1], 0, {}

    local function walk(value, path, depth)
      if type(value) == 'cdata' then
        if not tonumber(value) and pcall(function() return value + 1 end) then
          out:printf('%s is a %s\n', path, tostring(value))
        end
      elseif type(value) == 'table' and not seen[value] and depth < MAX_DEPTH then
        seen[value], tables = true, tables + 1
        for name, one in next, value do walk(one, ('%s.%s'):format(path, tostring(name)), depth + 1) end
        walk(getmetatable(value), path .. ' metatable', depth + 1)
      end
    end

    local details = require('lib.detail').new({ before = 0, after = 1e9, hide = 0 }, { out = out, session = session })
    local shown = 0
    local things = {
      opt = opt, out = out, session = session, event = event, fields = event.fields,
      counts = session.count { event }, slots = session.slots(4),
      expression = session.expression(event, 'common_pid'), details = details,
      keys = require('lib.intern').new(1, 10), counter = require('lib.counter').new { 'a' },
      stacks = require('lib.stacks').new(session, { 'a' }), calltree = require('lib.calltree').new {},
      stores = require('lib.engines.stores').new(session, opt),
      symbolizer = require('lib.engines.symbolize').new '/proc/self/exe',
      screen = require('lib.screen').new(out, { columns = {} }, { 'a' }),
    }
    local found = require('lib.pairs').new {
      stages = opt.event, cycle = true, keep = true, details = details,
      pair = function(p, second)
        shown = shown + 1
        if shown < 10 then details:show(p, second) end
        things.pair, things.second, things.first = p, second, p.first_event
      end,
    }
    local nested = require('lib.engines.nested').run({ name = 'reach', opt = { impl = 'call', verbose = 0 }, out = out,
      session = session, events = { functions = { { event, event } }, others = {} } },
      { before = 0, after = 0, hide = 0 })
    things.pairs, things.nested = found, nested

    local function walk_all()
      seen = {}
      for name, thing in pairs(things) do walk(thing, name, 0) end
    end
    walk_all()
    return {
      found, nested[1],
      [event] = function(ev)
        things.frames, things.kept = session.frames(0), ev:keep()
        if shown == 20 then walk_all() end
      end,
      stop = function()
        walk_all()
        io.stderr:write(('%d tables\n'):format(tables))
      end,
    }
  end,
}
