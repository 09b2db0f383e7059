-- SPDX-License-Identifier: GPL-2.0-only
--- Serving: what a run reports, while it runs, for other programs: metrics for Prometheus (--prometheus) and for OTLP
--- (--otlp), and a page for browsers (--serve). Each report of the profiler becomes a snapshot, which threads of the C
--- side serve and send (runtime/serve/).
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'
local otlp = require 'lib.serve.otlp'
local output = require 'bindings.print.output'
local page = require 'lib.serve.page'
local page_events = require 'lib.serve.page_events'
local prometheus = require 'lib.serve.prometheus'
local registry = require 'lib.serve.registry'
local run_queues = require 'lib.serve.run_queues'
local sys = require 'bindings.base.sys'
local text = require 'bindings.base.text'
local version = require 'bindings.base.version'

local C = ffi.C
local serving = {}

local DEFAULT_INTERVAL = 1e9
local POLL_MS = 100
local FLUSH_MS = 3000 -- how long the end of a run waits for the receiver of OTLP
local METRICS = 'metrics'
local LOG_SIZE = 64 * 2 ^ 20 -- bytes of reports for pages that are opened later

---@class Serving: RowObserver, Follower
---@field run Run
---@field metrics Registry
---@field is_last? boolean the report is the last one
local Serving = {}
Serving.__index = Serving

local function wall()
  local sec, ns = sys.wall()
  return sec + ns / 1e9
end

---@param run Run
---@return Serving
function serving.new(run)
  local self = setmetatable({ reports = 0, puts = 0, said_replaced = {} }, Serving)
  self.metrics = registry.new(run.name, wall)
  if run.opt.serve then
    self.page, self.events_of, self.question = page.new(), {}, ffi.new('char[?]', C.HTTP_QUESTION)
  end
  self:again(run)
  return self
end

--- Shows the reports of this run. One without an interval gets one: without reports there is nothing to serve.
function Serving:again(run)
  self.run, self.events = run, self.page and self.events_of[run]
  run:want_interval(DEFAULT_INTERVAL)
  run.out:observe(self)
end

---@param spec TableSpec
---@param rows table[]
---@param at? number ns: the end of what the rows are about; nil: now
function Serving:table(spec, rows, at)
  local kinds = self.metrics:table(spec, rows)
  if self.page then
    self.has_tables = self.has_tables or #rows > 0
    self.page:table(spec, rows, kinds, at)
  end
end

--- Takes an object. One that is printed for an event, not in a report, has only the metrics that the profiler declares,
--- and is not on the page.
function Serving:record(name, fields, order)
  local in_report, declared, columns = self.run.report_time ~= nil, self.run.metrics[name], {}
  if not in_report and not declared then return end
  for _, field in ipairs(order) do
    if field ~= 'time' then
      columns[#columns + 1] = { name = field, metric = declared and declared[field] or not in_report and 'none' or nil }
    end
  end
  local spec = { name = name, columns = columns }
  if in_report then return self:table(spec, { fields }) end
  self.metrics:table(spec, { fields }, true)
end

--- Opens a server.
local function open_server(run, option, token)
  local err, bad = ffi.new 'struct error', ffi.new 'int32_t[1]'
  local server = C.http_server_open(run.opt[option], token, bad, err)
  if server == nil then
    local fail = bad[0] ~= 0 and failure.usage or err.unavailable ~= 0 and failure.unavailable or failure.raise
    fail('%s: --%s: %s', run.name, option, ffi.string(err.text))
  end
  return ffi.gc(server, C.http_server_close)
end

local function open_sender(run)
  local err, bad = ffi.new 'struct error', ffi.new 'int32_t[1]'
  local url = run.opt.otlp
  if not url:find '^https?://' then
    failure.usage("%s: --otlp: '%s' is not an URL that begins with http:// or https://", run.name, url)
  end
  if not url:find '^https?://[^/]+/.' then url = url:gsub('/$', '') .. '/v1/metrics' end
  local sender = C.http_sender_new(url, otlp.TYPE, bad, err)
  if sender == nil then
    local fail = bad[0] ~= 0 and failure.usage or err.unavailable ~= 0 and failure.unavailable or failure.raise
    fail('%s: --otlp: %s', run.name, ffi.string(err.text))
  end
  return ffi.gc(sender, C.http_sender_free), url
end

--- Tells an address, on stderr even if warnings go to a file.
local function tell(run, format, ...)
  output.complain(('%s: %s\n'):format(run.name, format:format(...)))
end

--- Says what does not work, on stderr even if the reports go to a file: with -o /dev/null nobody would see it.
local function warn(run, format, ...)
  local line = ('%s: %s'):format(run.name, format:format(...))
  if run.opt.output and not run.opt.quiet then
    output.complain(text.lines(line) .. '\n')
  else
    run.out:warn(line)
  end
end

local function set(server, path, kind, body)
  if C.http_server_set(server, path, kind, body, #body) ~= 0 then failure.raise 'out of memory' end
end

local function host_name() return ((sys.read '/proc/sys/kernel/hostname' or ''):gsub('%s+$', '')) end

--- Returns the words of the command without --serve, as JSON.
local function command_json()
  local words, list = {}, {}
  for word in (sys.read '/proc/self/cmdline' or ''):gmatch '([^%z]*)%z' do words[#words + 1] = word end
  local i = 1
  while i <= #words do
    if words[i] == '--serve' then
      i = i + 1
    elseif not words[i]:find '^%-%-serve=' then
      list[#list + 1] = text.json(words[i])
    end
    i = i + 1
  end
  return '[' .. table.concat(list, ',') .. ']'
end

--- Opens the page, which only those can read who know the token.
function Serving:open_page()
  local run, token = self.run, ffi.new('char[?]', C.HTTP_TOKEN)
  C.http_token(token)
  self.pages = open_server(run, 'serve', token)
  C.session_wake_on(run.session, C.http_server_question_fd(self.pages))
  set(self.pages, '/', 'text/html; charset=utf-8', require('lib.web.files')['page.html'])
  set(self.pages, '/about', 'application/json', ('{"profiler":%s,"host":%s,"version":%s,"command":%s,"queues":%s}')
    :format(text.json(run.name), text.json(host_name()), text.json(version), command_json(),
      tostring(run_queues.has(run.events.list))))
  tell(run, 'the page is at http://%s/?token=%s', ffi.string(C.http_server_address(self.pages)), ffi.string(token))
end

--- Listens, before the events are open: an address that does not work ends the run at once.
function Serving:open()
  local run = self.run
  if self.is_open then return end
  self.is_open = true
  if run.opt.prometheus then
    self.server = open_server(run, 'prometheus')
    if not run.opt.quiet then
      tell(run, 'metrics are at http://%s/%s', ffi.string(C.http_server_address(self.server)), METRICS)
    end
  end
  if run.opt.serve then self:open_page() end
  if run.opt.otlp then
    self.sender, self.url = open_sender(run)
    self.bytes = ffi.gc(C.bytes_new(), C.bytes_free)
    self.resource = { { 'service.name', 'profscript' }, { 'service.instance.id', run.name },
      { 'host.name', host_name() } }
  end
end

--- Sets the metrics about the run itself.
function Serving:about_run()
  local run, metrics, stats, used = self.run, self.metrics, ffi.new 'struct session_stats', sys.usage()
  C.session_read_stats(run.session, stats)
  metrics:set('profscript_info', 'gauge', 'The profiler that runs.', 1,
    { { 'version', version }, { 'profiler', run.name } })
  metrics:set('profscript_start_time_seconds', 'gauge', 'When the run began, since the epoch.', metrics.start)
  metrics:set('profscript_events_total', 'counter', 'Events of the run.',
    tonumber(stats.events) + run.in_kernel:count())
  metrics:set('profscript_lost_events_total', 'counter', 'Events that the kernel dropped.', tonumber(stats.lost))
  metrics:set('profscript_late_events_total', 'counter', 'Events that came out of order.', tonumber(stats.late))
  metrics:set('profscript_reports_total', 'counter', 'Reports of the profiler.', self.reports)
  for _, mode in ipairs { 'user', 'system' } do
    metrics:set('profscript_cpu_seconds_total', 'counter', 'CPU time that profscript itself has used.',
      used[mode] / 1e9, { { 'mode', mode } })
  end
  metrics:set('profscript_resident_memory_max_bytes', 'gauge', 'The most memory that profscript itself has used.',
    used.maxrss * 1024)
  metrics:set('profscript_series', 'gauge', 'Series that are kept.', metrics.n)
  metrics:set('profscript_dropped_series_total', 'counter', 'Series of reports that had no room.', metrics.dropped)
  if self.sender then
    local sent = self:sender_stats()
    metrics:set('profscript_otlp_sent_total', 'counter', 'Messages that the receiver of OTLP has taken.',
      tonumber(sent.sent))
    metrics:set('profscript_otlp_failed_total', 'counter', 'Messages that it has refused, or that were dropped.',
      tonumber(sent.failed + sent.dropped))
  end
end

function Serving:sender_stats()
  local stats = ffi.new 'struct http_sender_stats'
  C.http_sender_read(self.sender, stats)
  return stats
end

--- Says once what does not work.
function Serving:complain()
  local run, metrics = self.run, self.metrics
  if metrics.dropped > 0 and not self.said_dropped then
    self.said_dropped = true
    warn(run, 'more than %d series of metrics: others are dropped, and counted in profscript_dropped_series_total',
      metrics.max)
  end
  for name, labels in pairs((self.server or self.sender) and metrics.replaced or {}) do
    if not self.said_replaced[name] then
      self.said_replaced[name] = true
      warn(run, "rows of the table '%s' have %s: as metrics, only the last one is kept; a column of text would tell "
        .. 'them apart', name, labels == '' and 'no labels' or 'the same labels (' .. labels .. ')')
    end
  end
  if not self.sender or self.said_problem then return end
  local stats = self:sender_stats()
  if stats.attempts_failed > 0 then
    self.said_problem = true
    warn(run, 'cannot send metrics to %s: %s', self.url, ffi.string(stats.problem))
  end
end

--- Publishes what was reported.
function Serving:publish()
  self:about_run()
  if self.server then
    set(self.server, '/' .. METRICS, prometheus.TYPE, prometheus.text(self.metrics))
  end
  if self.sender then
    self.bytes.size, self.puts = 0, self.puts + 1
    otlp.put(self.bytes, self.metrics, wall(), self.resource, version)
    if self.bytes.failed ~= 0 or C.http_sender_put(self.sender, self.bytes.data, self.bytes.size) ~= 0 then
      failure.raise '--otlp: out of memory'
    end
  end
  self:complain()
  self.metrics:next_report()
end

--- Publishes what is known before the first report.
function Serving:start() self:publish() end

--- Adds the pass that keeps the events of a version of the script for the page.
function Serving:add_passes(passes, run)
  if not self.page then return end
  self.events = page_events.new(run)
  -- Only the version before can come back, if this one fails.
  self.events_of = { [self.run] = self.events_of[self.run], [run] = self.events }
  passes:add('export', 'serve', self.events:pass())
end

--- Returns what keeps the pairs of a matcher for the page; nil without one.
---@param stages Event[][]
---@param key_text fun(key: ffi.cdata*): string
---@return fun(pairs: ffi.cdata*, found: integer)?
function Serving:keep_pairs(stages, key_text) return self.events and self.events:keep_pairs(stages, key_text) end

--- Answers what pages ask. Called after each batch.
function Serving:poll()
  if not self.pages then return end
  local number = C.http_server_question(self.pages, self.question)
  while number ~= 0 do
    local answer = self.events:answer(ffi.string(self.question))
    if C.http_server_answer(self.pages, number, answer, #answer) ~= 0 then failure.raise '--serve: out of memory' end
    number = C.http_server_question(self.pages, self.question)
  end
end

-- What the page shows of a profiler without tables.
local COUNTS = { name = 'events by name', columns = { { name = 'event' }, { name = 'events' } } }
local COUNT_KINDS = { event = 'label', events = 'counter' }

--- Adds a report to those of the page.
function Serving:log()
  if self.events and not self.has_tables then self.page:table(COUNTS, self.events:take_counts(), COUNT_KINDS) end
  local run, stats = self.run, ffi.new 'struct session_stats'
  C.session_read_stats(run.session, stats)
  if self.events then self.events.lost = tonumber(stats.lost) end
  local sec, ns, is_wall = run.out.clock(run.report_time)
  local item = self.page:take(sec + ns / 1e9, is_wall ~= false, run.report_time,
    tonumber(stats.events) + run.in_kernel:count(), tonumber(stats.lost),
    not self.is_last and run.is_recorded and C.session_exact_time(run.session, run.report_time) or nil)
  if C.http_server_log(self.pages, item, #item, LOG_SIZE) ~= 0 then failure.raise '--serve: out of memory' end
end

--- Publishes a report.
function Serving:interval()
  self.reports = self.reports + 1
  if self.pages then self:log() end
  if self.events then self.events:end_report() end
  self:publish()
end

--- Waits for Ctrl-C, so that a recording, which is read at once, can be looked at.
function Serving:stay()
  if not self.pages or not self.run.is_recorded then return end
  self.run.out:flush()
  tell(self.run, 'all is read; the page stays until Ctrl-C')
  local fds = ffi.new('struct pollfd[1]', { { C.http_server_question_fd(self.pages), libc.POLLIN } })
  while not C.signals_stop_requested() do
    libc.poll(fds, 1, POLL_MS)
    self:poll()
  end
end

--- Publishes the last report, and ends all servers.
function Serving:stop()
  self.is_last = true
  self:interval()
  if self.sender then
    C.http_sender_flush(self.sender, FLUSH_MS)
    local stats = self:sender_stats()
    self:complain()
    C.http_sender_free(ffi.gc(self.sender, nil))
    local missing = self.puts - tonumber(stats.sent)
    if missing > 0 then
      warn(self.run, '%d of %d messages were not sent to %s', missing, self.puts, self.url)
    end
    self.sender = nil
  end
  self:stay()
  self:close()
end

--- Ends the server, also after a failure.
function Serving:close()
  if self.server then C.http_server_close(ffi.gc(self.server, nil)) end
  if self.pages then C.http_server_close(ffi.gc(self.pages, nil)) end
  self.server, self.pages = nil, nil
end

return serving
