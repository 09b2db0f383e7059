-- SPDX-License-Identifier: GPL-2.0-only
--- The events of a run that its script may print as lines, so that --query has rows of them. What code can be reached
--- tells it, so the answer errs on the side of yes.
local mentions = require 'bpf.handlers.mentions'

local printed = {}

-- What a script says that prints events: by itself, or by its details.
local PRINTERS = { print_event = true, show = true }

local function prints(text, is_code) return is_code and PRINTERS[text] == true end
local function records(text, is_code) return is_code and text == 'recorder' end

--- Returns the events that may be printed.
---@param run Run
---@param checked contract.Handlers
---@return Event[]
function printed.events(run, checked)
  local start, leads = run.profiler.start, mentions.leads_to(run)
  local function is_closed(value) return value == start or leads(value) end -- only what start() has returned runs
  -- A flight recorder prints events that no handler has seen.
  if run.opt.verbose > 1 or mentions.any({ start }, records, nil, leads) then return run.events.list end
  local all, own, list = { checked.life, of_host = checked.consumers }, {}, {}
  for _, entry in ipairs(checked.events) do
    all[#all + 1] = entry.handler
    if entry.event then own[entry.event.class] = entry.handler end
  end
  if not mentions.any(all, prints, nil, is_closed) then return list end
  for _, event in ipairs(run.events.list) do
    -- Records of a script's BPF programs are often only added up.
    local handler = event.name:find '^bpf:' and own[event.class]
    if not handler or mentions.any({ handler }, prints, nil, is_closed) then list[#list + 1] = event end
  end
  return list
end

return printed
