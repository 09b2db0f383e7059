-- SPDX-License-Identifier: GPL-2.0-only
-- Details of pairs over events that are written as tables: no kernel, no recording. Times in these
-- tests are us.
local detail = require 'lib.detail'
local facade = require 'bindings.base.facade'

local FIELDS = {
  ['sched:sched_switch'] = { 'prev_pid', 'next_pid', 'prev_state', 'prev_comm' },
  ['sched:sched_wakeup'] = { 'pid', 'target_cpu' },
  ['sched:sched_migrate_task'] = { 'pid', 'orig_cpu', 'dest_cpu' },
  ['x:cpu_and_pid'] = { 'cpu', 'pid' },
}

local function event_of(name)
  local fields = {}
  for _, field in ipairs(FIELDS[name] or {}) do
    fields[field] = { name = field, size = 4, count = 1 }
  end
  return { name = name, class = name, fields = fields }
end

--- A history of a list of events; each has a time, a name, and other members that matter.
local function fake_history(list)
  local kinds, history = {}, { missing_until = -math.huge, released = 0 }
  for i, e in ipairs(list) do
    kinds[e.name] = kinds[e.name] or event_of(e.name)
    e._time, e._cpu, e._tid = e.time * 1000, e.cpu_ or 0, e.tid or 0
    e._pid, e.index = e.process or e._tid, i - 1
  end
  function history.check() end
  function history.retain() end
  function history:release() self.released = self.released + 1 end
  function history.find(_, time)
    local n = 0
    while list[n + 1] and list[n + 1]._time < time do n = n + 1 end
    return n
  end
  function history.at(_, i)
    local e = list[i + 1]
    if e then return e, kinds[e.name] end
  end
  function history.view(_, e) return e, kinds[e.name] end
  function history.index(_, e) return e.index, true end
  function history.copy(_, e) return e, true end
  function history.first(_, p) return p.first_event end
  return history
end

--- Shows the pair of events number first and second; returns the lines: margins and names. Events whose names begin
--- with G are of another machine.
local function show(text, list, first, second, env)
  env = env or {}
  local lines = {}
  local out = {
    is_overdue = function(_, n)
      env.printed = (env.printed or 0) + n
      return env.overdue and env.printed >= env.overdue or false
    end,
    warn = function(_, line) lines[#lines + 1] = line end,
    printf = function(_, format, ...) lines[#lines + 1] = (format:format(...):gsub('\n$', '')) end,
    print_event = function(_, ev, _, margin)
      lines[#lines + 1] = margin == true and '* ' .. ev.name or margin:gsub(' *$', '') .. ' ' .. ev.name
    end,
  }
  local details = facade.object(detail.new(assert(detail.parse(text)), {
    out = out,
    keyed_by_thread = env.keyed_by_thread,
    session = {
      preempted_state = function() return env.preempted or 256 end,
      clock_error = function(a, b) return a:find '^G' ~= b:find '^G' and (env.clock_error or 0) * 1000 or 0 end,
    },
  }))
  local history = fake_history(list)
  history.fetch = env.fetch
  details:open(history, function(ev) return ev.key or ev._cpu, ev.key ~= nil end)
  local a, b = list[first], list[second]
  local p = { first_time = a._time, key = env.key or 0, first_event = a }
  if env.lost then
    details:show_lost(p, env.lost * 1000)
    return lines
  end
  p.second_time = b._time
  details:show(p, b)
  for _, time in ipairs(env.advance or {}) do
    details:advance(time * 1000)
    lines[#lines + 1] = 'now ' .. time
  end
  return lines, details, history
end

describe('details of a pair', function()
  it('worked trace 15: the second event may be lost', function()
    local list = { { time = 1, name = 'A' }, { time = 2, name = 'U' }, { time = 5, name = 'V' } }
    assert.same({
      '* A',
      '| >= 3.000 us U',
      '| >=        3.000 us, event2 may be lost.',
    }, (show('', list, 1, nil, { lost = 4 })))
  end)

  it('marks what the clocks of two machines leave open', function()
    local list = { { time = 1, name = 'A' }, { time = 3, name = 'G1' }, { time = 4, name = 'U' },
      { time = 5, name = 'V' }, { time = 9, name = 'G2' } }
    assert.same({ '* A', '|+ 8.000 us G1', '|~ U', '| V', '* G2' }, (show('', list, 1, 5, { clock_error = 2 })))
    assert.same({ '* A', '|~+ ~8.000 us G1', '|~ U', '|~ V', '~ G2' }, (show('', list, 1, 5, { clock_error = 9 })))
  end)

  it('lets the history fetch the events around several pairs', function()
    local list = { { time = 1, name = 'A' }, { time = 3, name = 'B' }, { time = 6, name = 'U' },
      { time = 9, name = 'V' } }
    local fetched = {}
    local function fetch(_, from, to) table.insert(fetched, ('%g to %g'):format(from / 1000, to / 1000)) end
    local lines, details, history = show('-1us,+5us', list, 2, 3, { fetch = fetch })
    assert.same({}, lines)
    assert.equal(11000, details:due())
    details:show({ first_time = 1000, second_time = 9000, key = 0, first_event = list[1] }, list[4])
    details:advance(10999)
    assert.same({}, fetched)
    details:advance(14000)
    assert.same({ '0 to 14' }, fetched)
    assert.equal(4, history.released)
    assert.is_nil(details:due())
    assert.same({ '* B', '|+ 3.000 us', '* U', '| V', '`After 3.000 us', '* A', '|+ 8.000 us B', '| U', '* V' }, lines)
  end)

  it('are left out when the run should have ended, and nothing is fetched', function()
    local list = { { time = 1, name = 'A' }, { time = 3, name = 'B' } }
    local said = 'details: partial: interrupted, so the details of further pairs are not printed'
    local env = { overdue = 0, fetch = function() error 'fetched' end }
    local lines, details, history = show('+5us', list, 1, 2, env)
    details:show({ first_time = 1000, second_time = 3000, key = 0, first_event = list[1] }, list[2])
    details:advance(math.huge)
    assert.same({ said }, lines)
    assert.equal(4, history.released)
    assert.same({ said }, (show('', list, 1, 2, { overdue = 0 })))
  end)

  it('count the events that they have printed', function()
    local list = { { time = 1, name = 'A' }, { time = 2, name = 'U' }, { time = 3, name = 'B' } }
    local lines, details = show('', list, 1, 3, { overdue = 3 })
    assert.equal(3, #lines)
    details:show({ first_time = 1000, second_time = 3000, key = 0, first_event = list[1] }, list[3])
    assert.same({ 'details: partial: interrupted, so the details of further pairs are not printed' }, { lines[4] })
  end)

  it('worked trace 16: later events are shown when their time is over', function()
    local list = { { time = 1, name = 'A' }, { time = 3, name = 'B' }, { time = 6, name = 'U' },
      { time = 9, name = 'V' } }
    local lines, details, history = show('+5us', list, 1, 2, { advance = { 3, 6, 7.999, 8 } })
    assert.same({
      'now 3',
      'now 6',
      'now 7.999',
      '* A',
      '|+ 2.000 us',
      '* B',
      '| U',
      '`After 3.000 us',
      'now 8',
    }, lines)
    assert.equal(2, history.released)
    assert.equal(9, details:needs(9))
  end)

  it('keeps the events that a waiting pair needs', function()
    local list = { { time = 10, name = 'A' }, { time = 13, name = 'B' } }
    local _, details = show('+5us,-2us', list, 1, 2)
    assert.equal(8000, details:needs(12000))
    assert.equal(3000, details:needs(5000))
  end)

  it('worked trace 17: earlier events', function()
    local list = { { time = 98, name = 'T' }, { time = 100, name = 'U' }, { time = 104, name = 'A' },
      { time = 109, name = 'B' } }
    assert.same({ '-Previous -4.000 us', '| U', '* A', '|+ 5.000 us', '* B' }, (show('-5us', list, 3, 4)))
    table.remove(list, 2)
    assert.same({ '* A', '|+ 5.000 us', '* B' }, (show('-5us', list, 2, 3)))
  end)

  it('worked trace 18: events in quick succession are hidden', function()
    local list = { { time = 90, name = 'A' } }
    for _, time in ipairs { 100, 103, 105, 140, 142 } do
      list[#list + 1] = { time = time, name = 'at' .. time }
    end
    list[#list + 1] = { time = 200, name = 'B' }
    assert.same({
      '* A',
      '|+ 110.000 us at100',
      '|                 1 hidden',
      '| at105',
      '| at140',
      '|                 1 hidden',
      '* B',
    }, (show('hide<10us', list, 1, 7)))
  end)

  it('shows a single hidden event without a count', function()
    local list = { { time = 0, name = 'A' }, { time = 1, name = 'U' }, { time = 2, name = 'V' },
      { time = 20, name = 'W' }, { time = 30, name = 'B' } }
    assert.same({ '* A', '|+ 30.000 us U', '| V', '| W', '* B' }, (show('hide<10us', list, 1, 5)))
  end)

  it('prints the time every 50 lines', function()
    local list = { { time = 0, name = 'A' } }
    for i = 1, 100 do list[#list + 1] = { time = i, name = 'U' } end
    list[#list + 1] = { time = 200, name = 'B' }
    local lines = show('', list, 1, #list)
    assert.equal('|+ 200.000 us U', lines[2])
    assert.equal('| U', lines[3])
    assert.equal('|- 50.000 us U', lines[51])
    assert.equal('|- 100.000 us U', lines[101])
  end)

  it('says when events are missing', function()
    local list = { { time = 5, name = 'A' }, { time = 9, name = 'B' } }
    local _, details, history = show('+1us', list, 1, 2)
    history.missing_until = 5000
    local said
    details.out.printf = function(_, format) said = said or format end
    details:advance(math.huge)
    assert.truthy(said:match 'events are missing')
  end)

  it('follows the thread across CPUs', function()
    local wakeup, switch, migrate = 'sched:sched_wakeup', 'sched:sched_switch', 'sched:sched_migrate_task'
    local list = {
      { time = 0, name = wakeup, pid = 7, target_cpu = 1, cpu_ = 0, tid = 3 },
      { time = 1, name = 'U', cpu_ = 0, tid = 3 }, -- not on its cpu
      { time = 2, name = switch, cpu_ = 1, prev_pid = 8, next_pid = 9, prev_state = 1, prev_comm = 'eight', tid = 8 },
      { time = 5, name = migrate, cpu_ = 2, pid = 7, orig_cpu = 1, dest_cpu = 2, tid = 4 },
      { time = 6, name = 'U', cpu_ = 1, tid = 9 },
      { time = 7, name = switch, cpu_ = 2, prev_pid = 4, next_pid = 5, prev_state = 256, prev_comm = 'four', tid = 4 },
      { time = 10, name = switch, cpu_ = 2, prev_pid = 5, next_pid = 6, prev_state = 2, tid = 5,
        prev_comm = 'a name that is long' },
      { time = 12, name = 'x:cpu_and_pid', cpu_ = 0, cpu = 2, pid = 1, tid = 1 },
      { time = 15, name = switch, cpu_ = 2, prev_pid = 6, next_pid = 7, prev_state = 0, prev_comm = 'six', tid = 6 },
    }
    assert.same({
      '* ' .. wakeup,
      '|+ 15.000 us ' .. switch,
      '|        5.000 [migrate] ' .. migrate,
      '| ' .. switch, -- the start of the run of 4 is unknown
      '|        3.000 a name that ' .. switch,
      '| x:cpu_and_pid',
      '* ' .. switch,
    }, (show('samecpu', list, 1, 9, { keyed_by_thread = true, key = 7 })))
  end)

  it('notes the state changes of the thread', function()
    local switch, wakeup = 'sched:sched_switch', 'sched:sched_wakeup'
    local list = {
      { time = 0, name = 'enter', cpu_ = 0, tid = 7 },
      { time = 1, name = switch, cpu_ = 0, prev_pid = 7, next_pid = 8, prev_state = 1, prev_comm = 'seven', tid = 7 },
      { time = 2, name = switch, cpu_ = 0, prev_pid = 8, next_pid = 0, prev_state = 1, prev_comm = 'eight', tid = 8 },
      { time = 4, name = wakeup, cpu_ = 1, pid = 7, target_cpu = 1, tid = 9 },
      { time = 6, name = switch, cpu_ = 1, prev_pid = 9, next_pid = 7, prev_state = 0, prev_comm = 'nine', tid = 9 },
      { time = 9, name = switch, cpu_ = 1, prev_pid = 7, next_pid = 9, prev_state = 512, prev_comm = 'seven', tid = 7 },
      { time = 10, name = switch, cpu_ = 1, prev_pid = 9, next_pid = 7, prev_state = 1, prev_comm = 'nine', tid = 9 },
      { time = 11, name = switch, cpu_ = 1, prev_pid = 7, next_pid = 9, prev_state = 2, prev_comm = 'seven', tid = 7 },
      { time = 20, name = 'exit', cpu_ = 1, tid = 7 },
    }
    assert.same({
      '* enter',
      '|+ 20.000 us ' .. switch,
      '|        1.000 eight ' .. switch,
      '|        4.000 [wakeup] ' .. wakeup,
      '|        6.000 [running] ' .. switch,
      '|        3.000 seven ' .. switch,
      '|        1.000 nine ' .. switch,
      '|        1.000 seven ' .. switch,
      '* exit',
    }, (show('samecpu', list, 1, 9, { preempted = 512 })))
    -- Without a known run the states are shown.
    for _, e in ipairs(list) do
      if e.next_pid == 7 then e.next_pid = 6 end
    end
    local lines = show('samecpu', list, 1, 9, { preempted = 512 })
    assert.equal('|        9.000 [preempt] ' .. switch, lines[6])
    assert.equal('|       11.000 [waiting] ' .. switch, lines[8])
  end)

  it('selects by process, thread and key of either event', function()
    local list = {
      { time = 0, name = 'A', tid = 5, process = 4, cpu_ = 0, key = 1 },
      { time = 1, name = 'U', tid = 5, process = 4, cpu_ = 1, key = 2 },
      { time = 2, name = 'V', tid = 6, process = 4, cpu_ = 1, key = 1 },
      { time = 3, name = 'W', tid = 7, process = 7, cpu_ = 1, key = 2 },
      { time = 4, name = 'sched:sched_wakeup', pid = 5, target_cpu = 0, tid = 0, cpu_ = 1 },
      { time = 5, name = 'B', tid = 7, process = 7, cpu_ = 1, key = 1 },
    }
    local function names(text)
      local lines, found = show(text, list, 1, 6), {}
      for i = 2, #lines - 1 do
        local name = lines[i]:match '([%w_:]+)$'
        if name ~= 'us' then found[#found + 1] = name end
      end
      return table.concat(found, ' ')
    end
    assert.equal('U W sched:sched_wakeup', names 'sametid')
    assert.equal('U sched:sched_wakeup', names 'sametid,1')
    assert.equal('W', names 'sametid,2')
    assert.equal('U V W', names 'samepid')
    assert.equal('V', names 'samekey')
    assert.equal('U V W sched:sched_wakeup', names 'samekey,sametid,1,samepid,2')
    assert.equal('U V W sched:sched_wakeup', names '')
  end)
end)

describe('--detail', function()
  it('is read', function()
    assert.same({ before = 1e6, after = 2e3, hide = 5, cpu = true, pid = true, tid = true, key = true, second = true },
      detail.parse 'samecpu,samepid,sametid,samekey,2,-1ms,+2us,hide<5')
    assert.same({ before = 0, after = 7e3, hide = 0, first = true, second = true }, detail.parse '7us')
    assert.same({ before = 0, after = 0, hide = 0, first = true, second = true }, detail.parse '')
  end)
  it('refuses unknown input', function()
    local ok, message = detail.parse 'samecpus'
    assert.falsy(ok)
    assert.equal("--detail: unknown word 'samecpus' (expected "
      .. 'samecpu, samepid, sametid, samekey, 1, 2, hide<N, -N or +N)', message)
    ok, message = detail.parse '-3x'
    assert.falsy(ok)
    assert.truthy(message:match 'invalid duration')
  end)
end)
