-- SPDX-License-Identifier: GPL-2.0-only
--- The events behind the page of --serve: those of a time or of a bucket, the bounds of an answer, and what is not kept
--- any more.
local ffi = require 'ffi'
local page_events = require 'lib.serve.page_events'

local C = ffi.C
local A = tonumber(C.EVENT_FIRST)

local function event(alias, more)
  local one = { alias = alias, class = A, request = { counted = 0 }, route = {} }
  for key, value in pairs(more or {}) do one[key] = value end
  return one
end

--- Returns the kept events of a run, and what adds events at some times.
local function new(list, size)
  local run = { events = { list = list }, out = { clock = function(at) return 1000, at end } }
  local events = page_events.new(run)
  local pass = events:pass()
  events.line = function(e) return ('event at %d\n'):format(e.time) end
  local raw, batch = ffi.new('uint8_t[?]', size or 8), ffi.new 'struct event[1]'
  return events, pass, function(...)
    for _, time in ipairs { ... } do
      batch[0].class, batch[0].time, batch[0].raw, batch[0].raw_size = A, time, raw, size or 8
      pass(batch, 1)
    end
  end
end

local function count(text, word) return select(2, text:gsub(word, '')) end

describe('the events behind the page', function()
  it('events of a time', function()
    local events, _, add = new { event 'a' }
    add(10, 20, 30, 40)
    assert.equal(events:answer 'n=1&from=10&to=30',
      '{"items":[{"title":null,"text":"event at 20\\u000a"},{"title":null,"text":"event at 30\\u000a"}],"more":0,'
      .. '"notes":[],"gone":null}')
    assert.equal(count(events:answer 'n=2&to=30', 'event at'), 3)
    assert.equal(count(events:answer 'from=%33%30', 'event at'), 1)
    assert.equal(count(events:answer '&=&%zz=1&from=x', 'event at'), 4)
  end)

  it('an answer is bounded', function()
    local events, _, add = new { event 'a' }
    for time = 1, 500 do add(time) end
    local answer = events:answer 'from=100'
    assert.equal(count(answer, 'event at'), 200)
    assert.equal(answer:match '"more":(%d+)', '200')
  end)

  it('what is not kept any more is said', function()
    local events, _, add = new({ event 'a' }, 2 ^ 20)
    for time = 1, 100 do add(time) end
    local answer = events:answer 'from=90'
    assert.equal(answer:match '"gone":(.*)}', 'null')
    assert.equal(count(answer, 'event at'), 10)
    answer = events:answer 'from=0'
    local kept = count(answer, 'event at')
    assert(kept >= 50 and kept < 64, kept)
    assert.equal(tonumber(answer:match '"gone":(.*)}'), 1000 + (100 - kept) / 1e9)
  end)

  it('events that do not come here', function()
    local events, pass = new { event('a', { request = { counted = 1 } }), event('b', { route = { does = 'paired' } }) }
    assert(not pass)
    local answer = events:answer 'from=0'
    assert(answer:find('the kernel only counts a', 1, true), answer)
    assert(answer:find('the kernel itself takes b; with --capture=perf', 1, true), answer)
  end)

  it('pairs of a bucket', function()
    local stop = event('stop', { class = A + 1 })
    local events, pass, add = new { event 'start', stop }
    local keep = events:keep_pairs({ { event 'start' }, { stop } }, function(key) return 'key ' .. tonumber(key) end)
    local pairs_ = ffi.new('struct pair[3]')
    for i = 0, 2 do
      local p = pairs_[i]
      p.first_class, p.second_class, p.key = A, A + 1, i
      p.first_time, p.ns, p.second_time = 1000, 16 * i, 1000 + 16 * i
    end
    add(1000)
    local second = ffi.new 'struct event[1]'
    second[0].class, second[0].time = A + 1, 1016
    pass(second, 1)
    keep(pairs_, 3)
    local answer = events:answer 'from=0&to=2000&bucket=4'
    assert.equal(answer:match '"items":(.*),"more"', '[{"title":"0.016 us, start → stop, key 1",'
      .. '"text":"event at 1000\\u000aevent at 1016\\u000a"}]')
    assert.equal(count(events:answer 'from=0&bucket=-1', 'key 0'), 1)
    assert.equal(count(events:answer 'from=0&bucket=5', 'this event is not kept any more'), 1)
    assert.equal(count(events:answer 'from=1016&bucket=4', 'key'), 0)
    assert.equal(count(events:answer 'to=1015&bucket=4', 'key'), 0)
    assert.equal(count(events:answer 'bucket=4&start=start&stop=stop', 'key 1'), 1)
    assert.equal(count(events:answer 'bucket=4&start=stop', 'key'), 0)
  end)

  it('the slowest pairs of a report are kept longest', function()
    local events, _, add = new({ event 'start' }, 2 ^ 18)
    local keep = events:keep_pairs({ { event 'start' } }, function(key) return 'key ' .. tonumber(key) end)
    local pair = ffi.new('struct pair[1]')
    for i = 1, 1000 do
      add(i)
      pair[0].first_class, pair[0].second_class, pair[0].key = A, A, i
      pair[0].first_time, pair[0].second_time, pair[0].ns = i, i, i % 10 == 0 and 64 + i % 16 or 32 + i % 16
      keep(pair, 1)
      if i % 100 == 0 then events:end_report() end
    end
    local slow = events:answer 'bucket=6&to=100'
    assert.equal(count(slow, 'key'), 10)
    -- 10 slow pairs, of which 8 have their events; all of them are the same event.
    assert.equal(count(slow, 'event at'), 16)
    assert.equal(count(slow, 'this event is not kept any more'), 4)
    assert.equal(count(events:answer 'bucket=5&to=100', 'event at'), 0)
  end)

  it('slow pairs stay where the ring of pairs has none of them', function()
    local events, _, add = new { event 'start' }
    local keep = events:keep_pairs({ { event 'start' } }, function(key) return 'key ' .. tonumber(key) end)
    local pairs_ = ffi.new('struct pair[4096]')
    for i = 0, 4095 do pairs_[i].first_class, pairs_[i].second_class, pairs_[i].ns = A, A, 1 end
    add(5)
    pairs_[0].first_time, pairs_[0].second_time, pairs_[0].ns = 5, 5, 100
    keep(pairs_, 1)
    events:end_report()
    for i = 0, 4095 do pairs_[i].second_time, pairs_[i].ns = 6, 1 end
    for _ = 1, 70 do keep(pairs_, 4096) end
    local answer = events:answer 'bucket=6'
    assert.equal(count(answer, 'event at 5'), 2)
    assert(answer:find('"gone":1000', 1, true), answer)
  end)

  it('how many events came', function()
    local events, _, add = new { event 'a', event('b', { class = A + 1 }) }
    add(1, 2, 3)
    assert.same(events:take_counts(), { { event = 'a', events = 3 } })
    assert.same(events:take_counts(), {})
  end)

  it('events by words of their lines', function()
    local events, _, add = new { event 'a' }
    add(1, 2, 11, 21)
    assert.equal(count(events:answer 'from=0&to=99&has=1', 'event at'), 1)
    assert.equal(count(events:answer 'from=0&to=99&has=at&has=21', 'event at'), 1)
    assert.equal(count(events:answer 'from=0&to=99&has=a', 'event at'), 0)
    for time = 22, 300 do add(time) end
    assert(events:answer 'from=0&last=1':find('event at 300', 1, true))
  end)

  it('buckets of other histograms', function()
    local events, _, add = new { event 'a' }
    add(1, 2)
    local answer = events:answer 'from=0&to=9&bucket=4'
    assert.equal(count(answer, 'event at'), 2)
    assert(answer:find('which events are behind a bucket is only known of pairs', 1, true), answer)
  end)
end)
