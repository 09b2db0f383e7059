-- SPDX-License-Identifier: GPL-2.0-only
local event_class = require 'bindings.select.event'

local PATH = 'bindings/select/event.lua'

--- Returns the fields that the class declares, as a list and as a set.
local function declared()
  local list, set, is_event = {}, {}, false
  for line in io.lines(PATH) do
    is_event = line:match '^%-%-%-@class (%w+)' == 'Event' or is_event and line:match '^%-%-%-' ~= nil
    local name = is_event and line:match '^%-%-%-@field ([%w_]+)'
    if name then
      list[#list + 1] = name
      set[name] = true
    end
  end
  return list, set
end

local function lines_of(command)
  local pipe = assert(io.popen(command))
  local lines = {}
  for line in pipe:lines() do lines[#lines + 1] = line end
  pipe:close()
  assert(#lines > 0, command)
  return lines
end

describe('an event', function()
  it('has few fields', function()
    local list = declared()
    assert(#list >= 20 and #list <= 25, ('%d fields'):format(#list))
  end)

  it('has only fields that are declared, which only its module writes', function()
    local _, set = declared()
    for _, line in ipairs(lines_of("grep -Eo 'self\\.[a-z_]+(, self\\.[a-z_]+)* = ' " .. PATH)) do
      for name in line:gmatch 'self%.([%w_]+)' do assert(set[name], name .. ' is not declared') end
    end
    local fields = {}
    for name in pairs(set) do fields[#fields + 1] = name end
    local field = '(' .. table.concat(fields, '|') .. ')'
    local write = ('\\b(event|real|counted)\\.%s(, [a-z]+\\.[a-z_]+)* = '):format(field)
    local writes = ("grep -rnE --include=*.lua '%s' bindings bpf scripts; echo end"):format(write)
    for _, line in ipairs(lines_of(writes)) do
      assert(line == 'end' or line:find('bindings/view/perf_events.lua', 1, true), line) -- what perf calls an event
    end
  end)

  it('joins filters', function()
    local one = event_class.new { name = 'a:b', attrs = {} }
    assert.same({}, one.filters)
    one:add_filter 'pid == 1'
    assert.equal('pid == 1', one.filter)
    one:add_filter 'cpu < 2'
    assert.equal('(pid == 1) && (cpu < 2)', one.filter)
    one:set_filter(nil)
    assert.is_nil(one.filter)
  end)

  it('of a source has the attributes that are given to the source', function()
    local one = event_class.new { name = 'a:b', alias = 'b', attrs = { key = 'pid' }, given = {} }
    local own, given = one.attrs, { { name = 'alias', value = 'x' } }
    one:lend({ alias = 'x' }, given, 'late')
    assert.same({ 'x', 'late', given }, { one.alias, one.gate, one.given })
    one:lend({}, {}, nil)
    assert.same({ 'x', 'late' }, { one.alias, one.gate })
    local lent = one:swap_attrs(own)
    assert.equal(own, one.attrs)
    assert.equal(own, one:swap_attrs(lent))
  end)
end)
