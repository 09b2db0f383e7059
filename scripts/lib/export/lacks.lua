-- SPDX-License-Identifier: GPL-2.0-only
--- What a timeline of scheduling lacks, and what that means for it. These are pure functions.
local lacks = {}

local SWITCH = 'sched:sched_switch'

-- What says who runs and who waits, what is not shown without it, and what can take its place.
local EVENTS = {
  { SWITCH, 'it is not shown who runs and who waits' },
  { 'sched:sched_wakeup', 'waits that begin with a wakeup are not shown', 'sched:sched_waking' },
  { 'sched:sched_wakeup_new', 'the first wait of each new task is not shown' },
  { 'sched:sched_migrate_task', 'a task that waits and is migrated is shown at its first CPU until it runs' },
}

--- Returns a line for each event of the scheduler that a recording lacks, if the export is about scheduling.
---@param exported table<string, boolean> names of the events
---@param has fun(name: string): boolean whether the recording has an event
---@return string[]
function lacks.events(exported, has)
  local lines, is_about_it = {}, false
  for _, one in ipairs(EVENTS) do
    is_about_it = is_about_it or exported[one[1]] or one[3] and exported[one[3]] or false
  end
  if not is_about_it or not exported[SWITCH] and has(SWITCH) then return lines end
  for _, one in ipairs(EVENTS) do
    local is_there = has(one[1]) or one[3] and has(one[3])
    if not is_there then lines[#lines + 1] = ('the recording has no %s: %s'):format(one[1], one[2]) end
    if not exported[SWITCH] then return lines end
  end
  return lines
end

--- Returns a line about switches that are not there; nil: none are known to be missing.
---@param seen integer switches that have one before them on their CPU
---@param broken integer of these, those from another task than the one that the CPU had entered
---@param has_queues? boolean the timeline shows who waits
---@return string?
function lacks.switches(seen, broken, has_queues)
  if broken == 0 then return end
  return ('%d of %d %s are from another task than the CPU had entered: switches are missing between them, so it is not '
    .. 'shown who ran%s'):format(broken, seen, SWITCH, has_queues and ', and not who waited' or '')
end

return lacks
