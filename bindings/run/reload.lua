-- SPDX-License-Identifier: GPL-2.0-only
--- Reload (--watch): when the script is saved, starts the new version of it beside the one that runs. If both ask for
--- the same events, the new one takes over between two batches, and no event is lost. If the new one asks for others,
--- the session is opened again. If it has a mistake, the version before goes on.
local declarations = require 'bindings.options.declare'
local event_filter = require 'bindings.select.event_filter'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local nearest = require 'bindings.base.nearest'
local route = require 'bpf.plan.route'
local sys = require 'bindings.base.sys'
local versions = require 'bindings.run.version'
local views = require 'bindings.view.views'
local watch = require 'bindings.run.watch'

local C = ffi.C
local reload = {}

---@class Reload
---@field again? { script: scripts.Script, opt: table, run: Run, stopped: number, files: FileWatch,
--- changes: string } the run is to be opened again with this version
local Reload = {}
Reload.__index = Reload

--- Options that leave nothing for another version of the script, and why.
local EXCLUDED = {
  push = 'all events are sent elsewhere, so the script gets none',
  dry_run = 'no version of the script would run',
  overwrite = 'a version of the script would get the events of the one before',
}

--- Returns the first of them that is given, and why it is one of them.
local function excluded(opt)
  for _, name in ipairs(nearest.keys(EXCLUDED)) do
    local given = opt[name]
    if given and not (type(given) == 'table' and #given == 0) then
      return '--' .. name:gsub('_', '-'), EXCLUDED[name]
    end
  end
end

--- Fails for options that --watch cannot be combined with.
---@param script scripts.Script
---@param opt table
function reload.check(script, opt)
  local name, why = excluded(opt)
  if opt.input then name, why = '--input', 'a recording is read only once' end
  if name then failure.usage('%s: --watch cannot be combined with %s: %s', script.name, name, why) end
end

--- Returns the session's descriptor for --watch, which must be set before the session starts.
---@param run Run
---@param before? table see Reload:_open_again()
---@return FileWatch
function reload.watch(run, before)
  local files = before and before.files or watch.new()
  C.session_wake_on(run.session, files.fd)
  return files
end

local function watch_files(files, paths)
  local ok, message = files:add(paths)
  if not ok then failure.raise('--watch: %s', message) end
end

---@param run Run
---@param version Version
---@param found scripts.Scripts
---@param files FileWatch from reload.watch()
---@return Reload
function reload.new(run, version, found, files)
  watch_files(files, version.script.files)
  return setmetatable({ _found = found, _files = files, _own = run:own_threads() }, Reload)
end

--- Tells that the session has been opened again, and for how long nobody has seen events.
---@param run Run
---@param before table see Reload:_open_again()
function reload.print_gap(run, before)
  run.out:warn(('%s: %s; the events of %.0f ms are missing'):format(run.name, before.changes,
    (sys.now() - before.stopped) / 1e6))
end

-- What changed -----------------------------------------------------------------------------------

--- Returns the handlers of a version by name, as bytecode without line numbers.
local function code_of(version)
  local code = {}
  for _, entry in ipairs(version.checked.events) do
    local name = entry.selector or entry.event.name
    code[name] = (code[name] or '') .. string.dump(entry.handler, true)
  end
  for name, handler in pairs(version.life) do code[name] = string.dump(handler, true) end
  return code
end

--- Returns the script's options by name, as text.
local function options_of(version)
  local list = {}
  for _, option in ipairs(version.script.spec.list) do
    if option.group == 'script' then
      list['--' .. option.long] = ('%s %s'):format(option.type, tostring(option.default))
    end
  end
  return list
end

local function add_differences(lines, what, old, new)
  local groups = { { 'added', {} }, { 'removed', {} }, { 'changed', {} } }
  for _, name in ipairs(nearest.keys(new)) do
    if old[name] == nil then table.insert(groups[1][2], name) end
    if old[name] ~= nil and old[name] ~= new[name] then table.insert(groups[3][2], name) end
  end
  for _, name in ipairs(nearest.keys(old)) do
    if new[name] == nil then table.insert(groups[2][2], name) end
  end
  for _, group in ipairs(groups) do
    if #group[2] > 0 then lines[#lines + 1] = ('%s %s %s'):format(what, group[1], table.concat(group[2], ', ')) end
  end
end

--- Returns what differs between two versions, in words.
---@param old Version
---@param new Version
---@param events string[] what differs in their events
---@return string
local function changes(old, new, events)
  local lines, kept = {}, {}
  add_differences(lines, 'handlers', code_of(old), code_of(new))
  add_differences(lines, 'options', options_of(old), options_of(new))
  for _, line in ipairs(events) do lines[#lines + 1] = line end
  if #lines == 0 then lines[1] = 'handlers as before' end
  for name in pairs(new.run.states) do
    if old.run.states[name] ~= nil then kept[#kept + 1] = name end
  end
  table.sort(kept)
  lines[#lines + 1] = #kept > 0 and 'state kept: ' .. table.concat(kept, ', ') or 'no state kept'
  return table.concat(lines, '; ')
end

--- What must be equal for two requests to be served by one open event, beside its attributes and filter.
local SAME = { 'callchain', 'counted', 'reads', 'everywhere', 'resolve', 'record', 'bpf_array' }

--- Returns whether an open event is what another version asks for.
local function is_same(open, event, own)
  for _, name in ipairs(SAME) do
    if open.request[name] ~= event.request[name] then return false end
  end
  local size = ffi.sizeof(open.request.attr)
  return ffi.string(open.request.attr, size) == ffi.string(event.request.attr, size)
    and open.attrs.cpus == event.attrs.cpus
    and event_filter.for_kernel(open, own) == event_filter.for_kernel(event, own)
    and not (open.route.is_captured and open.filters.user ~= event.filters.user)
end

--- Compares the events of a version with those that are open. Returns what differs, and whether these must be opened
--- anew.
---@param run Run the new version's
---@param own? integer[]
---@return string[] lines
---@return boolean is_other
local function compare(run, own)
  local set, lines, is_other, used = run.events, {}, false, {}
  local opened, unused = {}, {}
  for _, event in ipairs(set.list) do
    local open = set.taken_classes[event.class]
    if not open or not is_same(open, event, own) then
      is_other = true
      opened[#opened + 1] = event.name
    else
      route.write(event.route, { is_captured = open.route.is_captured })
    end
    used[event.class] = true
  end
  for _, event in ipairs(set.open_events) do
    if not used[event.class] then unused[#unused + 1] = event.name end
  end
  if #opened > 0 then lines[#lines + 1] = 'events opened: ' .. table.concat(opened, ', ') end
  if #unused > 0 then
    lines[#lines + 1] = ('events not used any more: %s'):format(table.concat(unused, ', '))
  end
  return lines, is_other
end

-- Taking over ------------------------------------------------------------------------------------

--- Returns the options of the new version: those of the run stay as they are.
local function options_for(script, opt)
  local new, problem = opt.parse_again(script)
  if not new then failure.usage('%s', problem) end
  local own = script.profiler.options or {}
  for _, option in ipairs(declarations.common) do
    local is_own = own[option.name] or option.type == 'event' or option.name == 'key'
    if not is_own then new[option.name] = opt[option.name] end
  end
  for _, name in ipairs { 'mmap_pages', 'watermark', 'cpus', 'interval' } do new[name] = opt[name] end
  new.parse_again, new.waited = opt.parse_again, opt.waited
  return new
end

--- Returns what a run begins with that takes the place of a run.
---@param run Run
---@param script scripts.Script
---@param last Run that of the script's last version, whose state and followers are kept
---@param what? string what has happened, for the line about the gap; nil: there is none
---@return table before
function reload.again(run, script, last, what)
  local opt = run.opt.parse_again(script)
  opt.parse_again, opt.notes = run.opt.parse_again, nil
  if not run.is_recorded then
    if opt.duration then opt.duration = math.max(opt.duration - sys.now(run.began), 1e6) end
    opt.exit_n = run.left and run.left[1]
  end
  return { script = script, opt = opt, run = last, stopped = sys.now(), changes = what }
end

--- Returns why the events of a run cannot be opened again; nil if they can.
---@param run Run
---@return string?
function reload.refuses(run)
  local what = #run.workload > 0 and 'a command' or excluded(run.opt)
  for _, follower in ipairs(run.followers) do what = what or follower.only_session end
  return what and ('with %s, events cannot be opened again: restart the run'):format(what) or nil
end

--- Makes the run open its events again with a version of the script.
function Reload:_open_again(loop, version, script, text)
  local run = loop.run
  local refused = reload.refuses(run)
  if refused then failure.raise('%s: %s; %s', run.name, text, refused) end
  self.again = reload.again(run, script, version.run, 'reloaded: ' .. text)
  self.again.files = self._files
  run:stop()
end

--- Returns whether a run has followers that belong to its version of the script.
local function has_own(run)
  for _, follower in ipairs(run.followers) do
    if follower.of_version then return true end
  end
  return false
end

--- Starts a version of the script beside the running one, and lets it take over.
---@param loop Loop
function Reload:_take(loop)
  local old, began = loop.version, sys.now()
  local script, message = self._found:load_file(old.script.path)
  if not script then failure.raise('%s', message) end
  watch_files(self._files, script.files)
  script.given = old.script.given
  local run = loop.run:again(script, options_for(script, loop.run.opt), self._found)
  local version = versions.start(run, script)
  version:split_filters()
  local events, is_other = compare(run, self._own)
  is_other = is_other or run.counts ~= nil or loop.run.counts ~= nil or run.everywhere ~= loop.run.everywhere
    or #run.events.sources.list > 0 or #loop.run.events.sources.list > 0
    or has_own(run) or has_own(loop.run)
  local text = changes(old, version, events)
  if is_other then return self:_open_again(loop, version, script, text) end
  version:add_passes(nil, {})
  version:open()
  old:close()
  self._before = { run = loop.run, version = old }
  loop.run, loop.version = run, version
  run.out:warn(('%s: reloaded in %.0f ms: %s'):format(run.name, (sys.now() - began) / 1e6, text))
end

local function complain(loop, problem)
  local text = failure.is(problem) and problem.message or tostring(problem)
  text = text:gsub('^profscript:? ', '')
  loop.run.out:warn(('%s\n%s: the version before goes on'):format(text, loop.run.name))
end

--- Looks whether the script has been saved. Called between two batches.
---@param loop Loop
function Reload:poll(loop)
  if self.again or not self._files:changed() then return end
  local ok, problem = xpcall(self._take, failure.traceback, self, loop)
  if ok then return end
  loop.version:take_over()
  complain(loop, problem)
end

--- After an error in a handler, goes back to the version before. What is left of the batch is not handled. Returns
--- false if there is no such version.
---@param loop Loop
---@param problem any
---@return boolean
function Reload:go_back(loop, problem)
  local before = self._before
  if not before then return false end
  self._before = nil
  views.end_batch()
  loop.version:close()
  loop.run, loop.version = before.run, before.version
  before.version:take_over()
  complain(loop, problem)
  return true
end

return reload
