-- SPDX-License-Identifier: GPL-2.0-only
local options = require 'bindings.options.parser'

local MS, S = 1e6, 1e9

local function flag(short)
  return { type = 'flag', short = short, help = 'h' }
end

-- Declarations like those of perf-prof's profilers, with their letters and meanings.
local detail = { type = 'string', optional_value = '', help = 'h' }
local than = { type = 'duration', help = 'h' }
local profilers = {
  trace = { options = { flame_graph = { type = 'string', argument = 'FILE', help = 'h' } } },
  top = { attributes = { 'key' }, options = { only_comm = flag(), interval = { default = '1s' } } },
  ['multi-trace'] = {
    attributes = { 'key' },
    options = {
      than = than,
      only_than = than,
      lower = than,
      detail = detail,
      cycle = flag(),
      perins = flag(),
      impl = { type = 'enum', values = { 'delay', 'pair', 'kmemprof' }, default = 'delay', help = 'h' },
      heatmap = { type = 'string', argument = 'FILE', help = 'h' },
      mmap_pages = { default = 64 },
    },
  },
  ['nested-trace'] = {
    options = {
      impl = { type = 'enum', values = { 'call', 'call-delay', 'delay' }, default = 'call-delay', help = 'h' },
    },
  },
  syscalls = { options = { than = than, perins = flag() } },
  ['task-state'] = {
    options = {
      interruptible = flag 'S',
      uninterruptible = flag 'D',
      than = than,
      perins = flag(),
      ptrace = flag(),
    },
  },
  kmemleak = {
    options = {
      alloc = { type = 'event', multiple = true, required = true, help = 'h' },
      free = { type = 'event', multiple = true, required = true, help = 'h' },
    },
    unsupported = { 'event' },
  },
  profile = {
    options = {
      freq = { type = 'integer', short = 'F', min = 1, max = 100000, default = 100, unit = 'Hz', help = 'h' },
      than = { type = 'number', min = 0, max = 100, unit = '%', help = 'h' },
      flame_graph = { type = 'string', argument = 'FILE', help = 'h' },
      exclude_user = flag(),
      exclude_kernel = flag(),
      user_callchain = { type = 'flag', default = true, help = 'h' },
      irqs_disabled = { type = 'integer', optional_value = 1, min = 0, max = 1, help = 'h' },
    },
  },
  breakpoint = {
    options = {},
    positional = { { name = 'address', multiple = true, help = 'addr[/len][:rwx]' } },
  },
  hrtimer = {
    options = {
      freq = { type = 'integer', short = 'F', min = 1, help = 'h' },
      period = { type = 'duration', help = 'h' },
    },
    positional = { { name = 'expression', required = false, help = 'h' } },
  },
  expr = { positional = { { name = 'expression', help = 'what to compute' } }, options = { exit_n = { default = 5 } } },
  list = {
    unsupported = { 'attach', 'ring', 'event' },
    positional = { { name = 'pattern', required = false, help = 'h' } },
  },
  stop = { positional = { { name = 'count', type = 'integer', min = 1, help = 'h' } } },
  blktrace = { options = { device = { type = 'string', short = 'd', multiple = true, help = 'h' } } },
}

--- The words of a command line, single quotes as in a shell.
local function words_of(line)
  local words = {}
  line = line .. ' '
  local at = 1
  while true do
    at = line:find('%S', at)
    if not at then return words end
    local word = ''
    while line:sub(at, at) ~= ' ' do
      local quoted = line:match("^'([^']*)'", at)
      local piece = quoted or line:match("^[^' ]+", at)
      word = word .. piece
      at = at + #piece + (quoted and 2 or 0)
    end
    words[#words + 1] = word
  end
end

local function parse(line)
  local words = words_of(line)
  local name = table.remove(words, 1)
  local spec = assert(options.declare(profilers[name]))
  return options.parse(spec, name, words)
end

-- Command line, expected result, workload. Keys that are not listed are not compared.
local accepted = {
  -- Values, attached and separate, letters bundled.
  { 'trace -i1000', { interval = S } },
  { 'trace -i 1000', { interval = S } },
  { 'trace -i 1s', { interval = S } },
  { 'trace -i 1.5s', { interval = 1.5 * S } },
  { 'trace --interval 250', { interval = 250 * MS } },
  { 'trace --interval=250', { interval = 250 * MS } },
  { 'trace --interval=250ms', { interval = 250 * MS } },
  { 'trace --duration 2', { duration = 2 * S } },
  { 'trace --duration 1min', { duration = 60 * S } },
  { 'trace -vv', { verbose = 2 } },
  { 'trace -vgv', { verbose = 2, call_graph = true } },
  { 'trace -gi 500', { call_graph = true, interval = 500 * MS } },
  { 'trace -gN5', { call_graph = true, exit_n = 5 } },
  { 'trace -v --verbose -q', { verbose = 2, quiet = true } },
  { 'trace', { verbose = 0, quiet = false, order = true, format = 'text', event = {}, self = false } },
  { 'trace -h', { help = 'own' } },
  { 'trace --help=all', { help = 'all' } },
  { 'trace -V', { version = true } },
  { 'kmemleak --help', { help = 'own' } },
  -- Numbers.
  { 'trace -N 0x10', { exit_n = 16 } },
  { 'trace --exit-N 3', { exit_n = 3 } },
  { 'trace -m 128', { mmap_pages = 128 } },
  { 'trace -m1', { mmap_pages = 1 } },
  { 'trace --clock-offset 12 --tsc', { clock_offset = 12LL, tsc = true } },
  { 'trace --clock-offset -12 --monotonic', { clock_offset = -12LL, monotonic = true } },
  { 'trace --clock-offset=+0x1F --kvmclock web1', { clock_offset = 31LL, kvmclock = 'web1' } },
  { 'trace --clock-offset 0xffffffffffffffff', { clock_offset = -1LL } },
  { 'trace --clock-offset -0x10', { clock_offset = -16LL } },
  { 'trace --clock-offset 9223372036854775807', { clock_offset = 0x7fffffffffffffffLL } },
  { 'multi-trace', { mmap_pages = 64, impl = 'delay' } },
  { 'trace --watermark 0', { watermark = 0 } },
  { 'trace --watermark=100', { watermark = 100 } },
  { 'trace --order --order-mem 64M', { order = true, order_mem = 2 ^ 26 } },
  { 'profile --than 12.5', { than = 12.5 } },
  { 'profile -F 997', { freq = 997 } },
  { 'profile', { freq = 100, user_callchain = true } },
  { 'trace --json', { format = 'json' } },
  { 'trace --python-callchain', { call_graph = true, notes = {
    '--python-callchain is -g; Python 3.12 names its functions if it runs with -X perf' } } },
  { 'trace --format json --csv', { format = 'csv' } },
  -- Lists.
  { 'trace -C 0-3,7', { cpus = '0-3,7' } },
  { 'trace -C 7,0-1 -C 1-2', { cpus = '7,0-1,1-2' } },
  { 'trace -p 12,3', { pids = { 3, 12 } } },
  { 'trace -p 12,sh -p java,3,sh', { pids = { 3, 12, 'java', 'sh' } } },
  { 'trace -t 5 --tids=6', { tids = { 5, 6 } } },
  { "trace --cgroups 'a/b,,c.*' --cgroups d", { cgroups = { 'a/b', '', 'c.*', 'd' } } },
  { 'trace --inherit', { inherit = true } },
  { 'trace --no-inherit', { inherit = false } },
  { 'trace -G --exclude-user', { exclude_host = true, exclude_user = true } },
  { 'trace -e a:b -e c:d', { event = { 'a:b', 'c:d' } } },
  { 'trace -e a:b,c:d', { event = { 'a:b,c:d' } } },
  { 'blktrace -d /dev/a -d/dev/b', { device = { '/dev/a', '/dev/b' } } },
  -- Files and the form of the output.
  { 'trace --input - -o out --format json', { input = '-', output = 'out', format = 'json' } },
  -- Optional values need "=" or are attached to the letter.
  { 'multi-trace --detail', { detail = '' } },
  { 'multi-trace --detail=samecpu,-1ms', { detail = 'samecpu,-1ms' } },
  { 'multi-trace --detail samecpu', { detail = '' }, { 'samecpu' } },
  { 'profile --irqs-disabled', { irqs_disabled = 1 } },
  { 'profile --irqs_disabled=0', { irqs_disabled = 0 } },
  -- Negation, abbreviation, underscores.
  { 'profile --no-user-callchain', { user_callchain = false } },
  { 'profile --no-user', { user_callchain = false } },
  { 'trace -g --no-call-graph', { call_graph = false } },
  { 'trace --call-graph fp -- ls', { call_graph = { mode = 'fp', bytes = 0 } }, { 'ls' } },
  { 'trace --call-graph -- fp', { call_graph = true }, { 'fp' } },
  { 'trace --call-graph ls', { call_graph = true }, { 'ls' } },
  { 'trace -g dwarf', { call_graph = true }, { 'dwarf' } },
  { 'trace --call-graph dwarf ls', { call_graph = { mode = 'dwarf', bytes = 8192 } }, { 'ls' } },
  { 'trace --call-graph hybrid ls', { call_graph = { mode = 'hybrid', bytes = 512 } }, { 'ls' } },
  { 'trace --call-graph=hybrid,4001', { call_graph = { mode = 'hybrid', bytes = 4008 } } },
  { 'trace --call-graph dwarf,65528', { call_graph = { mode = 'dwarf', bytes = 65528 } } },
  { 'multi-trace --only 1ms', { only_than = MS } },
  { 'multi-trace --only_than=1us', { only_than = 1e3 } },
  { 'multi-trace --than 5', { than = 5 } },
  { 'profile --exclude-u', { exclude_user = true } },
  { 'trace --vers', { version = true } },
  { 'trace --order', { order = true } },
  -- The workload keeps its words.
  { 'trace ls', {}, { 'ls' } },
  { 'trace -N 3 echo -N 1 hi', { exit_n = 3 }, { 'echo', '-N', '1', 'hi' } },
  { 'trace -- -x -N 1', {}, { '-x', '-N', '1' } },
  { 'trace - -v', { verbose = 0 }, { '-', '-v' } },
  { 'trace -- -- -x', {}, { '--', '-x' } },
  { 'trace -e a:b -- sh -c exit', { event = { 'a:b' } }, { 'sh', '-c', 'exit' } },
  { 'list sched', { pattern = 'sched' } },
  { "expr -e a:b 'pid + 1' -N 2 ls -N 3", { expression = 'pid + 1', exit_n = 2 }, { 'ls', '-N', '3' } },
  { "expr -- -pid", { expression = '-pid' } },
  { "expr -- -pid -- -x", { expression = '-pid' }, { '-x' } },
  { "expr -- -pid x -y", { expression = '-pid' }, { 'x', '-y' } },
  { 'expr x', { exit_n = 5 } },
  { 'breakpoint 0x10 -g 0x20 -- ls -g', { address = { '0x10', '0x20' }, call_graph = true }, { 'ls', '-g' } },
  { 'breakpoint -- 0x10 0x20 -- ls', { address = { '0x10', '0x20' } }, { 'ls' } },
  { 'hrtimer -F 20 -- ls', { expression = 'ls' } },
  { 'hrtimer -F 20 -- -- ls', {}, { 'ls' } },
  -- Command lines from perf-prof's guide.
  { "multi-trace -e 'sched:sched_wakeup*,sched:sched_switch' -e 'sched:sched_switch,profile/-F 500 --watermark 50 "
    .. "-g/untraced/' --filter python -i 1000 --than 100ms --detail=samecpu",
    { event = { 'sched:sched_wakeup*,sched:sched_switch',
        'sched:sched_switch,profile/-F 500 --watermark 50 -g/untraced/' },
      filter = 'python', interval = S, than = 100 * MS, detail = 'samecpu' } },
  { "multi-trace -e 'sched:sched_wakeup,sched:sched_wakeup_new,sched:sched_switch/prev_state==256&&prev_pid>0/"
    .. "key=prev_pid/' -e 'sched:sched_switch//key=next_pid/' -k pid --order --than 20ms --detail=samecpu",
    { key = 'pid', order = true, than = 20 * MS, detail = 'samecpu' } },
  { 'multi-trace -e sched:sched_switch/prev_state==2/key=prev_pid/ -e sched:sched_wakeup//key=pid/ --order --than 3ms '
    .. '--detail=-1ms,sametid,+1ms',
    { than = 3 * MS, detail = '-1ms,sametid,+1ms' } },
  { "multi-trace -e 'sched:sched_switch//role=\"(next_pid?1:0)|(prev_pid?2:0)\"/' --cycle -i 1000 --than 1s",
    { cycle = true, interval = S, than = S,
      event = { 'sched:sched_switch//role="(next_pid?1:0)|(prev_pid?2:0)"/' } } },
  { 'multi-trace -e irq:irq_handler_entry -e irq:irq_handler_exit -i 1000 --lower 800ns', { lower = 800 } },
  { 'multi-trace -e irq:softirq_entry/vec==1/ -e irq:softirq_exit/vec==1/ --than 100us --order --detail=-1ms',
    { than = 1e5, detail = '-1ms' } },
  { "multi-trace -e raw_syscalls:sys_enter -e 'raw_syscalls:sys_exit,task-state/-g/untraced/,profile/-F 200 "
    .. "--watermark 50 -m 32 -g/untraced/' --order --than 20ms --detail=sametid -- CMD -i 5",
    { than = 20 * MS, detail = 'sametid' }, { 'CMD', '-i', '5' } },
  { "multi-trace -e A//key=x/ -e 'B//key=y/,sched:sched_process_exec/filename~*touch/trigger/untraced/' --order "
    .. '-i 5000', { interval = 5 * S } },
  { "trace -e 'sched:sched_switch//push=\"/dev/virtio-ports/org.qemu.perf0\"/'",
    { event = { 'sched:sched_switch//push="/dev/virtio-ports/org.qemu.perf0"/' } } },
  { 'syscalls -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit -p 12 --perins -i 1000 --than 100ms',
    { pids = { 12 }, perins = true, than = 100 * MS } },
  { 'nested-trace -e irq:softirq_entry,irq:softirq_exit -e timer:timer_expire_entry,timer:timer_expire_exit -i 1000 '
    .. '--impl call-delay', { impl = 'call-delay' } },
  { 'task-state -p 12 --perins --ptrace -i 1000', { pids = { 12 }, perins = true, ptrace = true } },
  { "task-state --filter 'java,python*' -S --than 1000ms -g",
    { filter = 'java,python*', interruptible = true, than = S, call_graph = true } },
  { 'task-state -SD --perins -- sh -c x', { interruptible = true, uninterruptible = true }, { 'sh', '-c', 'x' } },
  { 'task-state -- ip link show eth0', {}, { 'ip', 'link', 'show', 'eth0' } },
  { 'kmemleak --alloc kmem:kmalloc//size=bytes_alloc/stack/ --free kmem:kfree -m 128',
    { alloc = { 'kmem:kmalloc//size=bytes_alloc/stack/' }, free = { 'kmem:kfree' }, mmap_pages = 128 } },
  { "top -e 'skb:kfree_skb//key=protocol/comm=ksymbol(location)/'", { interval = S } },
  { "top -e 'sched:sched_process_exec//comm=filename/' --only-comm", { only_comm = true } },
  { "top -e irq:softirq_entry -k '(_cpu<<16)|vec'", { key = '(_cpu<<16)|vec' } },
  { "trace -e 'raw_syscalls:sys_enter/id>200/,task-state/-N 20/,breakpoint/\"0xADDR/1:rw -g\"/' --order -- CMD", {},
    { 'CMD' } },
  { 'profile -F 997 -p 12 -g --flame-graph cpu -i 600000',
    { freq = 997, pids = { 12 }, call_graph = true, flame_graph = 'cpu', interval = 600 * S } },
  { "breakpoint 0xADDR/8:w --filter 'data>100' -g",
    { address = { '0xADDR/8:w' }, filter = 'data>100', call_graph = true } },
  { "hrtimer -e sched:sched_switch,sched:sched_wakeup -C 0-1 -F 20 -g 'sched_switch==0 && sched_wakeup==0'",
    { cpus = '0-1', freq = 20, call_graph = true, expression = 'sched_switch==0 && sched_wakeup==0' } },
  { "multi-trace -e 'uprobe:f@\"BIN\"' -e 'uretprobe:f@\"BIN\"' -p 7",
    { event = { 'uprobe:f@"BIN"', 'uretprobe:f@"BIN"' } } },
}

-- Command line, first line of the message after "profscript NAME: ".
local NO_STACKS = "option '--call-graph': invalid call graph mode '%s' (expected fp, tables, hybrid or dwarf, the last "
  .. 'two also with ",SIZE" of at most 65528 bytes)'
local refused = {
  { 'multi-trace --thann 5', "unknown option '--thann'; did you mean '--than'?" },
  { 'trace --qqqqqq', "unknown option '--qqqqqq'" },
  { 'trace --=x', "unknown option '--'" },
  { 'trace -x', "unknown option '-x'" },
  { 'trace -=x', "unknown option '-='" },
  { 'trace -gx', "unknown option '-x'" },
  { 'trace --call-graph=dwarf,7', NO_STACKS:format 'dwarf,7' },
  { 'trace --call-graph dwarf,99999', NO_STACKS:format 'dwarf,99999' },
  { 'trace --call-graph lbr', NO_STACKS:format 'lbr' },
  { 'trace --call-graph=ls', NO_STACKS:format 'ls' },
  { 'trace -interval',
    "unknown option '-interval'; did you mean '--interval'?" },
  { 'multi-trace -than=5',
    "unknown option '-than'; did you mean '--than'?" },
  { 'multi-trace -e a:b -order', "unknown option '-order'; did you mean '--order'?" },
  { 'profile --exclude', "ambiguous option '--exclude': --exclude-user or --exclude-kernel" },
  { 'trace --ver', "ambiguous option '--ver': --verbose or --version" },
  { 'trace --no-self=1', "option '--no-self' takes no value" },
  { 'trace --no-order', "unknown option '--no-order'" },
  { 'trace -i', "option '-i' needs a value (MS)" },
  { 'trace --format', "option '--format' needs a value (text|json|csv)" },
  { 'trace -N ten', "option '-N': 'ten' is not an integer >= 1" },
  { 'trace -N 1x', "option '-N': '1x' is not an integer >= 1" },
  { 'trace -N 0', "option '-N': '0' is not an integer >= 1" },
  { 'trace --exit -1', "option '--exit-n': '-1' is not an integer >= 1" },
  { 'trace -N 99999999999999999999',
    "option '-N': '99999999999999999999' is not an integer >= 1" },
  { 'trace -N 1.5', "option '-N': '1.5' is not an integer >= 1" },
  { 'trace -m 100', "option '-m': '100' is not a power of two; the nearest are 64 and 128" },
  { 'trace --clock-offset 0x', "option '--clock-offset': '0x' is not an integer of 64 bits, such as -1000 or 0xff" },
  { 'trace --clock-offset 0x1ffffffffffffffff',
    "option '--clock-offset': '0x1ffffffffffffffff' is not an integer of 64 bits, such as -1000 or 0xff" },
  { 'trace --clock-offset --tsc',
    "option '--clock-offset': '--tsc' is not an integer of 64 bits, such as -1000 or 0xff" },
  { 'trace --mmap-pages=3', "option '--mmap-pages': '3' is not a power of two; the nearest are 2 and 4" },
  { 'trace -m 0', "option '-m': '0' is not a power of two from 1 to 1048576" },
  { 'trace -m -4', "option '-m': '-4' is not a power of two from 1 to 1048576" },
  { 'trace --watermark 150', "option '--watermark': '150' is not an integer from 0 to 100" },
  { 'trace -C 3-1', "option '-C': invalid CPU list '3-1' (expected e.g. 0-3,7)" },
  { 'trace -C 0,', "option '-C': invalid CPU list '0,' (expected e.g. 0-3,7)" },
  { 'trace -C 0-99999999', "option '-C': invalid CPU list '0-99999999' (expected e.g. 0-3,7)" },
  { 'trace -p 0', "option '-p': invalid process list '0' (expected pids or names, e.g. 12,java)" },
  { 'trace -p bash,', "option '-p': invalid process list 'bash,' (expected pids or names, e.g. 12,java)" },
  { 'trace -p -v', "option '-p': invalid process list '-v' (expected pids or names, e.g. 12,java)" },
  { 'trace -t bash', "option '-t': invalid id list 'bash' (expected e.g. 12,345)" },
  { 'trace -t -v', "option '-t': invalid id list '-v' (expected e.g. 12,345)" },
  { 'trace -i 1.5.1', "option '-i': invalid duration '1.5.1' (expected a number and a unit, e.g. 1.5ms)" },
  { 'trace -i 0', "option '-i': '0' is not a duration >= 1ms" },
  { 'multi-trace --than 1fortnight',
    "option '--than': invalid duration '1fortnight': unknown unit 'fortnight' (expected ns, us, ms, s, min, h or d)" },
  { 'trace --order-mem lots', "option '--order-mem': invalid size 'lots' (expected e.g. 4096, 64K or 1MiB)" },
  { 'trace --json=1', "option '--json' takes no value" },
  { 'trace --format jsn', "option '--format': 'jsn' is not one of text, json, csv; did you mean 'json'?" },
  { 'profile --than 101', "option '--than': '101' is not a number from 0 to 100" },
  { 'profile --than nan', "option '--than': 'nan' is not a number from 0 to 100" },
  { 'profile --irqs-disabled=2', "option '--irqs-disabled': '2' is not an integer from 0 to 1" },
  { 'kmemleak --alloc a:b', "option '--free EVENT' is required" },
  { 'kmemleak -e a:b', "option '-e' does not apply to this profiler" },
  { 'list --pids 1', "option '--pids' does not apply to this profiler" },
  { 'list a b', "unexpected argument 'b'" },
  { 'expr -e a:b', 'missing EXPRESSION: what to compute' },
  { 'stop five', "COUNT: 'five' is not an integer >= 1" },
  { 'breakpoint -- -- ls', 'missing ADDRESS: addr[/len][:rwx]' },
}

describe('command lines', function()
  for _, case in ipairs(accepted) do
    local line, expected, workload = case[1], case[2], case[3] or {}
    it('takes ' .. line, function()
      local opts, rest = parse(line)
      assert(opts, rest)
      for name, value in pairs(expected) do
        assert.same(value, opts[name], name)
      end
      assert.same(workload, rest)
    end)
  end

  for _, case in ipairs(refused) do
    it('refuses ' .. case[1], function()
      local opts, message = parse(case[1])
      local name = case[1]:match '^%S+'
      assert.is_nil(opts)
      assert.equal(("profscript %s: %s\ntry 'profscript %s -h'"):format(name, case[2], name), message)
    end)
  end

  it('leave the declared defaults alone', function()
    local spec = assert(options.declare(profilers.trace))
    local first = options.parse(spec, 'trace', { '-e', 'a:b' })
    first.event[2] = 'c:d'
    assert.same({}, options.parse(spec, 'trace', {}).event)
    local empty = options.parse(spec, 'trace', {})
    empty.event[1] = 'x'
    assert.same({}, options.parse(spec, 'trace', {}).event)
  end)
end)

describe('a flag with more than a default', function()
  it('shows whether it was given', function()
    assert.is_nil(parse('trace').inherit)
  end)
end)

describe('global options', function()
  it('end at the name of the profiler', function()
    local opts, rest = options.parse_global { '-vq', 'trace', '-v', '--', 'ls' }
    assert.equal(1, opts.verbose)
    assert.is_true(opts.quiet)
    assert.same({ 'trace', '-v', '--', 'ls' }, rest)
  end)

  it('are the start of the profiler own verbosity', function()
    local global = options.parse_global { '-v', 'trace' }
    local opts = options.parse(options.declare(profilers.trace), 'trace', { '-v' }, global)
    assert.equal(2, opts.verbose)
    assert.is_false(opts.quiet)
  end)

  it('are few', function()
    local _, message = options.parse_global { '-i', '1000', 'trace' }
    assert.equal("profscript: option '-i' must follow the profiler's name\ntry 'profscript -h'", message)
    _, message = options.parse_global { '--versoin' }
    assert.equal("profscript: unknown option '--versoin'; did you mean '--version'?\ntry 'profscript -h'", message)
  end)
end)

describe('declarations', function()
  local function refusal(profiler)
    local spec, message = options.declare(profiler)
    assert.is_nil(spec)
    return message
  end

  it('give one line for each mistake', function()
    local function one(declaration)
      return refusal { options = { top = declaration } }
    end
    assert.equal("option 'top' is a number, not a table", one(20))
    assert.equal("option 'top': missing type", one { help = 'h' })
    assert.matches("^option 'top': unknown type 'int'; there are flag, count, integer,", one { type = 'int',
      help = 'h' })
    assert.equal("option 'top': unknown type 'intger'; did you mean 'integer'?", one { type = 'intger',
      help = 'h' })
    assert.equal("option 'top': missing help", one { type = 'integer' })
    assert.equal("option 'top': unknown key 'defualt'; did you mean 'default'?",
      one { type = 'integer', help = 'h', defualt = 1 })
    assert.equal("option 'top': help is a number, not a string", one { type = 'integer', help = 1 })
    assert.equal("option 'top': short 'xy' is not a single letter or digit", one { type = 'integer', help = 'h',
      short = 'xy' })
    assert.equal("option 'top': letter 'p' is already used by --pids",
      one { type = 'integer', help = 'h', short = 'p' })
    assert.equal("option 'top': an enum needs values", one { type = 'enum', help = 'h' })
    assert.equal("option 'top': default is a string, not a boolean", one { type = 'flag', help = 'h', default = 'on' })
    assert.equal("option 'top': default: 'x' is not an integer",
      one { type = 'integer', help = 'h', default = 'x' })
    assert.equal("option 'top': unit 'sec' is not one of ns, us, ms, s, min, h",
      one { type = 'duration', help = 'h', unit = 'sec' })
    assert.equal("option 'top': a count takes no value", one { type = 'count', help = 'h', multiple = true })
    assert.equal("option 'top': optional_value is a boolean, not a number",
      one { type = 'integer', help = 'h', optional_value = true })
    assert.equal("invalid option name 'only-than' (expected lower case words joined by underscores)",
      refusal { options = { ['only-than'] = { type = 'flag', help = 'h' } } })
    assert.equal("invalid option name '1' (expected lower case words joined by underscores)",
      refusal { options = { { type = 'flag', help = 'h' } } })
    assert.equal("unsupported: no such option or option group 'atach'; did you mean 'attach'?",
      refusal { unsupported = { 'atach' } })
    assert.equal("unsupported: no such option or option group 'verbosity'", refusal { unsupported = { 'verbosity' } })
    assert.equal("positional 'x': missing help", refusal { positional = { { name = 'x' } } })
    assert.equal("positional 'x': a flag takes no value",
      refusal { positional = { { name = 'x', type = 'flag', help = 'h' } } })
    assert.equal("positional 'pids' is also an option", refusal { positional = { { name = 'pids', help = 'h' } } })
    assert.equal("positional 'a': only the last one can be multiple",
      refusal { positional = { { name = 'a', help = 'h', multiple = true }, { name = 'b', help = 'h' } } })
  end)

  it('of a common option change only what they state, and bring it back from a dropped group', function()
    local spec = assert(options.declare { options = { filter = { help = 'commands' } }, unsupported = { 'event' } })
    assert.equal('commands', spec.long.filter.help)
    assert.equal('string', spec.long.filter.type)
    assert.is_nil(spec.long.event)
  end)

  it('of a common option keep the type of its values, which the host reads', function()
    assert.equal("option 'pids': the values of this common option are tables, not strings",
      refusal { options = { pids = { type = 'string' } } })
    assert.equal("option 'event': the values of this common option are tables, not strings",
      refusal { options = { event = { type = 'string', multiple = false } } })
    assert(options.declare { options = { period = { type = 'integer' } } })
  end)

  it('are taken without effect where events are only counted', function()
    local spec = assert(options.declare { unsupported = { 'ring', 'samples' } })
    local words = { '-m', '64', '--order', '--water', '50', '--perfeval_cpus=0', '--sampling-limit', '9', 'ls' }
    local opt, rest = assert(options.parse(spec, 'x', words))
    assert.same({ 'mmap-pages', 'order', 'watermark', 'perfeval-cpus', 'sampling-limit' }, opt.ignored)
    assert.same({ 'ls' }, rest)
    assert.is_nil(opt.sampling_limit)
    local bad, message = options.parse(spec, 'x', { '-m', '3' })
    assert.is_nil(bad)
    assert.matches("'3' is not a power of two", message)
    assert.is_nil(assert(options.parse(spec, 'x', { '-v' })).ignored)
  end)

  it('drop single options, and sets of them', function()
    local spec = assert(options.declare { unsupported = { 'input', 'samples', 'threads' }, options = { prio = {} } })
    for _, name in ipairs { 'input', 'call-graph', 'sampling-limit', 'pids', 'ptrace', 'key' } do
      assert.is_nil(spec.long[name], name)
    end
    for _, name in ipairs { 'event', 'output', 'cpus', 'exclude-user', 'prio' } do
      assert.is_table(spec.long[name], name)
    end
    local opt, message = options.parse(spec, 'x', { '-g' })
    assert.is_nil(opt)
    assert.matches("option '%-g' does not apply to this profiler", message)
    opt, message = options.parse(spec, 'x', { 'sleep', '1' })
    assert.is_nil(opt)
    assert.matches("unexpected argument 'sleep'", message)
    assert.is_false(spec.workload)
    assert.is_table(assert(options.declare { attributes = { 'key' } }).long.key)
    assert.is_nil(assert(options.declare { attributes = { 'key' }, unsupported = { 'key' } }).long.key)
    assert.equal("unsupported: no such option or option group 'call-graph'; did you mean 'call_graph'?",
      select(2, options.declare { unsupported = { 'call-graph' } }))
  end)

  it('may take the letter of a dropped option', function()
    local spec = assert(options.declare { options = { pretty = flag 'p' }, unsupported = { 'attach' } })
    assert.is_true(options.parse(spec, 'x', { '-p' }).pretty)
  end)

  it('take defaults as the user would type them', function()
    local spec = assert(options.declare { options = { than = { type = 'duration', default = '1.5ms', help = 'h' } } })
    assert.equal(1.5 * MS, options.parse(spec, 'x', {}).than)
    spec = assert(options.declare { options = { than = { type = 'duration', default = math.huge, help = 'h' } } })
    assert.equal(math.huge, options.parse(spec, 'x', {}).than)
  end)
end)
