-- SPDX-License-Identifier: GPL-2.0-only
--- The expected output of `multi-trace` for a recording, computed from the text of `perf script --ns -G -F +pid`.
---   luajit latency.lua PEER OURS [interval=NS] [perins] [than=NS] [wall] EVENT:KEY...
--- EVENT:KEY is a stage; KEY is the name of a number in the event's text, or TID, or CPU. OURS is the
--- output of multi-trace --format json. Counts, totals, minima, maxima and the counts of than are equal;
--- quantiles are within 1 % of the values next to their rank. wall: the reports have the wall time, which
--- PEER does not contain. Prints the first difference and exits with status 1.
---   luajit latency.lua PEER OURS print (than=NS | lower=NS) EVENT:KEY...
--- OURS is the output of `trace`: prints the lines of the pairs beyond the threshold.
local cjson = require 'cjson'

local stages, settings = {}, {}
for i = 3, #arg do
  local name, key = arg[i]:match '^([%w_]+:[%w_]+):([%w_]+)$'
  if name then
    stages[#stages + 1] = { name = name, alias = name:match ':(.*)$', key = key }
  else
    local option, value = arg[i]:match '^([%a_]+)=?(%d*)$'
    settings[option] = tonumber(value) or true
  end
end

--- { time (ns since the first event), name, key value by stage }
local function peer_events(path)
  local events, first = {}, nil
  for line in io.lines(path) do
    local tid, cpu, sec, nsec, name, text =
      line:match '/(%-?%d+)%s+%[(%d+)%]%s+(%d+)%.(%d+):%s+([%w_]+:[%w_]+): ?(.*)$'
    if tid then
      local time = tonumber(sec) * 1e9 + tonumber(nsec)
      first = first or time
      local e = { time = time - first, name = name, keys = {}, index = #events + 1 }
      for i, stage in ipairs(stages) do
        e.keys[i] = stage.key == 'TID' and tid or stage.key == 'CPU' and tostring(tonumber(cpu))
          or (' ' .. text):match(' ' .. stage.key .. '=(%-?%d+)')
      end
      events[#events + 1] = e
    end
  end
  return events, first
end

--- { time, ns, stage, key, first, second } of each pair, in the order of the second events.
local function find_pairs(events)
  local stored, found = {}, {}
  for _, e in ipairs(events) do
    for i, stage in ipairs(stages) do
      local key = e.keys[i]
      if stage.name == e.name then
        if i > 1 then
          local before = stored[key]
          stored[key] = nil
          if before and before.stage == i - 1 and before.event.time < e.time then
            found[#found + 1] = { time = e.time, ns = e.time - before.event.time, stage = i, key = key,
              first = before.event, second = e }
          end
        end
        if i < #stages then stored[key] = { stage = i, event = e } end
      end
    end
  end
  return found
end

local function fail(...)
  print((...):format(select(2, ...)))
  os.exit(1)
end

local events, first_time = peer_events(arg[1])
local found = find_pairs(events)
assert(#found > 0, 'no pairs')

if settings.print then
  local lines = {}
  for line in io.lines(arg[2]) do lines[#lines + 1] = line end
  for _, pair in ipairs(found) do
    if pair.ns > (settings.than or math.huge) or pair.ns < (settings.lower or 0) then
      print(lines[pair.first.index])
      print(lines[pair.second.index])
    end
  end
  os.exit(0)
end

local function row_name(time, key, stage)
  return ('%s %s %s'):format(settings.wall and '-' or ('%.6f'):format(time), settings.perins and key or '-', stage)
end

--- Latencies by the names of their rows.
local expected = {}
for _, pair in ipairs(found) do
  local report = events[#events].time
  if settings.interval then
    report = math.min(report, (math.floor(pair.time / settings.interval) + 1) * settings.interval)
  end
  local at = row_name(math.floor((first_time + report) / 1000) / 1e6, pair.key, pair.stage)
  expected[at] = expected[at] or {}
  table.insert(expected[at], pair.ns)
end

local function check(row, list)
  table.sort(list)
  local total, over = 0, 0
  for _, ns in ipairs(list) do
    total = total + ns
    if settings.than and ns > settings.than then over = over + 1 end
  end
  local want = { calls = #list, total_ns = total, min_ns = list[1], max_ns = list[#list],
    than = settings.than and over }
  for name, value in pairs(want) do
    if value and row[name] ~= value then fail('%s is %s, not %s', name, tostring(row[name]), value) end
  end
  local squares = 0
  for _, ns in ipairs(list) do squares = squares + (ns - total / #list) ^ 2 end
  local stddev = math.sqrt(squares / #list)
  if math.abs(row.stddev_ns - stddev) > 1e-6 * stddev then fail('stddev_ns is %s, not %s', row.stddev_ns, stddev) end
  for name, q in pairs { p50_ns = 0.5, p95_ns = 0.95, p99_ns = 0.99 } do
    local rank = q * #list
    local low = list[math.max(1, math.floor(rank))] * 0.99
    local high = list[math.min(#list, math.ceil(rank) + 1)] * 1.01
    if row[name] < low or row[name] > high then
      fail('%s is %s, not in %s to %s (%d values)', name, row[name], low, high, #list)
    end
  end
end

local rows = 0
for line in io.lines(arg[2]) do
  local row = cjson.decode(line)
  if row.table then
    local stage
    for i = 2, #stages do
      if stages[i - 1].alias == row.start and stages[i].alias == row.stop then stage = stage or i end
    end
    local at = row_name(row.time, tostring(row.key), tostring(stage))
    if not expected[at] then fail('no such row is expected: %s', line) end
    check(row, expected[at])
    rows = rows + 1
  end
end
for _ in pairs(expected) do rows = rows - 1 end
if rows ~= 0 then fail('%d rows are missing', -rows) end
