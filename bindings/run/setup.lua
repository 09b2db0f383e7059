-- SPDX-License-Identifier: GPL-2.0-only
--- The set-up of a run, as stages. Each needs what the stages before have found out. bindings/run/driver.lua has their
--- order.
local attach = require 'bindings.select.attach'
local container_filter = require 'bpf.run.container_filter'
local dry_run = require 'bpf.run.dry_run'
local explain = require 'bpf.run.explain'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local gates = require 'bpf.run.gates'
local generated = require 'bpf.run.generated'
local handler_plans = require 'bpf.ways.handler'
local plan_json = require 'bpf.run.plan_json'
local printed = require 'bpf.handlers.printed'
local runs = require 'bindings.run.run'
local schema = require 'bpf.run.schema'
local target_filter = require 'bindings.run.target_filter'
local user_strings = require 'bpf.run.user_strings'
local versions = require 'bindings.run.version'

local C = ffi.C
local setup = {}

local DRAW_EVERY = 1e9 -- ns

local DEFAULT_PAGES = 128 -- 512 KiB per ring: no losses at a million events per second
local STACK_PAGES = 512 -- if each event contains a stack
local DUMP_PAGES = 1024 -- if each event contains a large copy of its user stack
local DEFAULT_WATERMARK = 50 -- percent

--- Returns the size of rings for a value of --call-graph.
local function usual_pages(chosen)
  if not chosen then return DEFAULT_PAGES end
  return type(chosen) == 'table' and chosen.mode == 'dwarf' and DUMP_PAGES or STACK_PAGES
end

--- Creates the run. Its options have their defaults then.
---@param session ffi.cdata* struct session *
---@param script scripts.Script
---@param opt table parsed options
---@param words string[] the workload
---@param found scripts.Scripts profilers that can be event sources
---@param before? table the run whose place it takes, see Reload.again
---@return Run
function setup.run(session, script, opt, words, found, before)
  if opt.dry_run == 'schema' then opt.format = 'json' end -- scripts print no text
  local run = runs.new(session, script, opt, words, found, before and before.run)
  opt.mmap_pages = opt.mmap_pages or usual_pages(opt.call_graph)
  opt.watermark = opt.watermark or DEFAULT_WATERMARK
  if opt.dry_run == 'schema' then schema.collect(run) end
  for _, name in ipairs(opt.ignored or {}) do
    run.out:warn(('%s: --%s has no effect, because the events are only counted'):format(run.name, name))
  end
  for _, note in ipairs(opt.notes or {}) do run.out:warn(('%s: %s'):format(run.name, note)) end
  if opt.cpus then opt.cpus = attach.online(run.name, opt.cpus, run.services.warn) end
  return run
end

--- Calls start(), which requests the events. Afterwards no event is added.
---@param run Run
---@param script scripts.Script
---@return Version
function setup.request(run, script)
  local version = versions.start(run, script)
  local fieldless = run.is_recorded and run.events:fieldless()
  if fieldless then run.out:warn(fieldless) end
  user_strings.capture(run)
  if version.life.draw then run:draw_every(DRAW_EVERY) end
  return version
end

--- Splits the filters: of threads, which need to know whether events are of all CPUs, and those of the events.
---@param run Run
---@param version Version
---@return Branch[]? targets drop events of other threads
---@return fun(tids: integer[])? begin passes the target threads to these branches
function setup.filter(run, version)
  local targets, begin = target_filter.branches(run)
  version:split_filters()
  return targets, begin
end

--- Gives each event its route. Needs the parts of the filters, which programs evaluate.
---@param run Run
---@param version Version
---@return HandlerPlan[] plans
function setup.route(run, version)
  for _, consumer in ipairs(version.checked.consumers) do
    if consumer.offer then consumer:offer(run) end
  end
  local plans = handler_plans.offer(run, version.checked)
  gates.offer(run)
  run.in_kernel:decide(version.checked)
  return plans
end

--- Returns by class what this process does with each event, so that it must see them.
local function taken_by(target_branches, limits, list)
  local taken = {}
  for _, branch in ipairs(target_branches or {}) do taken[branch.class] = 'so its threads cannot be selected' end
  for _, branch in ipairs(limits) do taken[branch.class] = "so a source's -N cannot count it" end
  for _, event in ipairs(list) do
    if event.gate then taken[event.class] = ('so %s cannot decide which events to pass on'):format(event.gate) end
  end
  return taken
end

--- Compiles the passes for the events that come one by one. Needs their handlers.
---@param run Run
---@param version Version
---@param targets? Branch[] see setup.filter()
function setup.passes(run, version, targets)
  local limits = version:limits()
  targets = container_filter.branches(run, targets)
  version:add_passes(targets, limits)
  run:print_only(function() return printed.events(run, version.checked) end)
  run:call('prepare', taken_by(targets, limits, run.events.list))
end

--- Prints what would be opened, for --dry-run and `profscript explain`.
---@param run Run
---@param version Version
---@param plans HandlerPlan[]
function setup.print(run, version, plans)
  local out, opt = run.out, run.opt
  out:append(opt.dry_run == 'schema' and schema.text(run) or out.format == 'json' and plan_json.text(run)
    or opt.explains and explain.text(run, plans, version.checked) or dry_run.text(run))
  if opt.dry_run == 'code' then out:append(generated.text(run)) end
  runs.flush(out)
end

--- Opens the events and starts the session.
---@param run Run
---@param version Version
---@param begin_target? fun(tids: integer[]) see setup.filter()
function setup.open(run, version, begin_target)
  local err, n, tids, opt = ffi.new 'struct error', ffi.new 'uint32_t[1]', {}, run.opt
  local target, anchors = attach.target(opt, run.workload, run.everywhere, run.marks, run.begun)
  target.groups = container_filter.reads_groups(run.events.list)
  C.session_set_interval(run.session, run.interval)
  -- It began when the run began to wait for other machines.
  if opt.duration then C.session_set_duration(run.session, math.max(opt.duration - (opt.waited or 0), 1)) end
  if opt.time then C.session_set_window(run.session, opt.time.from, opt.time.till) end
  if opt.remote_slack then C.session_set_slack(run.session, opt.remote_slack) end
  run.events:open(run:own_threads())
  if C.session_start(run.session, target, err) < 0 then failure.of(err) end
  run:opened(anchors)
  run.in_kernel:start()
  local threads = C.session_threads(run.session, n)
  for i = 1, n[0] do tids[i] = threads[i - 1] end
  version:begin(tids)
  if begin_target then begin_target(tids) end
  run.out:on_wait(function() C.session_check_end(run.session) end)
  version:open()
end

return setup
