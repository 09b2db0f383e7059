-- SPDX-License-Identifier: GPL-2.0-only
--- Calls every C function that a script can reach with senseless values: in start(), in a handler, and at the end with
--- what was kept of events that are no longer valid. Each call may raise an error or not, but must not crash. The names
--- of the functions are read from the files, so that new ones are called too.
---   profscript garbage.lua --top FOLDER --input sched.data
local array, hist, intern = require 'lib.array', require 'lib.hist', require 'lib.intern'
local objects, pairs_of = require 'lib.objects', require 'lib.pairs'

-- Functions that end the run, wait, or write files.
local LEFT_OUT = { stop = true, bpf = true, write = true }

-- Modules of functions, and the files that define them; without those that write to files or the terminal.
local MODULES = {
  calltree = 'scripts/lib/calltree.lua', ['engines.condition'] = 'scripts/lib/engines/condition.lua',
  datasrc = 'scripts/lib/datasrc.lua',
  detail = 'scripts/lib/detail.lua', fs = 'scripts/lib/fs.lua', glob = 'bindings/base/glob.lua',
  ['engines.kcore'] = 'scripts/lib/engines/kcore.lua', kvm = 'scripts/lib/kvm.lua', latency = 'scripts/lib/latency.lua',
  nearest = 'bindings/base/nearest.lua', registers = 'scripts/lib/registers.lua',
  relation = 'scripts/lib/relation.lua', ['engines.symbolize'] = 'scripts/lib/engines/symbolize.lua',
  table = 'bindings/base/table.lua', text = 'bindings/base/text.lua', units = 'bindings/base/units.lua',
  ['engines.usdt'] = 'bindings/select/usdt.lua', ['engines.x86store'] = 'scripts/lib/engines/x86store.lua',
}

--- Names of the functions of a table or class that a file defines.
local function names_in(path, owner, dot)
  local file, found = assert(io.open(path)), {}
  for line in file:lines() do
    local name = line:match('^ *function ' .. owner .. '[.:]([%w_]+)%(')
    if name and not LEFT_OUT[name] and (dot or name ~= 'new') then found[#found + 1] = name end
  end
  file:close()
  assert(#found > 0, path)
  return found
end

return {
  summary = 'Call everything with garbage',
  options = { top = { type = 'string', required = true, help = 'the source tree' } },

  start = function(opt, out, session)
    local event = opt.event[1][1]
    local function new_intern()
      local keys = intern.new(2, 100)
      keys.id(1, 2)
      return keys
    end
    local counts = session.count({})
    local things = {
      { out, 'bindings/print/output.lua', 'Output' },
      { hist.new(), 'bindings/base/hist.lua', 'Hist' },
      { hist.set(3), 'bindings/base/hist.lua', 'HistSet' },
      { new_intern(), 'bindings/base/intern.lua', 'Keys' },
      { objects.new(100), 'bindings/base/objects.lua', 'Objects' },
      { session.slots(100), 'bindings/session/slots.lua', 'Slots' },
      { counts, 'bindings/session/counts.lua', 'Counts' },
      { pairs_of.new { stages = opt.event, cycle = true }, 'bindings/pairs/matcher.lua', 'Feed' },
      { require('lib.detail').new({ before = 0, after = 0, hide = 0 }, { out = out, session = session }),
        'scripts/lib/detail.lua', 'Details' },
      { event, 'bindings/view/public_event.lua', 'Event' },
    }
    local owners = { table = 'tables' }
    for name, path in pairs(MODULES) do
      things[#things + 1] = { require('lib.' .. name), path, owners[name] or name:match '[^.]*$', dot = true }
    end
    for _, path in ipairs { 'run/session_api', 'session/expressions', 'session/kept', 'session/names',
      'session/request', 'session/stacks', 'session/times' } do
      things[#things + 1] = { session, ('bindings/%s.lua'):format(path), 'api', dot = true }
    end
    for _, thing in ipairs(things) do thing.names = names_in(opt.top .. '/' .. thing[2], thing[3], thing.dot) end
    local functions = { -- that take no self
      new_intern().id, array.new, hist.new, hist.set, intern.new, objects.new, pairs_of.new,
      session.expression(event, 'common_pid').value, session.number(event, 'common_pid'),
      session.condition('data', 'data > 1'),
    }
    local slots, a = session.slots(10), array.new(10)
    local kept, kept_pairs, calls = {}, {}, 0

    local function try(f, ...)
      calls = calls + 1
      pcall(f, ...)
    end

    --- Each function with each value in each of its first arguments.
    local function call_all(values)
      local n = #values
      for i = 1, n do
        local one, two, three = values[i], values[i % n + 1], values[(i + 7) % n + 1]
        for _, thing in ipairs(things) do
          local self = thing[1]
          for _, name in ipairs(thing.names) do
            local f = self[name]
            if not thing.dot then try(f, self, one, two, three, one) end
            try(f, one, two, three, one)
            try(f, two, one)
            try(f, one)
          end
        end
        for _, f in ipairs(functions) do
          try(f, one, two, three)
          try(f, one)
        end
        try(function() a[one] = two end)
        try(function() return a[one] end)
        try(function() return one[two], one + three, #one, one.x, one[1e9] end)
        try(function() one[two] = three end)
        try(function() one[1e9] = 1 end)
        try(function() return one._stack, one._comm, one.next_comm, one.prev_pid, one:u64 'prev_state', one:keep() end)
        try(function() return one.ns, one.first_event, one.first_event.next_comm, one[1] end)
      end
    end

    local plain = {
      -1, 0, 1.5, 1e6, 1e13, 0 / 0, math.huge, -2 ^ 63, 5LL, 2 ^ 64 - 1, 0xffffffffffffffffULL, '', 'x', 'regs_user',
      true, {}, { 1 }, { class = 8 }, print, out, session, event, hist.new(), hist.set(2), new_intern(), objects.new(5),
      array.new(3), slots, coroutine.create(print), io.stderr,
    }
    local function values(...)
      local list = { ... }
      for _, value in ipairs(plain) do list[#list + 1] = value end
      return list
    end
    call_all(values())

    local seen = 0
    return {
      pairs_of.new {
        stages = opt.event, cycle = true, keep = true,
        pair = function(p, second)
          if #kept_pairs > 40 then return end
          kept_pairs[#kept_pairs + 1] = p
          kept[#kept + 1], kept[#kept + 2] = second, p.first_event
          if #kept_pairs == 20 then call_all(values(p, second, p.first_event)) end
        end,
      },
      [opt.event] = function(ev)
        seen = seen + 1
        if seen % 40 == 0 then
          kept[#kept + 1] = ev
          slots:put(seen / 40 % 10, ev)
          kept[#kept + 1] = slots:get(seen / 40 % 10)
        end
        if seen == 100 then call_all(values(ev, ev:keep(), slots:get(1))) end
      end,
      stop = function()
        slots:drop(1)
        collectgarbage()
        for _, p in ipairs(kept_pairs) do call_all { p, 5 } end
        for i = 1, #kept, 5 do call_all { kept[i], nil } end
        io.stderr:write(calls > 50000 and 'called enough\n' or calls .. ' calls\n')
      end,
    }
  end,
}
