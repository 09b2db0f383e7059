-- SPDX-License-Identifier: GPL-2.0-only
local ffi = require 'ffi'
local dry_run = require 'bpf.run.dry_run'
local explain = require 'lib.command.explain'
local options = require 'bindings.options.parser'
local sampling = require 'bindings.view.sampling'
local tables = require 'lib.table'
local C = ffi.C

--- An output that keeps what it gets.
local function collector()
  local parts = {}
  local out = { format = 'text' }
  function out.write(_, s) parts[#parts + 1] = s end
  function out.raw(_, s) parts[#parts + 1] = s end
  function out.printf(_, ...) parts[#parts + 1] = string.format(...) end
  function out.table(_, spec, rows) parts[#parts + 1] = tables.render(spec, rows) end
  function out.text() return table.concat(parts) end
  return out
end

local function script(name, profiler)
  return { name = name, profiler = profiler, spec = assert(options.declare(profiler)) }
end

local waits = script('waits', {
  summary = 'Measure waits',
  attributes = { 'key', 'untraced' },
  options = {
    than = { type = 'duration', help = 'longer ones' },
    detail = { type = 'string', optional_value = '', argument = 'WHAT', help = 'events around' },
    which = { type = 'string', short = 'w', required = true, help = 'which' },
  },
  positional = { { name = 'file', required = false, help = 'where' } },
})
local trace = script('trace', { summary = 'Print events' })

local function field(name, type, offset, size, flags, elem_size, count)
  return { name = name, type = type, offset = offset, size = size, flags = flags, elem_size = elem_size or size,
    count = count or 1 }
end

--- The parameters of an event: members of its attribute.
local function request(attr)
  local new = ffi.new 'struct event_request'
  new.attr.sample_period = 1
  for name, value in pairs(attr) do new.attr[name] = value end
  return new
end

local wakeup = {
  name = 'sched:sched_wakeup', route = {}, request = request { type = 2, config = 317 }, tracepoint = true,
  attrs = { key = 'pid', stack = true },
  list = {
    field('common_type', 'unsigned short', 0, 2, C.FIELD_COMMON),
    field('comm', 'char[16]', 8, 16, C.FIELD_STRING + C.FIELD_ARRAY, 1, 16),
    field('pid', 'pid_t', 24, 4, C.FIELD_SIGNED),
    field('regs', 'u64[6]', 32, 48, C.FIELD_ARRAY, 8, 6),
    field('name', '__data_loc char[]', 80, 4, C.FIELD_DYNAMIC + C.FIELD_STRING, 1),
    field('args', '__data_loc u32[]', 84, 4, C.FIELD_DYNAMIC, 4),
    field('where', 'void *', 88, 8, C.FIELD_POINTER),
  },
}
local clock = {
  name = 'cpu-clock', route = {}, filters = {}, attrs = {}, list = {},
  request = request { type = 1, freq = 1, sample_freq = 4000 },
}

local function given(text) return { option = '-e', text = text } end

it('the help of events is exact', function()
  local out = collector()
  explain.print(out, { waits }, { given 'sched:sched_wakeup//key=pid/', given "a:b/c == 'd'/" }, {
    { event = wakeup, print_fmt = '"comm=%s", REC->comm' },
    { event = clock },
  })
  assert.equal([=[
waits: Measure waits
  profscript waits -e sched:sched_wakeup//key=pid/ -e 'a:b/c == '\''d'\''/' [-k EXPR]
      [--detail[=WHAT]] [--than T] -w TEXT [FILE]
      attributes: key=EXPR untraced

attributes of waits, after the filter: EVENT/FILTER/key=pid/
  key=EXPR         value by which events are grouped or paired
  untraced         print the event only in details

attributes of all profilers
  alias=TEXT       name of the event in tables
  cpus=LIST        only on these CPUs
  exec=EXPR        evaluate for each event; may print with printf()
  freq=N           take N samples per second
  max-stack[=N]    record stacks of at most N frames
  period=N         sample every Nth event
  pull=TEXT        take the event from other machines: PORT, HOST:PORT, unix:PATH, vsock:CID:PORT, FILE
  push=TEXT        send the event to PORT, HOST:PORT, unix:PATH, vsock:PORT, a device or file, not to the profiler
  stack            record the stack of each event
  vm=TEXT          with pull=: the sender is this guest (UUID, pid or name), whose CPUs are threads here

members of every event: _time _stack _pid _tid _cpu _node _machine _comm _event _period _key

sched:sched_wakeup: id 317
field       type              offset size what
----------- ----------------- ------ ---- ---------------------------------
comm        char[16]               8   16 string
pid         pid_t                 24    4 signed
regs        u64[6]                32   48 array of 6, 8 bytes each
name        __data_loc char[]     80    4 string of any length
args        __data_loc u32[]      84    4 array of any length, 4 bytes each
where       void *                88    8 pointer
common_type unsigned short         0    2 unsigned, common
print format: "comm=%s", REC->comm

cpu-clock: type 1, config 0, 4000 samples per second; it has no fields of its own
]=], out.text())
end)

it('without a profiler all are shown, each attribute once', function()
  local out = collector()
  explain.print(out, { trace, waits }, { given 'cpu-clock' }, { { event = clock }, { event = clock } })
  local text = out.text()
  assert.truthy(text:find('trace: Print events\n  profscript trace -e cpu-clock\n\nwaits: Measure waits\n', 1, true))
  assert.truthy(text:find('\nattributes of some profilers, after', 1, true))
  assert.equal(1, select(2, text:gsub('cpu%-clock: type', '')))
end)

it('how often an event is taken', function()
  assert.equal('every event', sampling.describe { request = request {} })
  assert.equal('every 10th event', sampling.describe { request = request { sample_period = 10 } })
  assert.equal('99 samples per second', sampling.describe { request = request { freq = 1, sample_freq = 99 } })
end)

it('a dry run shows what would be opened', function()
  local run = {
    name = 'trace',
    opt = { mmap_pages = 64, watermark = 50, cpus = '0-3' },
    workload = {},
    followers = {},
    own_threads = function() return { 42 } end,
    events = { list = { wakeup, clock } },
    programs = {},
  }
  wakeup.filters = { kernel = 'pid > 1', user = 'pid + 1 > 2' }
  assert.equal([[
trace: 2 events
  sched:sched_wakeup: id 317, every event
    filter in the kernel: (pid > 1) && (common_pid != 42 || common_flags & 24)
    filter in profscript: pid + 1 > 2
    attributes: key=pid, stack
  cpu-clock: type 1, config 0, 4000 samples per second
target: CPUs 0-3
rings: one per CPU, 64 pages (256 KiB) each, read when 50% full
]], dry_run.text(run))

  run.opt, run.is_recorded = { input = 'perf.data' }, true
  run.events.list = { clock }
  assert.equal([[
trace: 1 event
  cpu-clock: type 1, config 0
source: recording perf.data
]], dry_run.text(run))
end)

it('a dry run names its target', function()
  local function target(opt, words) return table.concat({ dry_run.target(opt, words or {}) }, '; ') end
  assert.equal('all online CPUs; one per CPU', target {})
  assert.equal('threads 3,4; one per thread', target { tids = { 3, 4 } })
  assert.equal('threads 3, and their children; one per CPU', target { tids = { 3 }, inherit = true })
  assert.equal('threads 3, on CPUs 0-1; one per CPU', target { tids = { 3 }, cpus = '0-1' })
  assert.equal('all threads of processes 5, and their children; one per CPU', target { pids = { 5 } })
  assert.equal('all threads of processes 5; one per thread', target { pids = { 5 }, inherit = false })
  assert.equal('the workload ls -l, and its children; one per CPU', target({}, { 'ls', '-l' }))
  assert.equal('cgroups a,b on all online CPUs; one per CPU', target { cgroups = { 'a', 'b' } })
end)
