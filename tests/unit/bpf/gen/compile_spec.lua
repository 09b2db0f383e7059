-- SPDX-License-Identifier: GPL-2.0-only
-- Expressions compiled to BPF and run in the kernel: the results are those of the Lua code.
local cases = require 'tests.unit.bindings.expr.expr_cases'
local event = require 'tests.unit.bindings.expr.expr_event'
local expr = require 'bindings.expr.compile'
local random = require 'tests.unit.bpf.gen.random_cases'
local libc = require 'bindings.base.libc'
local run_bpf = require 'tests.unit.bpf.gen.run_bpf'
local source = require 'bpf.gen.source'
local sys = require 'bindings.base.sys'

local EXPRESSIONS = tonumber(os.getenv('EXPR_BPF_COUNT')) or 1500
local RECORDS = 4
local SEED = tonumber(os.getenv('EXPR_BPF_SEED')) or 20240607

--- Reasons for the cases that are not compiled, besides strings as results.
local REFUSED = {
  ['&ints[3] - ints'] = 'an array or a string is not a number',
  ['&ints[3] > &ints[2]'] = 'the kernel does not compare addresses',
  ['*(int *)&common_type & 0xffff'] = "a read outside of 'common_type'",
  ['*(int *)((char *)&common_type + nums_offset)'] = "'common_type' is not an array",
  ['*((char *)&common_type + 100000)'] = "'common_type' is not an array",
  ['*((char *)&common_type - 1)'] = "'common_type' is not an array",
  ['((char *)&common_type + name_offset) ~ "*/ls"'] = "'common_type' is not an array",
  ['(comm + 17) == "x"'] = "a read outside of 'comm'",
  ['comm ~ comm'] = 'a glob that is not a literal',
  ['comm ~ next_comm'] = 'a glob that is not a literal',
  ['comm ~ comm_get(7)'] = 'a glob that is not a literal',
  ['comm_get(7) ~ comm_get(7)'] = 'only profscript can evaluate comm_get()',
  ['ksymbol(addr) ~ "*81*"'] = 'only profscript can evaluate ksymbol()',
  ['ksymbol(addr) == "sym_1"'] = 'only profscript can evaluate ksymbol()',
  ['strncmp(comm, "basil", 3)'] = 'only profscript can evaluate strncmp()',
  ['strncmp(comm, "basil", 4)'] = 'only profscript can evaluate strncmp()',
  ['strncmp(name, comm, 20)'] = 'only profscript can evaluate strncmp()',
  ['strncmp("b", "a", 1)'] = 'only profscript can evaluate strncmp()',
}

local function text_of(value)
  return type(value) == 'number' and ('%.0f'):format(value) or (tostring(value):gsub('U?LL$', ''))
end

--- Evaluates in the kernel. Returns the value and its type as text, or nil and the reason for a refusal.
local function in_kernel(compiled, record, is_filter)
  local loaded, why = run_bpf.load(compiled, is_filter)
  if not loaded then return nil, why end
  local texts = {}
  for i, one in ipairs(record.e and { record } or record) do
    texts[i] = text_of(run_bpf.run(loaded, one))
  end
  loaded:close()
  return table.concat(texts, ' ') .. ' ' .. loaded.type
end

local ENV = { comm_get = function() return 'task' end }

local function in_lua(compiled, records, is_filter)
  local fn, texts = expr.load(compiled, ENV), {}
  for i, record in ipairs(records) do
    local value = event.run(fn, record)
    if is_filter then value = value and 1 or nil end
    texts[i] = text_of(value)
  end
  return table.concat(texts, ' ') .. ' ' .. compiled.type
end

--- Compares random expressions over random records. At most this part of them may be refused.
local function compare(expressions, make_record, may_refuse, is_filter)
  local records, refused, undecided = {}, 0, 0
  for i = 1, RECORDS do records[i] = make_record() end
  for _, text in ipairs(expressions) do
    local compiled = expr.compile(text, event.fields, { form = is_filter and 'filter' or nil })
    local wanted = compiled and in_lua(compiled, records, is_filter)
    local got, why
    if compiled then got, why = in_kernel(compiled, records, is_filter) end
    if not got then
      refused = refused + 1
      assert(not (why or ''):find 'rejects', ('%s: %s'):format(text, why))
    else
      local a, b = wanted:gmatch '%S+', got:gmatch '%S+'
      for left in a do
        local right = b()
        if right == 'undecided' then
          undecided = undecided + 1
        elseif left ~= right then
          error(('%s\n  Lua: %s\n  BPF: %s'):format(text, wanted, got))
        end
      end
    end
  end
  assert(refused <= may_refuse * #expressions, ('%d of %d refused'):format(refused, #expressions))
  return undecided
end

describe('expressions in BPF', function()
  local missing = run_bpf.missing()
  if missing then
    pending(missing)
    return
  end

  for _, case in ipairs(cases.VALUES) do
    local text = case[1]
    it('evaluates ' .. text, function()
      local value, why = in_kernel(assert(expr.compile(text, event.fields)), event.RECORD)
      if REFUSED[text] then
        assert.equal(REFUSED[text], why)
      elseif case[2]:find ' string$' then
        assert.is_nil(value)
      else
        assert.equal(case[2]:gsub('U?LL ', ' '), value or why)
      end
    end)
  end

  it(('agrees with Lua on %d random expressions'):format(EXPRESSIONS), function()
    math.randomseed(SEED)
    local expressions = {}
    for i = 1, EXPRESSIONS do expressions[i] = cases.expression(i) end
    compare(expressions, cases.record, 0)
  end)

  it('agrees on shifts, divisions and indexes without a value in C', function()
    math.randomseed(SEED)
    local expressions = {}
    for i = 1, EXPRESSIONS do expressions[i] = random.number() end
    compare(expressions, cases.record, 0.05)
  end)

  it('agrees on filters of strings', function()
    math.randomseed(SEED)
    local expressions = {}
    for i = 1, EXPRESSIONS do expressions[i] = random.filter() end
    local undecided = compare(expressions, random.record, 0.05, true)
    assert(undecided < EXPRESSIONS / 4, 'too many are undecided')
  end)

  it('leaves long strings to profscript', function()
    local compiled = assert(expr.compile('name ~ "*x*y"', event.fields))
    local short = event.new { name = ('a'):rep(60) .. 'xy\0' }
    local long = event.new { name = ('a'):rep(70) .. 'xy\0' }
    assert.equal('1 undecided i32', (in_kernel(compiled, { short, long })))
  end)

  it('reads the variables of the sample', function()
    local function value(text, options, is_filter)
      local loaded, why = run_bpf.load(assert(expr.compile(text, event.fields)), is_filter, source.record(options))
      return loaded and run_bpf.run(loaded, event.RECORD), why
    end
    local pid = libc.getpid()
    assert.equal(pid, value '_pid')
    assert.equal(pid, value '_tid')
    local cpu = value '_cpu'
    assert(cpu >= 0 and cpu < libc.sysconf(libc.SC_NPROCESSORS_ONLN))
    local name = sys.read '/proc/self/comm':match '[^\n]*'
    assert.equal(1, value(('_comm == "%s" && _comm != next_comm'):format(name), nil, true))
    local before = sys.now()
    local time = tonumber((value('_time', { time_base = 1000000000000LL }))) + 1e12
    assert(before <= time and time <= sys.now())
    assert.equal("the kernel cannot tell '_time' at the event", select(2, value '_time'))
    assert.equal("the kernel cannot tell '_period' at the event", select(2, value '_period'))
    assert.equal("the kernel's thread ids are not those of this pid namespace",
      select(2, value('_tid', { foreign_pids = true })))
  end)

  it('takes long chains', function()
    for text, value in pairs {
      ['f_i32' .. (' + f_i32'):rep(599)] = '-4200 i32',
      ['f_i32 == 1' .. (' || f_i32 == -7'):rep(2000)] = '1 i32',
      ['zero' .. (' && 5 / zero'):rep(300)] = '0 i32',
      [('zero ? 1 : '):rep(25) .. '9'] = '9 i32',
      [('!'):rep(90) .. '1'] = '1 i32',
      ['name == "x"' .. (' || name == "/usr/bin/l?" || nums[1] == 3'):rep(100)] = '0 i32',
    } do
      assert.equal(value, (in_kernel(assert(expr.compile(text, event.fields)), event.RECORD)))
    end
  end)

  it('refuses what does not fit', function()
    local compiled = assert(expr.compile('f_i32 == 1' .. (' || f_i32 == -7'):rep(3900), event.fields))
    assert.is_truthy(in_kernel(compiled, event.RECORD)) -- jumps over 11700 instructions
    local deep = 'nums'
    for _ = 1, 18 do deep = ('nums[f_i8 + name[%s]]'):format(deep == 'nums' and '0' or deep) end
    local _, why = in_kernel(assert(expr.compile(deep, event.fields)), event.RECORD)
    assert.equal('it needs more than the 512 bytes of a BPF stack', why)
  end)

  it('does not read beyond a hostile record', function()
    local record = event.new { name = 'abc', comm = ('x'):rep(16), words = { nums = 0xffff0000, rel = 0x0010ffff } }
    for text, value in pairs {
      ['name == "abc"'] = '1 i32', ['name == "abcd"'] = '0 i32', ['name ~ "*c"'] = '1 i32', ['nums[0]'] = 'nil i32',
      ['rel == "x"'] = 'nil i32', ['comm == "' .. ('x'):rep(16) .. '"'] = '1 i32', ['comm ~ "*y"'] = '0 i32',
      ['comm == "' .. ('x'):rep(17) .. '"'] = '0 i32', ['comm ~ "x?*x"'] = '1 i32',
    } do
      assert.equal(value, (in_kernel(assert(expr.compile(text, event.fields)), record)))
    end
  end)
end)
