-- SPDX-License-Identifier: GPL-2.0-only
--- Compares the output of `profscript trace` for a recording with that of `perf script`.
---   luajit compare.lua text|json|csv PEER OURS
--- PEER: output of `perf script --ns -G -F +pid`; OURS: output of trace in that format. Both become lists of
--- { time (ns, text), comm, pid, tid, cpu, event, fields }, which must be equal and in the same order. Otherwise
--- prints the first differences and exits with status 1.
---
--- Intended differences:
---   - perf prints ":TID" for a task without a known name; we print "<...>".
---   - perf calls the idle task "swapper" and pads names to 16; so do we, but padding is removed here.
---   - text rounds times to us, perf script --ns prints all digits: they are rounded here.
---   - perf prints the address at which a sample without payload was taken; we print only its period.
---   - perf looks kernel addresses up in the running kernel, which need not be the recorded one; we
---     print the address.
---   - perf does not know the constants of some enumerations, and prints 0x2 where we print "be" or "TCP_SYN_SENT".
local bit = require 'bit'
local ffi = require 'ffi'

ffi.cdef 'unsigned long long strtoull(const char *, char **, int);'

local function u64(text, base) return ffi.C.strtoull(text, nil, base or 10) end

local function lines(path)
  local list = {}
  for line in assert(io.open(path, 'rb')):lines() do list[#list + 1] = line end
  return list
end

local function name_of(comm) return comm:match '^:%d+$' and '<...>' or comm end

--- "         comm  pid/tid   [cpu]  sec.nsec:  [period] event: fields"
local function peer_event(line)
  local comm, pid, tid, rest = line:match '^%s*(.-)%s+(%-?%d+)/(%-?%d+)%s+(.*)$'
  local cpu, sec, nsec, event, fields = rest:match '^%[(%d+)%]%s+(%d+)%.(%d+):%s+([%w_]+:[%w_]+): ?(.*)$'
  local e = { comm = name_of(comm), pid = pid, tid = tid, cpu = cpu and tonumber(cpu) or -1 }
  if not event then
    cpu, rest = rest:match '^%[(%d+)%]%s+(.*)$', rest:gsub('^%[%d+%]%s+', '')
    sec, nsec, fields, event = rest:match '^(%d+)%.(%d+):%s+(%d+)%s+(%S+):'
    e.cpu = cpu and tonumber(cpu) or -1
  end
  assert(event, 'perf script: ' .. line)
  e.sec, e.nsec, e.event, e.fields = tonumber(sec), tonumber(nsec), event, (fields:gsub('%s+$', ''))
  return e
end

--- Whether perf's word has a number where ours has the name of a constant.
local function is_named(theirs, ours)
  local before, after = theirs:match '^([%a_]*=?)0x%x(.*)$'
  return before ~= nil and ours:sub(1, #before) == before and ours:sub(#ours - #after + 1) == after
    and ours:sub(#before + 1, #ours - #after):match '^%a[%a_]*$' ~= nil
end

--- Whether our fields match perf's, except for symbols and constants.
local function same_fields(theirs, ours)
  if theirs == ours then return true end
  local next_ours = ours:gmatch '%S+'
  for word in theirs:gmatch '%S+' do
    local our_word = next_ours()
    if word ~= our_word and not is_named(word, our_word or '') then
      local before, after = (our_word or ''):match '^(.-)0xffffffff%x%x%x%x%x%x%x%x(.*)$'
      local symbol = before and word:sub(1, #before) == before and word:sub(#before + 1, -#after - 1)
      if not symbol or symbol .. after ~= word:sub(#before + 1) or not symbol:match '^[%a_][%w_.]*[+x%x]*$' then
        return false
      end
    end
  end
  return next_ours() == nil
end

local function rounded(e)
  local us = math.floor((e.nsec + 500) / 1000)
  return ('%d.%06d'):format(e.sec + math.floor(us / 1e6), us % 1e6)
end

-- For each format: ours(line) returns a list of words, peer(e) their expected values.
local formats = {}

formats.text = {
  peer = function(e)
    local cpu = e.cpu >= 0 and ('%03d'):format(e.cpu) or '---'
    return { e.comm, e.tid, cpu, rounded(e), e.event, e.fields }
  end,
  ours = function(line)
    local stamp, rest = line:match '^(%d+%-%d+%-%d+ %d+:%d+:%d+%.%d+)  (.*)$'
    local comm, tid, flags, cpu, time, event, fields =
      (rest or line):match '^%s*(.-)%s+(%-?%d+) (%S%S%S%S%S) %[(...)%] (%d+%.%d+): (%S+): (.*)$'
    assert(flags and (stamp == nil) == (rest == nil), line)
    return { comm, tid, cpu, time, event, (fields:gsub('%s+$', '')) }
  end,
}

--- The fields of a record as perf renders them, from their values. Only those in the recordings.
local render = {}

local STATES = { [0] = 'R', [1] = 'S', [2] = 'D', [4] = 'T', [8] = 't', [16] = 'X', [32] = 'Z', [64] = 'P',
  [128] = 'I' }

local function state(value)
  local bits = tonumber(value)
  return STATES[bits % 256] .. (bits >= 256 and '+' or '')
end

render['sched:sched_switch'] = function(f)
  return ('prev_comm=%s prev_pid=%s prev_prio=%s prev_state=%s ==> next_comm=%s next_pid=%s next_prio=%s'):format(
    f.prev_comm, f.prev_pid, f.prev_prio, state(f.prev_state), f.next_comm, f.next_pid, f.next_prio)
end
render['sched:sched_wakeup'] = function(f)
  return ('comm=%s pid=%s prio=%s target_cpu=%03d'):format(f.event_comm, f.event_pid, f.prio, f.target_cpu)
end
render['sched:sched_waking'] = render['sched:sched_wakeup']
render['sched:sched_wakeup_new'] = render['sched:sched_wakeup']
render['raw_syscalls:sys_enter'] = function(f)
  local args = {}
  for value in f.args:gmatch '[^,;]+' do args[#args + 1] = bit.tohex(u64(value)):gsub('^0+(.)', '%1') end
  return ('NR %s (%s)'):format(f.id, table.concat(args, ', '))
end
render['raw_syscalls:sys_exit'] = function(f) return ('NR %s = %s'):format(f.id, f.ret) end

--- For an event without renderer: the numbers that its text shows as name=NUMBER, as text, if they match ours.
local function same_numbers(f, text)
  local wrong = {}
  for name, value in text:gmatch '([%w_]+)=(%S+)' do
    local ours = f['event_' .. name] or f[name]
    if ours and ours:match '^%-?%d+$' then
      local number = value:match '^%-?%d+$' and u64(value)
      local hex = value:match '^[x%x]+$' and u64(value, 16) -- many print it without 0x
      if (number or hex) and u64(ours) ~= number and u64(ours) ~= hex then
        wrong[#wrong + 1] = name .. '=' .. ours
      end
    end
  end
  return #wrong == 0 and text or table.concat(wrong, ' ')
end

local function record_words(f, e)
  local fields = e.fields
  if render[f.event] then
    fields = render[f.event](f)
  elseif f.event:find ':' then
    fields = same_numbers(f, e.fields)
  end
  return { f.comm, f.pid, f.tid, tonumber(f.cpu), f.clock, f.event, fields }
end

local function record_peer(e)
  return { e.comm, e.pid, e.tid, e.cpu, ('%d.%09d'):format(e.sec, e.nsec):gsub('%.?0+$', ''), e.event, e.fields }
end

formats.json = {
  peer = record_peer,
  ours = function(line, e)
    local f = {}
    assert(line:match '^{.*}$', line)
    assert(require 'cjson'.decode(line))
    for name, value in line:gmatch '"([^"]+)":("[^"]*")' do f[name] = value:sub(2, -2) end
    for name, value in line:gmatch '"([^"]+)":(%-?[%d.]+)' do f[name] = value end
    for name, value in line:gmatch '"([^"]+)":%[([^%]]*)%]' do
      f[name] = value:gsub('"(%-?%d+)"', function(digits) -- beyond 2^53
        assert(math.abs(tonumber(digits)) > 2 ^ 53, line)
        return digits
      end)
    end
    return record_words(f, e)
  end,
}

-- A heading line precedes the first row of its event.
local headings, heading = {}, nil

formats.csv = {
  peer = record_peer,
  heading = function(line)
    if not line:match '^event,' then return false end
    heading = {}
    for name in line:gmatch '[^,]+' do heading[#heading + 1] = name end
    return true
  end,
  ours = function(line, e)
    local values, f = {}, {}
    for value in (line .. ','):gmatch '([^,]*),' do values[#values + 1] = value end
    headings[values[1]] = headings[values[1]] or heading
    assert(#headings[values[1]] == #values, line)
    for i, name in ipairs(headings[values[1]]) do f[name] = values[i] end
    return record_words(f, e)
  end,
}

--- perf's events by time, those of the same time in their order: perf prints events late that reached the file more
--- than a round late.
local function peer_events(path)
  local list = {}
  for _, line in ipairs(lines(path)) do
    if line ~= '' then
      list[#list + 1] = peer_event(line)
      list[#list].index = #list
    end
  end
  table.sort(list, function(a, b)
    if a.sec ~= b.sec then return a.sec < b.sec end
    if a.nsec ~= b.nsec then return a.nsec < b.nsec end
    return a.index < b.index
  end)
  return list
end

local format = formats[arg[1]]
local is_id = { ['-1'] = true, [':-1'] = true } -- of a reaped task
local peer = peer_events(arg[2])
local at, differences = 0, 0
for _, line in ipairs(lines(arg[3])) do
  if not (format.heading and format.heading(line)) then
    at = at + 1
    local want, got = peer[at] and format.peer(peer[at]), format.ours(line, peer[at] or { fields = '' })
    -- Of a task that has been reaped perf says no ids. The switch that follows has them.
    local is_reaped = want and peer[at].tid == '-1'
    for i = 1, #got do
      local same = want and (tostring(want[i]) == tostring(got[i]) or is_reaped and is_id[want[i]])
      if not same and not (want and i == #got and same_fields(want[i], got[i])) then
        differences = differences + 1
        print(('event %d: perf says %q, we say %q: %s'):format(at, tostring(want and want[i]), tostring(got[i]), line))
        break
      end
    end
  end
end
if at ~= #peer then print(('perf has %d events, we have %d'):format(#peer, at)) end
os.exit(differences == 0 and at == #peer and at > 0 and 0 or 1)
