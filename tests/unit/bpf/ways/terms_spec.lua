-- SPDX-License-Identifier: GPL-2.0-only
-- What handlers compute, as C expressions: these have the values that Lua computes.
local bit = require 'bit'
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local expr = require 'bindings.expr.compile'
local expr_event = require 'tests.unit.bindings.expr.expr_event'
local handler_code = require 'bpf.handlers.code'
local handler_terms = require 'bpf.ways.terms'
local names = require 'lib.names'

local EXACT = 2 ^ 53
local event = { name = 'sys:event', fields = expr_event.fields }
local BASE = 1000

--- Returns a handler that notes a value, and the function that returns it.
local function handler_of(text)
  local noted
  local chunk = assert(load(([[
    local calls, base, names = ...
    return function(ev) %s end]]):format(text), '@demo.lua'))
  local calls = { add = function(_, value) noted = value end }
  local handler = setfenv(chunk(calls, BASE, names), { math = math, bit = bit })
  return handler, function(ev)
    noted = nil
    handler(ev)
    return noted
  end
end

--- Returns the C expression of the value that a handler adds; nil and why not.
local function resolve(text)
  local handler = handler_of(text)
  local code = assert(handler_code.read(handler))
  if code.refusal then return nil, code.refusal.text end
  return asm.attempt(function()
    return { handler_terms.resolve(handler, event, code.statements[1].arguments[1]),
      handler_terms.filter(handler, event, code.statements[1].conditions) }
  end)
end

--- Returns a field as a script reads it.
local function member(value)
  local n = tonumber(value)
  return math.abs(n) <= EXACT and n or value
end

local EDGES = { 0, 1, 2, 7, 8, 999, 1000, 1001, 4096, 2 ^ 31 - 1, 2 ^ 31, 2 ^ 32 - 1, 2 ^ 40 + 3, 2 ^ 52 + 1 }

--- Calls each(ev, record) for events with many values.
local function each_event(each)
  math.randomseed(1)
  for _ = 1, 300 do
    local values, ev = {}, {}
    for name, range in pairs { f_u8 = { 0, 255 }, f_i32 = { -2 ^ 31, 2 ^ 31 - 1 }, f_u32 = { 0, 2 ^ 32 - 1 },
      f_i64 = { -2 ^ 52, 2 ^ 52 }, f_u64 = { 0, 2 ^ 52 } } do
      local n = math.random(3) == 1 and math.random(-20, 20) or EDGES[math.random(#EDGES)] * (math.random(2) * 2 - 3)
      values[name] = math.max(range[1], math.min(range[2], n))
    end
    local record = expr_event.new(values)
    for name in pairs(values) do ev[name] = member(record.p[name]) end
    each(ev, record)
  end
end

describe('what a handler computes', function()
  for _, text in ipairs {
    'ev.f_i32 + 5', '7 - ev.f_u32', '-ev.f_i32', 'ev.f_i64 - base', 'ev.f_u8 * ev.f_i32 + 1', 'ev.f_i64 * 1000',
    '(ev.f_i64 - base) / 1024', 'ev.f_u64 / 1000', 'ev.f_i32 / 3', 'ev.f_i32 % 16', 'ev.f_u64 % 4096',
    '(ev.f_i64 + 1) % 7', 'math.floor(ev.f_i32 / 8)', 'math.floor(ev.f_u64 / 4096) % 10',
    'math.floor(ev.f_i64 / 10) * 10', 'math.floor(ev.f_u32)',
    'bit.band(ev.f_u32, 255)', 'bit.band(7, ev.f_i32)', 'bit.rshift(ev.f_i32, 4)', 'bit.rshift(ev.f_u32, 31)',
    'bit.lshift(ev.f_u32, 8)', 'ev.f_u64 / 1', 'ev.f_i32 < 0 and -ev.f_i32 or ev.f_u8',
    '(ev.f_u64 > 4096 and 1 or 0) + (ev.f_i32 == ev.f_u32 and 2 or ev.f_u8)', 'base == 1000 and ev.f_u8 or ev.comm',
    '(base < 1000 and ev.comm or ev.f_i64 - base)', 'ev.f_i64 / (base < 0 and ev.comm or 3)',
  } do
    it('is the C expression for ' .. text, function()
      local terms = assert(resolve(('calls:add(%s)'):format(text)))
      local compiled = assert(expr.compile(terms[1].value, expr_event.fields))
      local evaluate = expr.load(compiled)
      local _, compute = handler_of(('calls:add(%s)'):format(text))
      each_event(function(ev, record)
        local wanted = compute(ev)
        if type(wanted) == 'number' then wanted = wanted < 0 and math.ceil(wanted) or math.floor(wanted) end
        local got = expr_event.run(evaluate, record)
        assert.is_true(got == wanted, ('%s: %s instead of %s'):format(compiled.source, tostring(got), tostring(wanted)))
        assert.is_true(terms[1].low <= got + 1 and got <= terms[1].high + 1)
      end)
    end)
  end

  for text, results in pairs {
    ['ev.f_i64 % 7'] = 4000, ['(ev.f_i64 - 3) % 4096'] = 4000, ['ev.f_i64 % 7 % 3'] = 4000, ['ev.f_u64 % 16'] = 4000,
    ['ev.f_i64 % 7 + 5'] = 4000, ['math.floor(ev.f_i64 / 10)'] = 1000, ['math.floor(ev.f_u64 / 10) % 8'] = 1000,
  } do
    it('is that for all 64-bit numbers of which Lua has a result: ' .. text, function()
      local evaluate = expr.load(assert(expr.compile(assert(resolve(('calls:add(%s)'):format(text)))[1].value,
        expr_event.fields)))
      local _, compute = handler_of(('calls:add(%s)'):format(text))
      local n = 0
      math.randomseed(2)
      for _ = 1, 4000 do
        local value = math.random(0, 2 ^ 31) * 2LL ^ math.random(0, 32) + math.random(-9, 9)
        if math.random(2) == 1 then value = -value end
        local record = expr_event.new { f_i64 = value, f_u64 = ffi.cast('uint64_t', value) }
        local is_known, wanted = pcall(compute, { f_i64 = member(record.p.f_i64), f_u64 = member(record.p.f_u64) })
        if is_known then
          n = n + 1
          local got = expr_event.run(evaluate, record)
          assert.is_true(ffi.cast('int64_t', got) == ffi.cast('int64_t', wanted),
            ('%s: %s instead of %s'):format(tostring(value), tostring(got), tostring(wanted)))
        end
      end
      assert.is_true(n >= results, n .. ' results')
    end)
  end

  for _, condition in ipairs {
    'ev.f_i64 - base > 5', 'ev.f_u64 >= 4096', '8 > ev.f_u64', 'ev.f_i32 % 16 == base % 7', 'ev.f_u32 > 5000000000',
    'ev.f_i32 < ev.f_u32 and ev.f_u8 ~= 7',
  } do
    it('is the filter for ' .. condition, function()
      local text = ('if %s then calls:add(1) end'):format(condition)
      local evaluate = expr.load(assert(expr.compile(assert(resolve(text))[2], expr_event.fields, { form = 'filter' })))
      local _, compute = handler_of(text)
      each_event(function(ev, record)
        assert.equal(compute(ev) == 1, expr_event.run(evaluate, record) or false)
      end)
    end)
  end

  it('may be a text for a number', function()
    for text, wanted in pairs {
      ["ev.f_i32 < 0 and 'failed' or 'done'"] = { [-5] = 'failed', [0] = 'done' },
      ["ev.f_i32 == 7 and 'seven' or 8"] = { [7] = 'seven', [0] = 8 },
      ['names.errno(ev.f_i32 - 1)'] = { [3] = 'ENOENT', [-1] = 'ENOENT' },
    } do
      local key = assert(resolve(('calls:add(%s)'):format(text)))[1].key
      local evaluate = expr.load(assert(expr.compile(key.of, expr_event.fields)))
      for n, name in pairs(wanted) do
        assert.equal(name, key.text(expr_event.run(evaluate, expr_event.new { f_i32 = n })))
      end
    end
    assert.same({ constant = 'some' }, assert(resolve "calls:add(base > 5 and 'some' or ev.comm)")[1].key)
  end)

  it('is refused if integers of 64 bits would have another result', function()
    for text, reason in pairs {
      ['ev.f_u64 + 1'] = 'it computes with an unsigned 64-bit number',
      ['ev.f_u64 % 7 - 7'] = 'it computes with an unsigned 64-bit number',
      ['ev.f_i64 * ev.f_i64'] = 'it may compute more than 64 bits',
      ['ev.f_u32 * ev.f_u32'] = 'it may compute more than 64 bits',
      ['ev.f_u32 * 16777216'] = 'it may compute more than Lua has exactly',
      ['ev.f_i32 / ev.f_u8'] = 'it divides by what is not a positive constant',
      ['ev.f_i32 % -3'] = 'it divides by what is not a positive constant',
      ['ev.f_i32 / 4 + 1'] = 'it computes with a fraction',
      ['ev.f_i32 * 0.5'] = '0.5 is not an integer',
      ['ev.comm + 1'] = 'it computes with text',
      ['bit.rshift(ev.f_i64, 3)'] = 'it shifts more than 32 bits',
      ['bit.band(ev.f_i64, -4)'] = 'the bits are not a positive constant',
      ['ev.args'] = 'ev.args is an array',
      ["ev.f_i32 > 0 and ev.comm or 'none'"] = 'it chooses between texts of the event',
      ['ev.f_i32 > 0 and ev.f_u64 or 0'] = 'it computes with an unsigned 64-bit number',
      ['(ev.f_i32 > 0 and ev.f_i64 or -5) % 7'] = 'it divides one of several 64-bit numbers',
      ['ev.f_i32 > 0 and ev.f_i32 / 2 or 0'] = 'it chooses a fraction',
      ['names.errno(ev.comm)'] = 'it computes with text',
      ['names.errno(ev.f_i32) + 1'] = 'it computes with text',
    } do
      local _, got = resolve(('calls:add(%s)'):format(text))
      assert.equal(reason, got)
    end
    for condition, reason in pairs {
      ['ev.f_u64 > ev.f_i32'] = 'it compares an unsigned 64-bit number',
      ['ev.f_u64 > -1'] = 'it compares an unsigned 64-bit number',
      ['ev.f_i32 / 2 > 1'] = 'it compares a fraction',
      ['ev.comm < 5'] = 'it compares a string',
      ["names.errno(ev.f_i32) == 'ENOENT'"] = 'it compares a string',
    } do
      local _, got = resolve(('if %s then calls:add(1) end'):format(condition))
      assert.equal(reason, got)
    end
  end)

  it('has no key if it may be a fraction', function()
    assert.is_nil(assert(resolve 'calls:add(ev.f_i32 / 2)')[1].key)
    assert.is_not_nil(assert(resolve 'calls:add(ev.f_i32 / 1)')[1].key)
  end)
end)
