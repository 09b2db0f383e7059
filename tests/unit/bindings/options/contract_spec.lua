-- SPDX-License-Identifier: GPL-2.0-only
local contract = require 'bindings.options.contract'
local facade = require 'bindings.base.facade'
local nearest = require 'bindings.base.nearest'

--- Runs a chunk as a script file of that name, so that messages have its lines.
local function run(text)
  return assert(load(text, '@demo.lua'))()
end

local known = {
  has = function(name) return name == 'sched:sched_switch' or name == 'sched:sched_wakeup' end,
  names = function() return { 'sched:sched_switch', 'sched:sched_wakeup' } end,
  words = { ['task-state'] = true, wk = true },
}

local function start() end

describe('handlers', function()
  local function refusal(handlers)
    local result, message = contract.check(start, handlers, known)
    assert.is_nil(result)
    return message
  end

  it('are either of events or of the run', function()
    local function f() end
    local result = assert(contract.check(start, {
      ['sched:sched_wakeup'] = f,
      ['sched:sched_switch'] = f,
      ['task-state'] = f,
      wk = f,
      interval = f,
      lost = f,
      comm = f,
      fork = f,
      exit = f,
      stop = f,
    }, known))
    local selectors = {}
    for i, event in ipairs(result.events) do
      assert.equal(f, event.handler)
      selectors[i] = event.selector
    end
    assert.same({ 'sched:sched_switch', 'sched:sched_wakeup', 'task-state', 'wk' }, selectors)
    assert.same({ interval = f, lost = f, comm = f, fork = f, exit = f, stop = f }, result.life)
  end)

  it('may be for events, and for the lists in options', function()
    local f, g = function() end, function() end
    local a, b, c = { class = 8, name = 'a:a' }, { class = 9, name = 'b:b' }, { class = 10, name = 'c:c' }
    local result = assert(contract.check(start, {
      [{ { b, c }, { a } }] = f,
      [a] = g,
      [{}] = g,
      [{ 'sched:sched_wakeup', 'sched:sched_switch' }] = f,
      wk = g,
    }, known))
    assert.same({
      { selector = 'sched:sched_wakeup', handler = f },
      { selector = 'sched:sched_switch', handler = f },
      { selector = 'wk', handler = g },
      { event = a, handler = g },
      { event = b, handler = f },
      { event = c, handler = f },
      { event = a, handler = f },
    }, result.events)
    assert.same({}, result.life)
  end)

  it('work together with consumers of whole batches', function()
    local first, second = { feed = function() end }, { feed = function() end }
    local public = facade.class('consumer', {}, {})
    local result = assert(contract.check(start, { public(first), public(second), stop = start }, known))
    assert.same({ first, second }, result.consumers)
    assert.same({}, result.events)
  end)

  it("of a script are polled, and see neither batches nor the run", function()
    local mine = { open = function() end, feed = function() end, poll = function(self) return self.done end, done = 5 }
    local result = assert(contract.check(start, { mine }, known))
    assert.same({ 'poll' }, nearest.keys(result.consumers[1]))
    assert.equal(5, result.consumers[1].poll())
  end)

  it('leave filters, globs and lists to the selector parser', function()
    local function f() end
    local handlers = { ['sched:*'] = f, ['no:such/x>1/'] = f, ['a:b,c:d'] = f, ['profile/-F 50/'] = f }
    assert.equal(4, #assert(contract.check(start, handlers, known)).events)
  end)

  it('with a wrong name are refused at their line', function()
    assert.equal("demo.lua:3: unknown handler 'intervall'; did you mean 'interval'?",
      refusal(run 'return {\n  stop = function() end,\n  intervall = function() end,\n}'))
    assert.equal("demo.lua:1: no such event 'sched:sched_swich'; did you mean 'sched:sched_switch'?",
      refusal(run "return { ['sched:sched_swich'] = function() end }"))
    assert.equal("demo.lua:1: unknown handler 'task-stat'; did you mean 'task-state'?",
      refusal(run "return { ['task-stat'] = function() end }"))
    assert.equal("demo.lua:1: unknown handler 'sched_switch': a tracepoint is written as system:name; did you mean "
      .. "'sched:sched_switch'?", refusal(run 'return { sched_switch = function() end }'))
  end)

  it('that are not functions are refused at the line of start', function()
    local here = ('%s:%d'):format(debug.getinfo(start, 'S').source:sub(2), debug.getinfo(start, 'S').linedefined)
    assert.equal(here .. ": handler 'lost' is a boolean, not a function", refusal { lost = true })
    assert.equal(here .. ": handler 'a:a' is a table, not a function", refusal { [{ class = 8, name = 'a:a' }] = {} })
    assert.equal(here .. ': entry 1 of the handlers is a function, but has no event as its key',
      refusal { function() end })
    assert.equal(here .. ': the key of a handler is a boolean, not an event', refusal { [true] = function() end })
    assert.equal(here .. ': start returned nothing, not a table of handlers', refusal(nil))
  end)
end)

describe('fields', function()
  local switch = { name = 'sched:sched_switch', fields = { 'next_pid', 'prev_pid', '_time' } }
  local wakeup = { name = 'sched:sched_wakeup', fields = { 'pid', '_time' } }
  local methods = { 'keep' }

  --- The message about a handler written as Lua text, lines joined by a bar.
  local function check(text, events)
    local message = contract.check_fields(run('return ' .. text), events or { switch }, methods)
    return message and message:gsub('\n', '|')
  end

  it('that exist are accepted', function()
    assert.is_nil(check 'function(ev) return ev.next_pid, ev._time, ev:keep() end')
    assert.is_nil(check 'function() return 1 end')
  end)

  it('that do not exist are reported with line and nearest name', function()
    assert.equal("demo.lua:2: event sched:sched_switch has no field 'next_pdi'; did you mean 'next_pid'?",
      check 'function(ev)\n  return ev.next_pdi\nend')
    assert.equal("demo.lua:1: event sched:sched_switch has no field 'flags'", check 'function(ev) return ev.flags end')
    assert.equal("demo.lua:1: event sched:sched_switch has no field 'kepp'; did you mean 'keep'?",
      check 'function(ev) return ev:kepp() end')
  end)

  it('are all reported, each line once', function()
    assert.equal("demo.lua:1: event sched:sched_switch has no field 'aaa'|"
      .. "demo.lua:2: event sched:sched_switch has no field 'bbb'",
      check 'function(ev) local a = ev.aaa + ev.aaa\n  return a + ev.bbb end')
  end)

  it('are found in branches, loops and arguments', function()
    local tail = " event sched:sched_switch has no field 'zz'"
    assert.equal('demo.lua:1:' .. tail, check 'function(ev) if ev.zz > 1 then return 1 end end')
    assert.equal('demo.lua:1:' .. tail, check 'function(ev) for i = 1, ev.zz do print(i) end end')
    assert.equal('demo.lua:1:' .. tail, check 'function(ev) return print("x", ev.zz) end')
    assert.equal('demo.lua:1:' .. tail, check 'function(ev, ...) return ev["zz"], ... end')
  end)

  it('of other tables are ignored', function()
    assert.is_nil(check 'function(ev) local t = { zz = 1 } return t.zz + ev.next_pid end')
    assert.is_nil(check 'function(ev, other) return other.zz, ev.next_pid.zz end')
    assert.is_nil(check 'function(other) local function f(ev) return ev.zz end return f end')
    assert.is_nil(check 'function(ev) do local ev = { zz = 1 } return function() return ev.zz end end end')
  end)

  it('are not checked when the parameter is assigned', function()
    assert.is_nil(check 'function(ev) ev = { zz = 1 } return ev.zz end')
    assert.is_nil(check 'function(ev) ev = ev.next_pid or ev return ev.zz end')
    assert.is_nil(check 'function(ev) local function set() ev = { zz = 1 } end set() return ev.zz end')
    assert.is_nil(check 'function(ev) local function f() return function() ev = 1 end end return f, ev.zz end')
  end)

  it('are checked in closures that hold the event', function()
    assert.equal("demo.lua:2: event sched:sched_switch has no field 'zz'",
      check 'function(ev) local function f()\n  return ev.zz end return f() end')
    assert.equal("demo.lua:1: event sched:sched_switch has no field 'next_pdi'; did you mean 'next_pid'?",
      check 'function(ev) return function() return function() return ev:keep(), ev.next_pdi end end end')
    assert.equal("demo.lua:1: event sched:sched_switch has no field 'zz'",
      check 'function(ev) return function() return 1 end, function(x) return x.a, ev:zz(x) end end')
    assert.is_nil(check 'function(ev) local t = { zz = 1 } return function() return t.zz, ev.next_pid, t.zz end end')
  end)

  it('of a handler for several events may belong to any of them', function()
    local both = { switch, wakeup }
    assert.is_nil(check('function(ev) return ev.pid, ev.next_pid end', both))
    assert.equal("demo.lua:1: events sched:sched_switch, sched:sched_wakeup have no field 'zz'",
      check('function(ev) return ev.zz end', both))
  end)

  it('are not checked in a C function', function()
    assert.is_nil(contract.check_fields(print, { switch }, methods))
  end)

  it('are found in code that has been compiled', function()
    local handler = run 'return function(ev) local n = 0 for i = 1, 100 do n = n + (ev.zz or i) end return n end'
    for _ = 1, 200 do handler {} end
    local message = contract.check_fields(handler, { switch }, methods)
    assert.equal("demo.lua:1: event sched:sched_switch has no field 'zz'", message)
  end)
end)

describe('strings', function()
  it('are found by the names in method calls', function()
    local fn = run [[
      local function deep(ev) return ev:string('inner') end
      return function(ev, name)
        local format = string.format('%s', 'outer')
        return ev:string 'filename', deep(ev), ev:string(name), ev.string, format
      end]]
    assert.same({ 'filename' }, contract.strings(fn))
  end)

  it('must be those of an event', function()
    local handler = run "return function(ev) return ev:string 'filenam', ev:u64 'what' end"
    local events = { { name = 'a:b', fields = {}, strings = { filename = true }, others = { 'filename', 'path' } } }
    local message = contract.check_fields(handler, events, { 'string', 'u64' })
    assert.equal("demo.lua:1: event a:b has no string 'filenam'; did you mean 'filename'?", message)
    events[1].no_strings = 'because'
    assert.equal("demo.lua:1: event a:b has no string 'filenam': because",
      contract.check_fields(handler, events, { 'string', 'u64' }))
    events[1].strings.filenam = true
    assert.is_nil(contract.check_fields(handler, events, { 'string', 'u64' }))
  end)
end)
