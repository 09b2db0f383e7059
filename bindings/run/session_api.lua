-- SPDX-License-Identifier: GPL-2.0-only
--- The third argument of start(): a script's access to its run. bindings/session has most of its functions, by topic.
local asm = require 'bpf.gen.asm'
local attach = require 'bindings.select.attach'
local bpf = require 'bindings.bpf.program'
local check = require 'bindings.base.check'
local expressions = require 'bindings.session.expressions'
local failure = require 'bindings.base.failure'
local kept = require 'bindings.session.kept'
local names = require 'bindings.session.names'
local nearest = require 'bindings.base.nearest'
local recorder = require 'bindings.run.recorder'
local request = require 'bindings.session.request'
local stacks = require 'bindings.session.stacks'
local sys = require 'bindings.base.sys'
local thread_set = require 'bpf.groups.thread_set'
local times = require 'bindings.session.times'

local session_api = {}

--- Functions are called without a colon: `session.now()`.
---@class Session
---@field per_thread boolean events are attached to threads (-p, -t, a workload) instead of CPUs
---@field named_threads boolean the user named threads, even if the profiler is `everywhere`; of that also control
--- groups
---@field instance_field '_cpu'|'_tid' what rows per instance are about: the thread of events with -p, -t or a workload,
--- else the CPU
---@field instance_title 'CPU'|'THREAD' the same as a heading
---@field inherits boolean new threads and child processes are followed
---@field is_source boolean the profiler is an event source of another one: of its handlers only `describe` is called,
--- unless it calls session.gate()

--- What the topics need to add their functions.
---@class SessionParts
---@field instance Instance
---@field run Run
---@field set table the instance's event set
---@field check_start fun(name: string) raises an error in handlers, because the events are already open

--- Adds the functions about what the kernel runs, and about files.
local function add_live(api, of)
  local instance, run, check_start = of.instance, of.run, of.check_start

  --- Loads BPF programs, which are unloaded when the run ends. Only for live events. Only valid in start().
  ---@param params BpfParameters
  ---@return Bpf
  function api.bpf(params)
    check_start 'session.bpf'
    if run.is_again then error('the script loads BPF programs, so it must be started again', 2) end
    return bpf.load(instance, params)
  end

  --- Creates a flight recorder: the kernel keeps the newest events of all CPUs and overwrites the oldest. They cost
  --- this process nothing until `recorder:dump` asks for a moment that has just been. Only for live events. Only valid
  --- in start().
  ---
  ---   local recorder = session.recorder { events = 'sched:*', keep = '64M' }
  ---@param settings RecorderSettings
  ---@return Recorder
  function api.recorder(settings)
    check_start 'session.recorder'
    return recorder.new(instance, settings)
  end

  --- Calls a function when a file has been created, written or replaced, at most 0.1 s later. Its folder must exist.
  --- Writing through another hard link of the file is not noticed. Only for live events. Only valid in start().
  ---
  ---   session.on_file('/run/dump-now', function() recorder:dump { before = '1s' } end)
  ---@param path string
  ---@param call fun()
  function api.on_file(path, call)
    check_start 'session.on_file'
    check.is(path, 'string', 'session.on_file takes the path of a file')
    if path == '' then error('session.on_file takes the path of a file, which is empty', 2) end
    local found = sys.stat(path)
    if path:find '/$' or found and found.isdir then
      error(("session.on_file takes the path of a file, but '%s' is a folder"):format(path), 2)
    end
    check.is(call, 'function', 'session.on_file takes a function')
    if run.is_recorded then failure.usage('%s: session.on_file is for live events', instance.name) end
    local message = not instance.parent and run:on_file(path, call)
    if message then error('session.on_file: ' .. message, 2) end
  end
end

local TOPICS = { request.events, request.known, request.settings, request.counts, request.task_times, add_live,
  expressions.add, kept.add, names.add, stacks.addresses, stacks.frames, times.add }

---@param instance Instance
---@return Session
function session_api.new(instance)
  local run, opt, workload = instance.run, instance.run.opt, instance.run.workload
  local per_thread = attach.per_thread(opt, workload, run.everywhere)
  local of_groups = run.everywhere and opt.cgroups ~= nil
  ---@class Session
  local api = {
    per_thread = per_thread,
    instance_field = per_thread and '_tid' or '_cpu',
    instance_title = per_thread and 'THREAD' or 'CPU',
    named_threads = attach.names_threads(opt, workload) or of_groups,
    inherits = attach.inherits(opt, workload) and true or false,
    is_source = instance.parent ~= nil,
  }

  --- Returns the threads that the user has named, for a profiler that is `everywhere`.
  ---@return ThreadSet
  ---@package
  function api.thread_set()
    if not of_groups then return run.named or thread_set.new(api.inherits) end
    local targets, why = asm.attempt(function() return run.in_kernel:threads() end)
    if not targets then failure.unavailable('%s: cannot follow the threads of --cgroups: %s', run.name, why) end
    return thread_set.of(targets)
  end
  local of = { instance = instance, run = run, set = instance.set }
  function of.check_start(name)
    if instance.settled then error(name .. ': only valid in start()', 3) end
  end
  for _, add in ipairs(TOPICS) do add(api, of) end
  return setmetatable({}, {
    __index = function(_, name)
      local member = api[name]
      if member == nil then
        error(("session has no '%s'%s"):format(tostring(name), nearest.hint(tostring(name), nearest.keys(api))), 2)
      end
      return member
    end,
    __newindex = function() error('session is read-only', 2) end,
  })
end

--- Settings of session.want().
---@class SessionWants
---@field stacks? boolean true: all events of the profiler record stacks, as with -g; false: even with -g, only events
--- with event:set { stack = true } or the attribute `stack` do
---@field stack_part? 'kernel'|'user' only these frames of the stacks
---@field only_threads? boolean the kernel may drop events that are not about the threads named by the user. Without
--- `everywhere`, switches, wakeups and migrations are then those of these threads, also in the time of others
---@field own_exit_n? boolean the script implements -N: the run continues until it calls session.stop()
---@field prints_events? boolean the script prints each event itself, so -vv need not

return session_api
