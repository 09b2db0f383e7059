-- SPDX-License-Identifier: GPL-2.0-only
local help = require 'lib.command.help'
local options = require 'bindings.options.parser'

local general = [[

general options:
  -v, --verbose             be more verbose; -vv also prints each event
  -q, --quiet               print results only
  -V, --version             print the version
  -h, --help[=all]          print this help; all: with all common options
]]

describe('help of a profiler', function()
  it('is generated from its declarations', function()
    local profiler = {
      summary = 'Count wakeups per task',
      description = 'A wakeup is counted where it is made.\n\nNot where it lands.\n',
      examples = { { 'profscript wakeups -i 1s', 'each second' }, { 'profscript wakeups -- ls', 'of one command' } },
      options = {
        top = { type = 'integer', default = 20, help = 'rows to print' },
        rate = { type = 'integer', short = 'R', default = 100, unit = 'Hz', help = 'sampling rate' },
        than = {
          type = 'duration',
          default = '1.5ms',
          help = 'print waits longer than this, with the event that began the wait and the one that ended it',
        },
        no_limit = { type = 'duration', default = math.huge, help = 'a limit' },
        detail = { type = 'string', optional_value = '', argument = 'WHAT', help = 'events around each wait' },
        by = { type = 'enum', values = { 'all', 'comm' }, default = 'all', help = 'group the rows' },
        user_frames = { type = 'flag', default = true, help = 'user stacks' },
        device = { type = 'string', short = 'd', multiple = true, required = true, help = 'which device' },
        a_rather_long_option = { type = 'size', help = 'memory' },
      },
      positional = {
        { name = 'expression', help = 'what to count' },
        { name = 'file', required = false, multiple = true, help = 'where' },
      },
      unsupported = { 'event', 'attach', 'run', 'ring' },
    }
    assert.equal([[
usage: profscript wakeups [options] EXPRESSION [FILE...]

Count wakeups per task

examples:
  profscript wakeups -i 1s
      each second
  profscript wakeups -- ls
      of one command

arguments:
  EXPRESSION                what to count
  [FILE...]                 where

wakeups options:
      --a-rather-long-option SIZE
                            memory
      --by all|comm         group the rows (default all)
      --detail[=WHAT]       events around each wait
  -d, --device TEXT         which device (may be repeated, required)
      --no-limit T          a limit (ns)
  -R, --rate N              sampling rate (Hz, default 100)
      --than T              print waits longer than this, with the event that
                            began the wait and the one that ended it (ns,
                            default 1.5ms)
      --top N               rows to print (default 20)
      --[no-]user-frames    user stacks
]] .. general .. [[

A wakeup is counted where it is made.

Not where it lands.
]], help.profiler('wakeups', profiler, assert(options.declare(profiler)), true))
  end)

  it('has the groups of common options, with the defaults of the profiler', function()
    local profiler = { summary = 'S', options = { interval = { default = '1s' }, mmap_pages = { default = 64 } } }
    assert.equal([=[
usage: profscript x [options] [--] [workload...]

S

event options:
  -e, --event EVENT         events, separated by commas: sys:name or a glob,
                            each optionally with /filter/attributes/ (may be
                            repeated)
      --filter FILTER       use only events that match this filter
  -F, --freq N              sampling frequency of hardware, clock and memory
                            events (Hz)
      --period N            sample every Nth of these events; for clock events,
                            the time between samples (ns)
  -g, --call-graph[=fp|tables|hybrid|dwarf[,SIZE]]
                            record the stack of each event, by default also
                            through code without frame pointers
      --[no-]user-callchain
                            include user frames in stacks (default)
      --[no-]kernel-callchain
                            include kernel frames in stacks (default)
      --python-callchain    same as -g; Python 3.12 and later name their
                            functions if they run with -X perf
      --srcline             print source lines and inlined functions of user
                            frames
      --self                include profscript's own process

attach options:
  -C, --cpus LIST           only these CPUs, such as 0-3,7 (default: all online
                            CPUs)
  -p, --pids LIST           only these processes, by pid or name, with all their
                            threads
  -t, --tids LIST           only these threads
      --[no-]inherit        also new threads and child processes (default for -p
                            and a workload)
      --ptrace              like --inherit, and go on until all of them have
                            exited, daemons too
      --cgroups LIST        only these cgroups: paths from the root of the
                            hierarchy, or regular expressions
      --container NAMES     only these containers, also those that start later:
                            names of ev._container; * and ? are wildcards
      --exclude-user        exclude user mode
      --exclude-kernel      exclude kernel mode
  -G, --exclude-host        exclude the host: only KVM guests
      --exclude-guest       exclude KVM guests
      --irqs-disabled[=0|1]
                            sample only while interrupts are disabled; 0: only
                            while enabled
      --tif-need-resched[=0|1]
                            sample only tasks with TIF_NEED_RESCHED set; 0: only
                            tasks without
      --nr-running-min N    sample only CPUs with at least N runnable tasks
      --nr-running-max N    sample only CPUs with at most N runnable tasks
      --exclude-pid PID     do not sample this process
      --sched-policy N      sample only tasks with this policy: 0 normal, 1
                            FIFO, 2 RR, 3 batch, 5 idle, 6 deadline
      --prio LIST           sample only tasks with these kernel priorities: 0-99
                            real-time, 100-139 nice -20 to 19

run and output options:
  -i, --interval MS         print a report at this interval (ms, default 1s)
  -N, --exit-n N            stop after N events
      --duration T          stop after this time (s)
      --watch               reload the script when its file changes, and keep
                            what it has put into session.state()
      --usage-self MS       print profscript's own CPU and memory usage at this
                            interval (ms)
      --perfeval-cpus LIST  at each -i, print the events per second of these
                            CPUs
      --perfeval-pids LIST  at each -i, print the events per second of the
                            threads of these processes
      --sampling-limit N    stop if --perfeval-* counts more than N events per
                            second for each CPU or thread with events
      --allow-exec          let exec= and other expressions call system()
      --dry-run[=WHAT]      print what would be opened and exit; code: with the
                            generated loops and BPF programs; schema: instead,
                            the JSON Schema of the lines that --json prints
      --input FILE          read a recording (- is stdin), or what PORT,
                            HOST:PORT, unix:PATH or vsock:CID:PORT sends
      --time START,STOP     read only this part of a recording: seconds as
                            printed with events; either may be missing
      --remote-slack MS     with pull=, wait at most this long for a silent
                            sender before other events go on (ms)
      --push ADDR           send all events to PORT, HOST:PORT, unix:PATH,
                            vsock:PORT, a file or -, instead of analyzing them
      --record FILE         also write all events to FILE, which perf and
                            --input read
      --secret FILE         other hosts must know the secret in FILE (or in
                            PROFSCRIPT_SECRET) to receive events
  -o, --output FILE         append the output to FILE, in text format also the
                            warnings; SIGUSR1 reopens FILE
      --export FILE         write the events, pairs and stacks to FILE for
                            another program, in the format of its suffix or of
                            FORMAT:FILE: chrome, firefox, folded, html,
                            perfetto, pprof, speedscope
      --prometheus [ADDR:]PORT
                            serve what the reports say as metrics at
                            http://127.0.0.1:PORT/metrics while the profiler
                            runs
      --otlp URL            send the same metrics to an OpenTelemetry collector,
                            such as http://localhost:4318
      --serve [ADDR:]PORT   show the reports on a page for browsers while the
                            profiler runs, at http://127.0.0.1:PORT
      --format text|json|csv
                            output format (default text)
      --json                same as --format json
      --csv                 same as --format csv
      --sort COLUMN         sort the rows of tables by a column: values from the
                            largest, keys and texts in their order
      --query SQL           print the results of SELECT statements on the rows
                            of each report instead of these; the columns are
                            those of --csv
      --raw-fields          print events as the kernel does, without the plugins
                            of libtraceevent
      --tsc                 print the times of events in cycles of the CPU's
                            TSC; with --kvmclock, of the guest's
      --kvmclock VM         print the times of events on the kvmclock of a
                            guest, given by UUID, pid or name
      --clock-offset N      add N to the printed times of events, in ns or
                            cycles; may be negative or hexadecimal
      --monotonic           the times must be those of CLOCK_MONOTONIC; live
                            events always have them

ring buffer options:
  -m, --mmap-pages N        size of each ring buffer in pages, a power of two
                            (default 64)
      --watermark N         wake up when a ring buffer is this full; 0: at every
                            event (%)
  -r, --realtime PRIO       read the ring buffers with this SCHED_FIFO priority
      --lost warn|error|ignore
                            if the kernel drops events: print a warning, exit
                            with status 1, or ignore it (default warn)
      --capture auto|perf|bpf
                            how events are taken: by BPF programs, through ring
                            buffers of perf, or what costs least (default auto)
      --order               accepted for perf-prof command lines; events are
                            always in time order
      --order-mem SIZE      accepted for perf-prof command lines; ordering
                            copies nothing
]=] .. general, help.profiler('x', profiler, assert(options.declare(profiler)), true))
    assert.equal([=[
usage: profscript x [options] [--] [workload...]

S

run and output options:
  -i, --interval MS         print a report at this interval (ms, default 1s)

ring buffer options:
  -m, --mmap-pages N        size of each ring buffer in pages, a power of two
                            (default 64)

--event EVENT, --pids LIST, --exit-n N, --duration T, --input FILE, --json and
other common options: 'profscript x --help=all'.
]=], help.profiler('x', profiler, assert(options.declare(profiler))))
  end)

  it('keeps to 80 columns', function()
    local profiler = { summary = ('long '):rep(40), options = {} }
    for line in help.profiler('x', profiler, assert(options.declare(profiler))):gmatch '[^\n]+' do
      assert.is_true(#line <= 80, line)
    end
  end)
end)

describe('help without a profiler', function()
  it('lists the profilers in columns, broken ones with the reason', function()
    local text = help.overview {
      { name = 'broken', error = "/home/u/broken.lua:3: '=' expected near 'x'" },
      { name = 'list', summary = 'List the events', is_tool = true },
      { name = 'multi-trace', summary = 'Latency between two events' },
    }
    assert.equal([[
usage: profscript [-v] [-q] NAME [options] [--] [workload...]

profilers:
  broken       cannot load: /home/u/broken.lua:3: '=' expected near 'x'
  multi-trace  Latency between two events

other commands:
  list         List the events

profscript options:
      --check               print what this kernel and this user can trace
      --symbols FILE        symbolize addresses read from stdin
]] .. general .. [[

'profscript NAME -h' explains one profiler and its options,
'profscript NAME -e EVENT help' the fields and attributes of an event.
]], text)
  end)

  it('alone names them by question, and how to begin', function()
    local text = help.start {
      { name = 'multi-trace', summary = 'Latency between two events' }, { name = 'mine', summary = 'M' },
      { name = 'list', summary = 'List the events', is_tool = true },
    }
    assert.truthy(text:find('\n  how long from one event to another\n      multi-trace syscalls', 1, true))
    assert.truthy(text:find('\n  others\n      mine\n', 1, true))
    assert.is_true(select(2, text:gsub('\n', '')) <= 40)
    for line in text:gmatch '[^\n]+' do assert.is_true(#line <= 80, line) end
  end)

  it('says when there is none', function()
    assert.truthy(help.overview({}):find('profilers:\n  none found\n', 1, true))
  end)
end)
