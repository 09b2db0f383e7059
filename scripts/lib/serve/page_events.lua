-- SPDX-License-Identifier: GPL-2.0-only
--- The events behind the page of --serve: the newest events and pairs of a run are kept, and printed as lines when the
--- page asks for those of a time or of a bucket.
local buffer = require 'bindings.base.buffer'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local json = require 'bindings.base.json'
local printer = require 'bindings.print.printer'
local run_queues = require 'lib.serve.run_queues'
local text = require 'bindings.base.text'

local C = ffi.C
local page_events = {}

local KEPT_BYTES = 64 * 2 ^ 20
local KEPT_PAIRS = 2 ^ 18
local MAX_ITEMS = 200 -- of an answer
local MAX_READ = 10000 -- events that are searched for words
local MAX_QUEUED = 50000 -- events that a live run reads for the queues of a time: more of them would cost it events
local MAX_TEXT = 2 ^ 18 -- bytes of an answer, which stacks can make long

local SLOWEST = 8 -- pairs of a report whose events are kept as text
local SLOW_BYTES = 16 * 2 ^ 20 -- of these texts

local PAIR_SIZE = ffi.sizeof 'struct pair'

--- The pairs of a matcher.
---@class KeptPairs
---@field list ffi.cdata* struct pair[KEPT_PAIRS], a ring
---@field n integer pairs so far
---@field aliases table<integer, string> of the events by class
---@field key_text fun(key: ffi.cdata*): string
---@field slowest ffi.cdata* struct pair[SLOWEST], those of the current report, of which n_slowest are used
---@field floor number ns: faster pairs are not among them
---@field slow SlowPair[] those of the reports before, in the order of time
---@field slow_bytes integer

---@class SlowPair
---@field first_class integer
---@field second_class integer
---@field second_time number
---@field ns number
---@field key string
---@field text string its events

---@class PageEvents
---@field run Run
---@field pairs KeptPairs[]
---@field has_queues? boolean the kept events say how many tasks wait for a CPU
---@field seen_of? ffi.cdata* double[] by class
---@field lost number events of the run, as of its last report
local PageEvents = {}
PageEvents.__index = PageEvents

---@param run Run
---@return PageEvents
function page_events.new(run) return setmetatable({ run = run, pairs = {}, lost = 0 }, PageEvents) end

--- Keeps the events of batches from now on. Called when the events are open.
---@return Pass? pass nil if no event comes here
function PageEvents:pass()
  self.rows = ffi.gc(C.rows_new(KEPT_BYTES), C.rows_free)
  local n, missing, seen = 0, {}, {}
  for _, event in ipairs(self.run.events.list) do
    local why = event.request.counted == 1 and 'the kernel only counts %s'
      or event.route.does and 'the kernel itself takes %s; with --capture=perf, they are kept here'
    if why and not seen[event.alias] then
      seen[event.alias] = true
      if not missing[why] then
        missing[why] = {}
        missing[#missing + 1] = why
      end
      table.insert(missing[why], event.alias)
    elseif not why and event.class then
      local status = n == 0 and C.rows_add_table(self.rows, event.class)
        or C.rows_share_table(self.rows, event.class, 0)
      if status < 0 then failure.raise '--serve: out of memory' end
      n = n + 1
    end
  end
  self.missing, self.has_rows, self.has_queues = {}, n > 0, run_queues.has(self.run.events.list)
  for i, why in ipairs(missing) do self.missing[i] = why:format(table.concat(missing[why], ', ')) end
  if n == 0 then return end
  local size = 0
  for _, event in ipairs(self.run.events.list) do size = math.max(size, (event.class or 0) + 1) end
  local rows, seen_of = self.rows, ffi.new('double[?]', size)
  self.seen_of = seen_of
  return function(list, count)
    C.rows_add(rows, list, count)
    for i = 0, count - 1 do
      local class = list[i].class
      if class < size then seen_of[class] = seen_of[class] + 1 end
    end
  end
end

--- Returns how many events came since the last call, as rows by event.
---@return { event: string, events: integer }[]
function PageEvents:take_counts()
  local rows, by_alias = {}, {}
  for _, event in ipairs(self.seen_of and self.run.events.list or {}) do
    local n = event.class and self.seen_of[event.class] or 0
    if n > 0 then
      local row = by_alias[event.alias]
      if not row then
        row = { event = event.alias, events = 0 }
        rows[#rows + 1], by_alias[event.alias] = row, row
      end
      row.events, self.seen_of[event.class] = row.events + n, 0
    end
  end
  return rows
end

--- Puts a pair among the slowest ones of the current report.
local function keep_slowest(kept, p)
  local at, slowest = kept.n_slowest, kept.slowest
  if at < SLOWEST then
    kept.n_slowest = at + 1
  else
    at = 0
    for i = 1, SLOWEST - 1 do
      if slowest[i].ns < slowest[at].ns then at = i end
    end
  end
  ffi.copy(slowest + at, p, PAIR_SIZE)
  if kept.n_slowest < SLOWEST then return end
  kept.floor = math.huge
  for i = 0, SLOWEST - 1 do kept.floor = math.min(kept.floor, slowest[i].ns) end
end

--- Keeps the pairs of a matcher.
---@param stages Event[][]
---@param key_text fun(key: ffi.cdata*): string
---@return fun(pairs: ffi.cdata*, found: integer) keep takes struct pair *
function PageEvents:keep_pairs(stages, key_text)
  local kept = { list = ffi.new('struct pair[?]', KEPT_PAIRS), n = 0, key_text = key_text, aliases = {},
    slowest = ffi.new('struct pair[?]', SLOWEST), n_slowest = 0, floor = -1, slow = {}, slow_bytes = 0 }
  for _, stage in ipairs(stages) do
    for _, event in ipairs(stage) do kept.aliases[event.class] = event.alias end
  end
  self.pairs[#self.pairs + 1] = kept
  return function(found_pairs, found)
    for i = 0, found - 1 do
      ffi.copy(kept.list + kept.n % KEPT_PAIRS, found_pairs + i, PAIR_SIZE)
      kept.n = kept.n + 1
      if found_pairs[i].ns > kept.floor then keep_slowest(kept, found_pairs + i) end
    end
  end
end

--- Returns what prints an event as a line of text, whatever the format of the output is.
local function line_printer(self)
  local pending = buffer.new()
  local out = setmetatable({ format = 'text', text_buffer = function() return pending end }, { __index = self.run.out })
  local lines = printer.new(setmetatable({ out = out }, { __index = self.run }))
  return function(e)
    -- An error of the profiler's `describe` must not end the run because somebody looks at a page.
    local ok, problem = pcall(lines.print, lines, e)
    if not ok then pending:reset():put('(', tostring(problem), ')\n') end
    local shown = text.lines(tostring(pending))
    pending:reset()
    return shown
  end
end

--- Returns the time since the epoch, in seconds, of a time of the session.
local function wall(self, time)
  local sec, ns = self.run.out.clock(time)
  return sec + ns / 1e9
end

--- What the page gets.
---@class EventsAnswer
---@field items { title?: string, text: string }[]
---@field size integer bytes of their texts
---@field more integer that have no room
---@field notes string[]
---@field gone_ns number events until then are not kept any more; -inf: all are

local function has_room(answer) return #answer.items < MAX_ITEMS and answer.size < MAX_TEXT end

local function add(answer, title, shown)
  answer.items[#answer.items + 1] = { title = title, text = shown }
  answer.size = answer.size + #shown
end

--- Returns the first and the last row after a time and until another one.
local function range(self, from, to)
  if not self.has_rows then return 0, -1 end
  return C.rows_before(self.rows, 0, from + 1), C.rows_before(self.rows, 0, to + 1) - 1
end

--- Returns whether a line has all of these words.
local function has_all(line, words)
  for _, word in ipairs(words) do
    local at, to = line:find(word, 1, true)
    while at and (line:sub(at - 1, at - 1):find '[%w_]' or line:sub(to + 1, to + 1):find '[%w_]') do
      at, to = line:find(word, to + 1, true)
    end
    if not at then return false end
  end
  return true
end

--- Adds the events with the words of a question. To print all of them takes too long for a run that goes on.
local function add_found(self, question, answer, first, last)
  local stop = math.min(last, first + MAX_READ - 1)
  for i = first, stop do
    if not has_room(answer) then
      stop = i - 1
      break
    end
    local line = self.line(C.rows_of(self.rows, 0)[i])
    if has_all(line, question.has) then add(answer, nil, line) end
  end
  if stop < last then
    table.insert(answer.notes, ('these are among the first %d of %d events'):format(stop - first + 1, last - first + 1))
  end
end

local function add_events(self, question, answer)
  local first, last = range(self, question.from, question.to)
  if #question.has > 0 then return add_found(self, question, answer, first, last) end
  local n = last - first + 1
  if question.last then first = math.max(first, last - MAX_ITEMS + 1) end
  for i = first, last do
    if not has_room(answer) then break end
    add(answer, nil, self.line(C.rows_of(self.rows, 0)[i]))
  end
  answer.more = n - #answer.items
end

--- Returns the line of an event of a pair.
local function line_of_pair(self, class, time, tid, cpu)
  local first, last = range(self, time - 1, time)
  for i = first, last do
    local e = C.rows_of(self.rows, 0)[i]
    if e.class == class or e.tid == tid and e.cpu == cpu then return self.line(e) end
  end
  return '(this event is not kept any more)\n'
end

local function lines_of_pair(self, p)
  return line_of_pair(self, p.first_class, p.first_time, p.first_tid, p.first_cpu)
    .. line_of_pair(self, p.second_class, p.second_time)
end

--- Keeps the events of the slowest pairs of a report as text, longer than others. Without room the faster half of
--- them goes.
local function end_report(self, kept)
  for i = 0, kept.n_slowest - 1 do
    local p = kept.slowest[i]
    local one = { first_class = p.first_class, second_class = p.second_class, second_time = p.second_time, ns = p.ns,
      key = kept.key_text(p.key), text = lines_of_pair(self, p) }
    kept.slow[#kept.slow + 1], kept.slow_bytes = one, kept.slow_bytes + #one.text
  end
  kept.n_slowest, kept.floor = 0, -1
  if kept.slow_bytes <= SLOW_BYTES then return end
  table.sort(kept.slow, function(a, b) return a.ns > b.ns end)
  for i = #kept.slow, math.floor(#kept.slow / 2) + 1, -1 do
    kept.slow_bytes = kept.slow_bytes - #kept.slow[i].text
    kept.slow[i] = nil
  end
end

--- Ends a report.
function PageEvents:end_report()
  self.line = self.line or line_printer(self)
  for _, kept in ipairs(self.pairs) do end_report(self, kept) end
end

--- Adds a pair if it is one of the question; slow: the same pair with the text of its events, if it was slow.
local function add_pair(self, kept, question, answer, p, slow)
  local start, stop = kept.aliases[p.first_class], kept.aliases[p.second_class]
  if p.second_time <= question.from or p.second_time > question.to or p.ns < question.low or p.ns >= question.high
    or question.start and question.start ~= start or question.stop and question.stop ~= stop then
    return
  end
  if not has_room(answer) then
    answer.more = answer.more + 1
    return
  end
  add(answer, ('%.3f us, %s → %s, %s'):format(p.ns / 1000, start, stop, slow and slow.key or kept.key_text(p.key)),
    slow and slow.text or lines_of_pair(self, p))
end

local function add_pairs(self, kept, question, answer)
  question.low, question.high = 0, 1
  if question.bucket >= 0 then question.low, question.high = 2 ^ question.bucket, 2 ^ (question.bucket + 1) end
  local first = math.max(0, kept.n - KEPT_PAIRS)
  local gone = first > 0 and kept.list[kept.n % KEPT_PAIRS].second_time or -math.huge
  local slow = {}
  for _, one in ipairs(kept.slow) do
    if one.second_time < gone then
      add_pair(self, kept, question, answer, one, one)
    else
      slow[('%.0f %.0f'):format(one.second_time, one.ns)] = one
    end
  end
  for i = first, kept.n - 1 do
    local p = kept.list[i % KEPT_PAIRS]
    add_pair(self, kept, question, answer, p, p.ns >= question.low and p.ns < question.high
      and slow[('%.0f %.0f'):format(p.second_time, p.ns)] or nil)
  end
  if gone > question.from then answer.gone_ns = math.max(answer.gone_ns, gone) end
end

--- Returns the numbers and texts of a question: NAME=VALUE&..., where % begins two hexadecimal digits.
local function parse(question)
  local values, has = {}, {}
  for name, value in question:gmatch '([^&=]+)=([^&]*)' do
    values[name] = value:gsub('+', ' '):gsub('%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end)
    if name == 'has' then has[#has + 1] = values[name] end
  end
  local bucket = tonumber(values.bucket) or values.bucket
  return { queues = tonumber(values.queues), from = tonumber(values.from) or -math.huge,
    to = tonumber(values.to) or math.huge, start = values.start, stop = values.stop, bucket = bucket,
    has = has, last = values.last }
end

local function list_json(list)
  local texts = {}
  for i, one in ipairs(list) do texts[i] = text.json(one) end
  return '[' .. table.concat(texts, ',') .. ']'
end

local function json_of(self, answer)
  local items = {}
  for i, item in ipairs(answer.items) do
    items[i] = ('{"title":%s,"text":%s}'):format(item.title and text.json(item.title) or 'null', text.json(item.text))
  end
  return ('{"items":[%s],"more":%d,"notes":%s,"gone":%s}'):format(table.concat(items, ','), answer.more,
    list_json(answer.notes), json.value(answer.gone_ns > -math.huge and wall(self, answer.gone_ns) or nil))
end

--- Returns how many tasks waited for each CPU in the time of a question, by parts.
---@param asked table
---@return string json
function PageEvents:queues(asked)
  local notes, limit = {}, self.run.is_recorded and math.huge or MAX_QUEUED
  local found = run_queues.read(self.run.events.list, self.rows, asked, limit)
  if found.is_partial then
    notes[#notes + 1] = self.lost > 0 and 'too many switches are missing, among the events that were lost'
      or 'only the switches of some tasks are seen, which do not say who waits'
  end
  if not found.has_wakeups then
    notes[#notes + 1] = 'without sched:sched_wakeup, only tasks that were preempted are seen to wait'
  end
  if found.is_cut then notes[#notes + 1] = 'the events before are not read, or not kept any more' end
  return ('{"queues":{"from":%.6f,"to":%.6f,"cpus":%s},"notes":%s}'):format(wall(self, found.from),
    wall(self, found.to), found.json, list_json(notes))
end

--- Answers a question: from=NS&to=NS for the events after a time and until another one; also bucket=N for the pairs
--- that took 2^N ns to 2^(N + 1), whose events have the aliases start= and stop=; another bucket is not one of pairs.
--- has=WORD, which may occur several times: only events whose lines have it. last=1: the last ones, not the first.
--- queues=N: how many tasks waited for each CPU, in N parts of the time.
---@param question string
---@return string json
function PageEvents:answer(question)
  local asked, stats = parse(question), ffi.new 'struct rows_stats'
  if asked.queues and self.has_queues then return self:queues(asked) end
  local answer = { items = {}, size = 0, more = 0, notes = {}, gone_ns = -math.huge }
  self.line = self.line or line_printer(self)
  for _, note in ipairs(self.missing) do table.insert(answer.notes, note) end
  C.rows_read_stats(self.rows, stats)
  if stats.dropped_until > asked.from then answer.gone_ns = stats.dropped_until end
  if tonumber(asked.bucket) and #self.pairs > 0 then
    for _, kept in ipairs(self.pairs) do add_pairs(self, kept, asked, answer) end
  else
    if asked.bucket and self.has_rows then
      table.insert(answer.notes, 'which events are behind a bucket is only known of pairs: these are all of its time')
    end
    add_events(self, asked, answer)
  end
  return json_of(self, answer)
end

return page_events
