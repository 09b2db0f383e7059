-- SPDX-License-Identifier: GPL-2.0-only
local bit = require 'bit'
local handler_code = require 'bpf.handlers.code'
local join = require 'lib.join'

local term

--- Returns the text of a condition.
local function condition_text(one)
  return one.op and ('%s %s %s'):format(term(one.left), one.op, term(one.right)) or term(one.left)
end

function term(one)
  if one.finish then return ('result %d of %s'):format(one.result, one.finish.name) end
  if one.choice then
    return ('(%s ? %s : %s)'):format(condition_text(one.choice), term(one.terms[1]), term(one.terms[2]))
  end
  if one.field then return 'ev.' .. one.field end
  if one.of then return ('%s.%s'):format(one.of.name, one.name) end
  if not one.op then return tostring(one.upvalue and one.name or one.constant) end
  local operands = {}
  for i, operand in ipairs(one.terms) do operands[i] = term(operand) end
  if one.op:match '%a' then return ('%s(%s)'):format(one.op, table.concat(operands, ', ')) end
  if not operands[2] then table.insert(operands, 1, '') end
  return ('(%s)'):format(table.concat(operands, one.op))
end

--- Returns what a handler does, as read from its bytecode: its statements, or why it is not data. text: the handler's
--- body; `calls`, `total` and `waits`, a join, are its upvalues, `later` is one that is assigned again.
local function read(text, parameters)
  local chunk = assert(load(([[
    local waits = ...
    local calls, total, later, opt, base = {}, 0, {}, {}, 5
    local function set() later, total = nil, 0 end
    return function(%s) %s end, set, opt, base]]):format(parameters or 'ev', text), '@demo.lua'))
  local handler = chunk(join.new())
  setfenv(handler, { math = math, bit = bit })
  local code, parts = assert(handler_code.read(handler)), {}
  if code.refusal then return code.refusal.text end
  local before = ''
  for _, statement in ipairs(code.statements) do
    local arguments, conditions = {}, {}
    for i, one in ipairs(statement.arguments) do arguments[i] = term(one) end
    for i, one in ipairs(statement.conditions) do conditions[i] = 'if ' .. condition_text(one) end
    local under = table.concat(conditions, '; ')
    if under ~= before then parts[#parts + 1] = #under > 0 and under or 'always' end
    before = under
    parts[#parts + 1] = ('%s%s(%s)'):format(statement.name, statement.method and ':' .. statement.method or ' +',
      table.concat(arguments, ', '))
  end
  return table.concat(parts, '; ')
end

--- Compares handlers with what is read.
local function are(cases)
  for _, case in ipairs(cases) do assert.equal(case[2], read(case[1]), case[1]) end
end

describe('the code of a handler', function()
  it('is data if it only calls methods and adds to variables', function()
    are {
      { "calls:add(1, ev.pid, 'x', ev.comm)", 'calls:add(1, ev.pid, x, ev.comm)' },
      { 'calls:add(-3, 100000, 2^40, 0.5)', 'calls:add(-3, 100000, 1099511627776, 0.5)' },
    }
    assert.are.equal('total +(1)', read('total = total + 1', ''))
    are {
      { 'total = total + ev.len calls:add(ev.ret) total = 7 + total',
        'total +(ev.len); calls:add(ev.ret); total +(7)' },
      { 'local n, c = ev.len, calls c:add(n, n)', 'calls:add(ev.len, ev.len)' },
    }
  end)

  it('may have a condition', function()
    are {
      { 'if ev.ret < 0 then calls:add(1) end', 'if ev.ret < 0; calls:add(1)' },
      { "if ev.ret > 5 and ev.comm ~= 'a' and ev.id == 3 then calls:add(1) total = total + 1 end",
        'if 5 < ev.ret; if ev.comm ~= a; if ev.id == 3; calls:add(1); total +(1)' },
      { 'if not (ev.a < 10) and ev.b <= ev.c then calls:add(1) end', 'if ev.a >= 10; if ev.b <= ev.c; calls:add(1)' },
      { 'if ev.a < 1 then return end if ev.b == 2 then return end calls:add(1)',
        'if ev.a >= 1; if ev.b ~= 2; calls:add(1)' },
    }
    for text, reason in pairs {
      ['if ev.a < 1 or ev.b < 1 then calls:add(1) end'] = 'has a condition',
      ['if ev.a < 1 and ev.b < 1 then calls:add(1) else calls:add(2) end'] = 'has a condition',
      ['if ev.a < 1 then total = total + 1 return end calls:add(1)'] = 'returns early',
      ['if ev.a < 1 then if ev.b < 1 then return end calls:add(1) end calls:add(2)'] = 'has a condition',
      ['if ev.a then calls:add(1) end'] = 'has a condition',
      ['repeat calls:add(1) until ev.a < 1'] = 'has a loop',
      ['local n if ev.a < 1 then n = ev.b end calls:add(n)'] = 'calls calls:add()',
      ['local m, n = ev.a m, n = nil, nil calls:add(m)'] = 'calls calls:add()',
      ['calls:add(false)'] = 'calls calls:add()',
    } do assert.are.equal(reason, read(text)) end
  end)

  it('may have conditions around a part of it', function()
    are {
      { 'if ev.a < 1 then calls:add(1) end total = total + 1', 'if ev.a < 1; calls:add(1); always; total +(1)' },
      { 'total = total + 1 if ev.a < 1 then calls:add(1) end', 'total +(1); if ev.a < 1; calls:add(1)' },
      { 'if ev.a < 1 then calls:add(1) if ev.b == 2 then calls:add(2) end calls:add(3) end',
        'if ev.a < 1; calls:add(1); if ev.a < 1; if ev.b == 2; calls:add(2); if ev.a < 1; calls:add(3)' },
      { 'if ev.a < 1 then calls:add(1) else calls:add(2) end total = total + 1',
        'if ev.a < 1; calls:add(1); if ev.a >= 1; calls:add(2); always; total +(1)' },
      { 'if ev.a == 1 then return end if ev.b < 2 then calls:add(1) else calls:add(2) end',
        'if ev.a ~= 1; if ev.b < 2; calls:add(1); if ev.a ~= 1; if ev.b >= 2; calls:add(2)' },
    }
  end)

  it('may choose a value', function()
    are {
      { 'local n if ev.a < 1 then n = 1 else n = 2 end calls:add(n)', 'calls:add((ev.a >= 1 ? 2 : 1))' },
      { 'local n = 0 if ev.a < 1 then n = ev.b end calls:add(n)', 'calls:add((ev.a < 1 ? ev.b : 0))' },
      { "calls:add(1, opt.by == 'comm' and ev.comm or 'all')", 'calls:add(1, (opt.by ~= comm ? all : ev.comm))' },
      { "local name = 'failed' calls:add(ev.a < 0 and name or 'ok') total = total + 1",
        'calls:add((ev.a >= 0 ? ok : failed)); total +(1)' },
      { 'total = total + (ev.a < 0 and 1 or 0)', 'total +((ev.a >= 0 ? 0 : 1))' },
      { 'calls:add(ev.a < 0 and ev.b < 0 and 1 or 2)', 'has a condition' },
      { 'calls:add(ev.a or 1)', 'has a condition' },
    }
  end)

  it('may use what a join has found', function()
    local finish = 'local ns, id = waits:finish(ev.pid, ev._time) '
    assert.are.equal('waits:start(ev.pid, ev._time, ev.id)', read 'waits:start(ev.pid, ev._time, ev.id)')
    assert.are.equal(
      'waits:finish(ev.pid, ev._time); if result 1 of waits; calls:add((result 1 of waits/1000), result 2 of waits)',
      read(finish .. 'if ns then calls:add(ns / 1000, id) end'))
    assert.are.equal('waits:finish(ev.pid, ev._time); if result 1 of waits; total +(1)',
      read(finish .. 'if not ns then return end total = total + 1'))
    assert.are.equal('waits:finish(ev.pid, ev._time); if result 1 of waits; if 5 < result 1 of waits; total +(1)',
      read(finish .. 'if ns and ns > 5 then total = total + 1 end'))
    assert.are.equal('if ev.a == 1; waits:finish(ev.pid, ev._time)', read('if ev.a == 1 then ' .. finish .. ' end'))
    for text, reason in pairs {
      ['calls:add(ns)'] = 'calls calls:add()',
      ['if ns then calls:add(ns) end calls:add(id)'] = 'calls calls:add()',
      ['local us = ns / 1000 if ns then calls:add(us) end'] = 'computes',
      ['if ns > 5 then calls:add(ns) end'] = 'has a condition',
      ['if not ns then calls:add(1) end'] = 'has a condition',
      ['if ns then return end calls:add(1)'] = 'has a condition',
      ['if ns then calls:add(1) else calls:add(2) end'] = 'has a condition',
      ['if id then calls:add(1) end'] = 'has a condition',
      ['if ns then calls:add(ns or 5) end'] = 'has a condition',
    } do assert.are.equal(reason, read(finish .. text)) end
    assert.are.equal('calls later:finish()', read 'local ns = later:finish(ev.pid) if ns then calls:add(ns) end')
  end)

  it('may compute', function()
    are {
      { 'calls:add(ev.a + 1, 2 - ev.b, -(ev.c * ev.d))', 'calls:add((ev.a+1), (2-ev.b), (-(ev.c*ev.d)))' },
      { 'calls:add((ev.ret - base) / 1024)', 'calls:add(((ev.ret-base)/1024))' },
      { 'local n = ev.a % opt.than total = total + n', 'total +((ev.a%opt.than))' },
      { 'total = (ev.a + base) + total', 'total +((ev.a+base))' },
      { 'if ev.a - 1 > opt.than then calls:add(opt.name) end', 'if opt.than < (ev.a-1); calls:add(opt.name)' },
      { 'calls:add(math.floor(ev.a / 8), bit.band(ev.b, 7))', 'calls:add(floor((ev.a/8)), band(ev.b, 7))' },
      { 'calls:add(math.ceil(ev.a))', 'calls math.ceil()' },
      { 'math.floor(ev.a)', 'calls math.floor()' },
    }
  end)

  it('is anything else if it does more', function()
    are {
      { 'calls:add(total + 1)', 'calls calls:add()' },
      { 'calls:add(calls:get())', 'calls calls:get()' },
      { 'total = total - 1', 'computes' },
      { 'total = ev.a', "sets 'total'" },
      { 'local before = total total = total + 1 total = before + 1', "sets 'total'" },
      { 'calls.add(calls, 1)', 'calls calls.add()' },
      { 'return calls:add(1)', 'calls calls:add()' },
      { 'calls:add(calls:get(1))', 'calls calls:get()' },
      { 'calls:add(ev)', 'calls calls:add()' },
      { "calls:add(ev:u64 'id')", 'calls ev:u64()' },
      { 'later:add(1)', 'calls later:add()' },
      { 'ev = total calls:add(ev.a)', 'calls calls:add()' },
      { 'local t = {} calls:add(1)', 'makes a table' },
      { 'for i = 1, 2 do calls:add(1) end', 'has a loop' },
    }
    assert.are.equal('takes any number of arguments', read('calls:add(1)', '...'))
    assert.are.equal('does nothing', read '')
  end)

  it('sees whether a variable of the file is assigned', function()
    local start, other = assert(load([[
      local fixed, changed = {}, {}
      return function() return function() fixed:add(1) end, function() changed:add(1) end end,
        function() changed = {} end]], '@demo.lua'))()
    local first, second = start()
    assert.is_nil(handler_code.read(first, start).refusal)
    assert.are.equal('calls changed:add()', handler_code.read(second, start).refusal.text)
    assert.are.equal('calls fixed:add()', handler_code.read(first, other).refusal.text)
  end)

  it('may begin with conditions without being data', function()
    local function guards(text)
      return handler_code.read((assert(load(('local calls = {} return function(ev) %s end'):format(text)))())).guards
    end
    assert.are.equal(1, guards 'if ev.a > 1 then print(ev.a) end')
    assert.are.equal(2, guards 'if ev.a <= 1 then return end if ev.b > ev.a then print(ev.a) return end')
    assert.are.equal(1, guards 'local a = ev.a if a > 1 then print(a) if ev.b > 2 then print(ev.b) end end')
    assert.are.equal(0, guards 'print(ev.a) if ev.a > 1 then print(ev.a) end')
    assert.are.equal(0, guards 'if ev.a > 1 then print(ev.a) end print()')
    assert.are.equal(0, guards 'if ev.a > 1 or ev.b > 1 then print(ev.a) end')
    assert.are.equal(0, guards 'if ev.a > 1 then print(ev.a) else print(2) end')
    assert.are.equal(1, guards 'while ev.a > 1 do print(ev.a) end')
  end)

  it('has a reason for each line', function()
    local code = handler_code.read(assert(load(
      'local calls, out = ... return function(ev)\n calls:add(ev.a)\n out:f(ev.b, {}) out:f({})\nend', '@demo.lua'))())
    assert.are.same({ [3] = { 'makes a table', 'calls out:f()' } }, code.notes)
    assert.are.same({ [2] = { 'a' }, [3] = { 'b' } }, code.reads)
  end)
end)
