-- SPDX-License-Identifier: GPL-2.0-only
local ffi = require 'ffi'
local oneliner = require 'lib.engines.oneliner'
local public_event = require 'bindings.view.public_event'

--- The columns and names of the tables that a program prints.
local function tables_of(program)
  local list = {}
  program:print {
    format = 'json',
    table = function(_, spec)
      local names = { spec.name }
      for _, column in ipairs(spec.columns) do names[#names + 1] = column.name end
      list[#list + 1] = table.concat(names, ' ')
    end,
  }
  return list
end

describe('oneliner.compile', function()
  it('shows the fields of print() and row{} that are addresses as such', function()
    local program = oneliner.compile [[print(ev.ptr, f(ev.ptr), 'print(ev.ptr)') row { 'a', ev.n }]]
    assert.equal([[print(shown('ptr', ev.ptr), f(ev.ptr), 'print(ev.ptr)') row { 'a', shown('n', ev.n)}]],
      (program.source:gsub("{'a'", "{ 'a'")))
    assert.equal(255, program.env.shown('ptr', 255))
    program:find_addresses { print_fmt = '"%p %d", REC->ptr, REC->n', fields = { ptr = { size = 8, flags = 0 },
      n = { size = 8, flags = 0 } } }
    assert.equal('0xff', program.env.shown('ptr', 255))
    assert.equal(255, program.env.shown('n', 255))
  end)

  it('shows the sum of an address and a number as an address, and what printf() writes as text', function()
    local program = oneliner.compile [[printf('%d%% %s %-8s', ev.ptr, ev.ptr, ev.ptr - 8)
      print(4 + ev.ptr, ev.ptr - ev.n)]]
    assert.equal([[printf('%d%% %s %-8s', ev.ptr, shown('ptr', ev.ptr), shown('ptr', ev.ptr - 8))
      print(shown('ptr', 4 + ev.ptr), ev.ptr - ev.n)]], program.source)
  end)

  it('shows keys as the names that print formats have, if all events have the same', function()
    local context = { symbol = function(address) return address == 255 and 'work+0x0' or nil end }
    local function event(name, print_fmt)
      return { name = name, print_fmt = print_fmt, context = context, fields = { vec = { size = 4, flags = 0 },
        bits = { size = 4, flags = 0 }, fn = { size = 8, flags = 0 } } }
    end
    local format = [["%s %s %ps", __print_symbolic(REC->vec, { 1, "TIMER" }), __print_flags(REC->bits, "|", { 1, "A" },
      { 2, "B" }), REC->fn]]
    local function rows_of(...)
      local program = oneliner.compile 'count(ev.vec, ev.bits, ev.fn) max(ev.vec)'
      for _, one in ipairs { ... } do program:find_addresses(one) end
      program.env.count_1(1, 3, 255)
      program.env.count_1(2, 0, 254)
      program.env.max_2(1)
      local rows = {}
      program:print({ format = 'json', table = function(_, _, list) rows[#rows + 1] = list end }, { sort = 'key' })
      return rows
    end
    local rows = rows_of(event('a:one', format), event('a:two', format .. ', 1'))
    assert.same({ { vec = 'TIMER', bits = 'A|B', fn = 'work', count = 1 },
      { vec = 2, bits = 0, fn = '0xfe', count = 1 } }, rows[1])
    assert.equal(1, rows[2][1].max)
    rows = rows_of(event('a:one', format), event('a:two', '"%d", REC->vec'))
    assert.same({ vec = 1, bits = 3, fn = '0xff', count = 1 }, rows[1][1])
  end)

  it('prints a stack as its frames, and asks for it', function()
    local parts = { ['print(ev._stack)'] = 'both', ['print(kstack)'] = 'kernel', ['print( ustack() )'] = 'user' }
    for source, part in pairs(parts) do
      local program = oneliner.compile(source)
      assert.truthy(program.stacks and program.source:find('session.stack_text(ev._stack)', 1, true))
      assert.equal(part, program.stack_part or 'both')
    end
    assert.falsy(oneliner.compile('print(ev._cpu)').stacks)
  end)

  it('makes each call an aggregation of its own', function()
    local program = oneliner.compile 'count(ev._comm) if ev.ret < 0 then count(ev.ret) end'
    assert.equal('count_1(ev._comm) if ev.ret < 0 then count_2(ev.ret) end', program.source)
    local chunk = setfenv(assert(loadstring(program.source)), setmetatable({ ev = { _comm = 'sh', ret = -2 } },
      { __index = program.env }))
    for _ = 1, 3 do chunk() end
    local rows = {}
    program:print { format = 'json', table = function(_, _, r) rows[#rows + 1] = r[1] end }
    assert.same({ { comm = 'sh', count = 3 }, { ret = -2, count = 3 } }, rows)
    program:clear()
    rows = {}
    program:print { format = 'json', table = function(_, _, r) rows[#rows + 1] = r[1] end }
    assert.same({}, rows)
  end)

  it('names the columns after the expressions', function()
    local program = oneliner.compile [[
      quantiles(ev.bytes / 1024, ev:filename(), ev.count, math.floor(ev._time / 1e9))
      sum(ev.len, ev.sum, ev.pid, ev._pid)
      count()
    ]]
    assert.same({
      'quantiles(ev.bytes / 1024, ev:filename(), ev.count, math.floor(ev._time / 1e9))'
        .. ' filename ev.count math.floor(ev._time / 1e9) count total min p50 p95 p99 max'
        .. ' avg stddev variance',
      'sum(ev.len, ev.sum, ev.pid, ev._pid) ev.sum pid ev._pid sum',
      'count() count',
    }, tables_of(program))
  end)

  it('prints tables by key, or the largest values', function()
    local shown
    local out = { table = function(_, _, rows) shown = rows end, print = function(_, text) shown = text end }
    local scope = oneliner.globals({}, out, {})
    scope.print { b = 1, a = 2, [10] = 3, [9] = { x = 4, [7] = 5 } }
    assert.same({ { key = 10, value = 3 }, { key = '9, 7', value = 5 }, { key = '9, x', value = 4 },
      { key = 'a', value = 2 }, { key = 'b', value = 1 } }, shown)
    scope.print({ b = 1, a = 2, c = 2 }, 2)
    assert.same({ { key = 'a', value = 2 }, { key = 'c', value = 2 } }, shown)
    local waits = require('lib.map').new(2)
    waits:set(1, 'x', 5)
    scope.print(waits)
    assert.same({ { key = '1, x', value = 5 } }, shown)
    scope.print {}
    assert.equal('{}', shown)
  end)

  it('ignores other calls', function()
    for _, source in ipairs {
      'x.count(1)', 'x:count(1)', "print('count(1)')",
      'print "say \\"count(1)"', '-- count(1)', '--[[ count(1)\n]] f()',
      '[==[ count(1) ]] ]==]',
      'counts(1)', 'local function count(a) end', 'local sum = 3', 'discount(1)',
    } do
      assert.equal(source, oneliner.compile(source).source)
    end
  end)

  it('finds arguments with brackets, strings and comments in them', function()
    local program = oneliner.compile "count(t[f(1, 2)], ('a,)'):rep(2), {1, 2} --[[, ]])"
    assert.equal("count_1(t[f(1, 2)], ('a,)'):rep(2), {1, 2} --[[, ]])", program.source)
    assert.equal(" t[f(1, 2)] ('a,)'):rep(2) {1, 2} --[[, ]] count", tables_of(program)[1]:match '%]%]%)(.*)')
  end)

  it('says which call is wrong', function()
    local cases = {
      ['count(1, 2, 3, 4, 5)'] = 'line 1: count takes 0 to 4 arguments',
      ['\nsum()'] = 'line 2: sum takes 1 to 5 arguments',
      ['hist(1'] = "line 1: the '(' after hist is not closed",
    }
    for source, message in pairs(cases) do
      local program, why = oneliner.compile(source)
      assert.is_nil(program)
      assert.equal(message, why)
    end
  end)

  describe('as data', function()
    --- What a program lets the kernel count; nil if it must run for each event.
    local function counted(source)
      local text = { name = 'text', type = 'char[16]', flags = ffi.C.FIELD_STRING, offset = 0, size = 16, count = 16 }
      local event = { name = 'a:b', class = 1, fields = { text = text }, print_fmt = '' }
      local program, got = assert(oneliner.compile(source)), nil
      local session = { tally = function() return { add = function(_, _, settings) got = settings end } end }
      program:count(session, public_event.of(event), function() end)
      return got and { got.filter or '', unpack(got.key) } or nil, got
    end

    it('is one call with fields', function()
      assert.same({ '', 'ret', '_comm' }, counted 'count(ev.ret, ev._comm)')
      assert.same({ '', { constant = 'a:b' } }, counted ' count( ev._event ) ; ')
      local _, settings = counted 'sum(ev.ret, ev.id)'
      assert.equal('ret', settings.sums[1].value)
      _, settings = counted 'hist(ev.ret)'
      assert.equal('ret', settings.hist.value)
      _, settings = counted 'avg(ev.ret, ev.id)'
      assert.equal('ret', settings.sums[1].value)
      assert.same({ 3, 0 }, { settings.sums[2].width, settings.sums[2].at })
    end)

    it('has a condition of comparisons', function()
      assert.same({ 'id == 59' }, counted 'if ev.id == 59 then count() end')
      assert.same({ '(s64)ret < -1 && !(comm != "a b" || (s64)x >= (s64)y)', 'id' },
        counted "if ev.ret < -1 and not (ev.comm ~= 'a b' or ev.x >= ev.y) then count(ev.id) end")
    end)

    it('is nothing else', function()
      for _, source in ipairs {
        'count(ev.id) count(ev.id)', 'count(ev.id + 1)', 'count(ev:name())', 'count(stack)', 'sum(1, ev.id)',
        'if ev.id then count() end', 'if f(ev.id) == 1 then count() end', 'local a = count(ev.id)',
        'if ev.id == 1 then count() else count(1) end', 'for i = 1, 2 do count(ev.id) end', 'count(x.id)',
        'hist(ev.text)', 'sum(ev._comm)',
      } do
        assert.is_nil(counted(source), source)
      end
    end)
  end)
end)
