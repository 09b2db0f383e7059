-- SPDX-License-Identifier: GPL-2.0-only
--- The events that the user has selected.
local events = {}

local FEW = 5 -- names that fit into a message

--- Returns the events of an option as one list, in the order of the command line.
---@param groups Event[][] `opt.event`, or another option of the type event
---@return Event[]
function events.list(groups)
  local list = {}
  for _, group in ipairs(groups) do
    for _, event in ipairs(group) do list[#list + 1] = event end
  end
  return list
end

--- Returns those of a list that exist, in this order, and warns about missing ones.
---@param list any[] names of events, or what each of them belongs to
---@param name_of? fun(one: any): string
---@param name string of the profiler, for the warning
---@param out Output
---@param session Session
---@param lack? string what the result lacks if a recording lacks some; default: they are left out
---@return any[] existing
---@return string? message if there are none
function events.existing(list, name_of, name, out, session, lack)
  local existing, missing = {}, {}
  for _, one in ipairs(list) do
    local event = name_of and name_of(one) or one
    if session.supports(event) then existing[#existing + 1] = one else missing[#missing + 1] = event end
  end
  local is_recorded = session.recorded() ~= nil
  if #existing == 0 then
    local which = #missing > FEW and 'its events' or table.concat(missing, ', ')
    return existing, (is_recorded and 'the recording contains' or 'this kernel has') .. ' none of ' .. which
  end
  if #missing > 0 and not is_recorded then
    out:warn(('%s: this kernel has no %s'):format(name, table.concat(missing, ', ')))
  elseif #missing > 0 then
    local more = #missing > FEW and (' and %d more'):format(#missing - FEW) or ''
    out:warn(('%s: the recording has no %s%s: %s'):format(name,
      table.concat(missing, ', ', 1, math.min(#missing, FEW)), more, lack or 'they are left out'))
  end
  return existing
end

--- Samples per second and CPU, in Hz; not in step with timers of 1 ms.
events.RATE = 997

--- Returns the events to sample by, and their name: cycles, or cpu-clock without a hardware PMU; of a recording, the
--- events that perf sampled by.
---@param opt table
---@param out Output
---@param session Session
---@return Event[] events
---@return string name
function events.cpu_samples(opt, out, session)
  local recorded, list = session.recorded(), {}
  for i, name in ipairs(recorded or {}) do list[i] = session.event { name } end
  if recorded then return list, 'samples' end
  local name = session.supports 'cycles' and 'cycles' or 'cpu-clock'
  if name == 'cpu-clock' and opt.verbose > 0 then
    out:warn 'profile: cannot count cycles (no hardware PMU); sampling by cpu-clock'
  end
  list[1] = session.event { name, freq = not opt.period and (opt.freq or events.RATE) or nil, exclude_idle = true }
  return list, name
end

return events
