-- SPDX-License-Identifier: GPL-2.0-only
local help = require 'bindings.command.help'
local options = require 'bindings.options.parser'

local general = [[

general options:
  -v, --verbose             say more; -vv also prints each event
  -q, --quiet               print results only
  -V, --version             print the version
  -h, --help                print this help
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

A wakeup is counted where it is made.

Not where it lands.

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
]] .. general, help.profiler('wakeups', profiler, assert(options.declare(profiler))))
  end)

  it('has the groups of common options, with the defaults of the profiler', function()
    local profiler = { summary = 'S', options = { interval = { default = '1s' }, mmap_pages = { default = 64 } } }
    assert.equal([=[
usage: profscript x [options] [--] [workload...]

S

event options:
  -e, --event EVENT         events to use, comma separated: sys:name, globs,
                            each with /filter/attributes/ (may be repeated)
      --filter FILTER       keep only the events this filter matches
  -F, --freq N              sample hardware, clock and memory events about so
                            often a second (Hz)
      --period N            sample such events every so many; those of clocks
                            each such time (ns)
  -g, --call-graph[=fp|dwarf[,SIZE]]
                            record stacks of all events; dwarf: also of programs
                            without frame pointers
      --[no-]user-callchain
                            the user half of stacks; the default
      --[no-]kernel-callchain
                            the kernel half of stacks; the default
      --srcline             file and line of frames of programs, and the
                            functions inlined there
      --self                include this tool's own process

attach options:
  -C, --cpus LIST           only on these CPUs, such as 0-3,7; without it all
                            that are online
  -p, --pids LIST           only these processes, by number or name, all their
                            threads
  -t, --tids LIST           only these threads
      --[no-]inherit        and new threads and children of these; the default
                            for -p and a workload
      --ptrace              like --inherit, and go on until all of them have
                            exited, daemons too
      --cgroups LIST        only in these cgroups: names from the root of the
                            hierarchy, or regular expressions
      --exclude-user        only the kernel mode
      --exclude-kernel      only the user mode
  -G, --exclude-host        only KVM guests
      --exclude-guest       no KVM guests
      --irqs-disabled[=0|1]
                            sample only where interrupts are disabled; 0: where
                            they are not
      --tif-need-resched[=0|1]
                            sample only tasks that are to be switched away from;
                            0: only others
      --nr-running-min N    sample only CPUs with at least N tasks to run
      --nr-running-max N    sample only CPUs with at most N tasks to run
      --exclude-pid PID     do not sample this process
      --sched-policy N      sample only tasks of this policy: 0 normal, 1 FIFO,
                            2 RR, 3 batch, 5 idle, 6 deadline
      --prio LIST           sample only these priorities of the kernel's: 0-99
                            real time, 100-139 nice -20 to 19

run and output options:
  -i, --interval MS         report every so often (ms, default 1s)
  -N, --exit-n N            stop after this many events
      --duration T          stop after this time (s)
      --usage-self MS       print how much CPU and memory this tool itself
                            takes, every so often (ms)
      --perfeval-cpus LIST  print after each -i how many events these CPUs had a
                            second
      --perfeval-pids LIST  print after each -i how many events the threads of
                            these processes had a second
      --sampling-limit N    end when --perfeval-* counts more than N events a
                            second for each CPU or thread that had some
      --allow-exec          let exec= and other expressions call system()
      --dry-run             print what would be opened, and end
      --input FILE          read a recording, - is stdin
  -o, --output FILE         append the output to FILE, text with the warnings;
                            opened anew on SIGUSR1
      --format text|json|csv
                            form of the output (default text)
      --json                the same as --format json
      --csv                 the same as --format csv
      --raw-fields          print events as the kernel does, without the plugins
                            of libtraceevent

ring buffer options:
  -m, --mmap-pages N        size of each ring buffer in pages, a power of two
                            (default 64)
      --watermark N         wake up when a ring is this full, 0 is on each event
                            (%)
  -r, --realtime PRIO       read the rings with this priority of SCHED_FIFO,
                            before all tasks of lower ones
      --lost warn|error|ignore
                            where the kernel drops events: say so, end with
                            status 1, or neither (default warn)
      --order               accepted for perf-prof command lines: events always
                            come in time order
      --order-mem SIZE      accepted for perf-prof command lines: ordering
                            copies nothing
]=] .. general, help.profiler('x', profiler, assert(options.declare(profiler))))
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
      --check               say what this kernel and this user can trace
      --symbols FILE        give addresses from stdin their symbols
]] .. general .. [[

'profscript NAME -h' explains one profiler and its options,
'profscript NAME -e EVENT help' the fields and attributes of an event.
]], text)
  end)

  it('says when there is none', function()
    assert.truthy(help.overview({}):find('profilers:\n  none found\n', 1, true))
  end)
end)
