-- SPDX-License-Identifier: GPL-2.0-only
local events = require 'bindings.select.events'

local PROFILER = { name = 'mine', profiler = { attributes = { 'printkey' } } }

--- Returns an event set of a recording with these events, none of which has a format but those in `formats`.
local function set_of(recorded, formats)
  local set = events:of(PROFILER, { opt = {} })
  set.owner, set.next_class, set.list, set.by_class, set.probes = nil, { 10 }, {}, {}, {}
  set.warned = {}
  set.context = { warn = function(line) set.warned[#set.warned + 1] = line end }
  set.catalog = {
    recorded = recorded,
    tracepoint = function(_, system, name) return (formats or {})[system .. ':' .. name] end,
    tracepoints = function() return { 'sched:sched_switch' } end,
    pmus = function() return {} end,
    has = function(_, name) return name == 'cpu-clock' end,
  }
  return set
end

local function request(sample, member, config)
  return { sample = sample, member = member, attr = { config = config } }
end

describe('a set of events', function()
  it('knows the common attributes and those of the profiler', function()
    local known = events.known_attributes { attributes = { 'printkey' } }
    assert.is_true(known.alias)
    assert.is_true(known.printkey)
    assert.is_falsy(events.known_attributes({}).printkey)
  end)

  it('drops an attribute without effect, with one warning', function()
    local set = set_of {}
    for _ = 1, 2 do
      local parsed = { attrs = { { name = 'alias' }, { name = 'untraced' }, { name = 'printkey' } } }
      set:drop_attributes(parsed)
      assert.same({ { name = 'alias' }, { name = 'printkey' } }, parsed.attrs)
    end
    assert.same({ "mine: the attribute 'untraced' has no effect on this profiler" }, set.warned)
  end)

  it('gives each event the next class', function()
    local set = set_of {}
    assert.equal(10, set:new_class('a:b', request(0, 0, 1)))
    assert.equal(11, set:new_class('a:b', request(0, 0, 1)))
    assert.equal(12, set:of({ name = 'other', profiler = {} }, {}):new_class('a:b', request(0, 0, 1)))
  end)

  it('takes the classes of open events that look the same, each once', function()
    local set = set_of {}
    set.list = {
      { name = 'a:b', class = 10, request = request(1, 0, 7) },
      { name = 'a:b', class = 11, request = request(1, 0, 7) },
    }
    set.next_class[1] = 12
    local again = set:again(PROFILER, {}, {})
    assert.equal(12, again:new_class('a:c', request(1, 0, 7)))
    assert.equal(13, again:new_class('a:b', request(2, 0, 7)))
    assert.equal(14, again:new_class('a:b', request(1, 1, 7)))
    assert.equal(15, again:new_class('a:b', request(1, 0, 8)))
    assert.equal(10, again:new_class('a:b', request(1, 0, 7)))
    assert.equal(11, again:new_class('a:b', request(1, 0, 7)))
    assert.equal(16, again:new_class('a:b', request(1, 0, 7)))
    assert.equal(12, set.next_class[1])
  end)

  it('names the tracepoints of a recording without a format once', function()
    local set = set_of({ { type = 2, name = 'a:b' }, { type = 2, name = 'a:b' }, { type = 2, name = 'a:c' },
      { type = 1, name = 'cpu-clock' } }, { ['a:c'] = true })
    local list = set:formatless()
    assert.equal(1, #list)
    assert.equal('a:b', list[1])
    assert.is_true(list['a:b'])
  end)

  it('names the members of groups whose fields were not sampled', function()
    local set = set_of { { name = 'a:b', is_member = true }, { name = 'a:c', is_member = false } }
    assert.is_nil(set:fieldless())
    set.list = { { name = 'a:c', tracepoint = 1 }, { name = 'a:b', tracepoint = 1 }, { name = 'a:b', tracepoint = 1 } }
    assert.equal('mine: only the leader of their group was sampled ({...}:S): the fields of a:b are 0', set:fieldless())
  end)

  it('takes a profiler as a source where no event has its name', function()
    local set = set_of {}
    local one = { kind = 'event', name = 'mine' }
    assert.is_false(set:is_source(one))
    set.sources = { paths = function() return { mine = 'mine.lua', ['cpu-clock'] = 'x.lua' } end }
    assert.is_true(set:is_source(one))
    assert.is_false(set:is_source { kind = 'event', name = 'other' })
    assert.is_false(set:is_source { kind = 'event', name = 'cpu-clock' })
    assert.is_true(set:is_source { kind = 'profiler', name = './other.lua' })
  end)

  it('suggests a name for one that it does not know', function()
    local set = set_of {}
    local ok, err = pcall(set.refuse_name, set, { name = 'sched_switch', text = 'sched_switch' })
    assert.is_false(ok)
    assert.matches("did you mean 'sched:sched_switch'%?", tostring(err.message or err))
  end)

  it('shows all events but those that are derived', function()
    local set = set_of {}
    set.list = { { name = 'a' }, { name = 'b', is_derived = true }, { name = 'c' } }
    assert.same({ { name = 'a' }, { name = 'c' } }, set:shown())
  end)
end)
