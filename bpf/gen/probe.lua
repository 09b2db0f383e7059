-- SPDX-License-Identifier: GPL-2.0-only
--- Generated programs on tracepoints. They do what perf does before it writes a sample: they ignore events while their
--- switch is off, those of other tasks than the targets, those that do not match the event's filters, and those of this
--- process.
local arguments = require 'bpf.gen.arguments'
local asm = require 'bpf.gen.asm'
local compile = require 'bpf.gen.compile'
local computed = require 'bpf.gen.computed'
local program = require 'bpf.gen.program'
local system_calls = require 'bpf.gen.system_calls'
local types = require 'bpf.gen.kernel_types'

local probe = {}

probe.EXEC = 'sched:sched_process_exec'
probe.EXIT = 'sched:sched_process_exit' -- stands for perf's report of the exit of a task

-- Of the kernel's preempt_count: in an interrupt, or serving a softirq.
local IN_INTERRUPT = 0x000f0000 + 0x100

--- Generates code that jumps to a label if the event is outside interrupts. r0 is the current task. Uses r0 to r5.
local function unless_in_interrupt(a, target)
  types.preempt_count(a, 0)
  a:alu('and', 0, IN_INTERRUPT)
  a:jump('==', 0, 0, target)
end

---@class ProbeSpec
---@field event string "sys:name"
---@field typed? TypedEvent it has typed arguments
---@field switch Switch
---@field filters Compiled[] all must be true
---@field own_pid? integer ignore what this process does outside interrupts
---@field targets? Targets the tasks whose events these are; nil: all
---@field is_exit? boolean it is EXIT, in place of perf's report
---@field options? SourceOptions
---@field calls SystemCalls
---@field verb string what the program does with the event, in its name: 'count'

--- What the body of a program can use.
---@class ProbePlaces
---@field cpu integer place on the stack: the CPU, 8 bytes
---@field side integer place on the stack: the side of the switch, 8 bytes
---@field time? integer place on the stack: the time of the event, if something has read the clock

--- Generates code that jumps to `done` if the event is one of this process, as the filter of perf's events does. What
--- happens in interrupts is not. Notes the current task for what follows.
local function unless_ours(a, source, own_pid)
  local other = a:new_label()
  a:call 'get_current_task_btf'
  source.task = a:take(8)
  a:store(8, asm.FRAME, source.task, 0)
  a:load(4, 1, 0, (types.member('task_struct', 'tgid')))
  a:jump('!=', 1, own_pid, other)
  unless_in_interrupt(a, 'done')
  a:label(other)
end

local function generate(spec, body)
  local a, source = asm.new(), arguments.of(spec.event, spec.options, spec.typed)
  local places = { cpu = a:take(8), side = a:take(8) }
  a:alu_r('mov', asm.CONTEXT, 1)
  if spec.targets then spec.targets:check(a, 'done', spec.is_exit) end
  spec.switch:check(a, 'done')
  a:store(8, asm.FRAME, places.cpu, 0)
  a:store(8, asm.FRAME, places.side, 1)
  if spec.own_pid then unless_ours(a, source, spec.own_pid) end
  source:prepare(a)
  for _, filter in ipairs(spec.filters) do
    compile.condition(a, filter.tree, { source = source }, { none = 'done' })
  end
  body(a, source, places)
  a:label 'done'
  local place = source.call and spec.calls:chain(a, source.call)
  a:alu('mov', 0, 0)
  a:exit()
  return a, source.call, place
end

local NO_RECURSION = 6.002 -- the first kernel that surely does not run a program within itself

--- Returns whether the program of an event never interrupts itself. Then it need not be careful with memory of the CPU
--- that no other program writes to.
---@param event string "sys:name"
---@return boolean
function probe.is_alone(event)
  return system_calls.is_one(event) or computed.release() >= NO_RECURSION
end

--- Returns the name of an event's program: `count_switch`.
---@param spec ProbeSpec
---@return string
function probe.name(spec)
  return spec.verb .. '_' .. program.short(spec.event:match ':(.*)$')
end

--- Loads a program, which is not attached yet. Refuses what BPF cannot do. In the body, r6 is the context, and the
--- label `done` ends the program.
---@param spec ProbeSpec
---@param body fun(a: Asm, source: Source, places: ProbePlaces)
---@return Descriptor program
function probe.load(spec, body)
  local a, call, place = generate(spec, body)
  local typed = spec.typed
  local functions = typed and typed.functions
  local id = typed and typed.id or not functions and types.tracepoint(call and call.tracepoint
    or spec.event:match ':(.*)$') or nil
  local loaded = program.load(a, { type = functions and 'kprobe' or 'tracing', name = probe.name(spec),
    title = spec.event, tracepoint = id, attach = typed and typed.attach, module = typed and typed.module,
    functions = functions })
  loaded.call, loaded.place = call, place
  return loaded
end

--- Attaches a program. It is detached when the link is closed.
---@param loaded Descriptor
---@param calls SystemCalls
---@return { close: fun(self) } link
function probe.attach(loaded, calls)
  if loaded.call then return calls:attach(loaded) end
  return program.attach(loaded)
end

return probe
