-- SPDX-License-Identifier: GPL-2.0-only
--- Output of `profscript explain SCRIPT`: what --dry-run prints, with the reasons why events are not counted or
--- captured by BPF programs, and what runs where for each line of the handlers. It decides nothing itself.
local dry_run = require 'bpf.run.dry_run'
local text = require 'bindings.base.text'

local explain = {}

local WIDTH = 64 -- of a source line

--- Returns the lines of a file; an empty table if it cannot be read.
local function lines_of(path)
  local lines, file = {}, io.open(path)
  if not file then return lines end
  for line in file:lines() do lines[#lines + 1] = line end
  file:close()
  return lines
end

--- Returns what is to be said about a line of a handler; nil: nothing.
---@param code handler_code.Code
---@param line integer
---@param is_taken boolean
---@param guards integer conditions that programs check
---@return string?
local function about(code, line, is_taken, guards)
  local parts, notes = {}, code.notes[line]
  local adds, reads = false, code.reads[line]
  for _, statement in ipairs(code.statements) do adds = adds or statement.line == line end
  for i, condition in ipairs(code.conditions) do
    adds = adds or condition.line == line
    is_taken = is_taken or i <= guards and condition.line == line
  end
  if notes then
    parts[1] = 'in Lua: ' .. table.concat(notes, ', ')
  elseif adds or reads then
    parts[1] = is_taken and 'in the kernel' or 'in Lua'
  end
  if reads then parts[#parts + 1] = 'reads ' .. table.concat(reads, ', ') end
  return #parts > 0 and table.concat(parts, '; ') or nil
end

--- Returns whether programs check the first conditions of a handler, so that it gets only the events for which it does
--- something.
local function is_guarded(run, plan)
  for _, event in ipairs(plan.events) do
    if run.in_kernel.only_plan[event] == plan and event.route.level == 'guards' then return true end
  end
  return false
end

---@param run Run
---@param plan HandlerPlan
---@return string lines, each with its newline
local function handler(run, plan)
  local names, code = {}, plan.code
  for i, event in ipairs(plan.events) do names[i] = event.name end
  local subject = 'handler of ' .. table.concat(names, ', ')
  if plan.is_declared then return subject .. ': counts what the script declares as data\n' end
  if plan.without and not plan.without.refusal then
    return subject .. ': is not called, as the kernel pairs these events\n'
  end
  local is_taken = plan.offer ~= nil and not plan.offer.refusal
  if not is_taken and plan.events[1] and plan.events[1].route.sent then
    return subject .. ': runs in Lua for those that are sent\n'
  end
  local reason = plan.reason or plan.offer and plan.offer.refusal
  local guards = is_guarded(run, plan) and code.guards or 0
  local lines = { ('%s%s: %s'):format(subject, code and (' (%s:%d)'):format(code.file, code.first) or '',
    is_taken and 'counts in the kernel' or guards > 0 and 'runs in Lua for the events that pass its first conditions'
    or 'runs in Lua for each event') }
  if not is_taken then lines[2] = '  why: ' .. reason end
  local source = code and lines_of(code.file) or {}
  for line = code and code.first or 1, code and code.last or 0 do
    local what = about(code, line, is_taken, guards)
    if what then
      local shown = text.safe((source[line] or ''):gsub('^%s+', ''))
      if #shown > WIDTH then shown = shown:sub(1, WIDTH - 3) .. '...' end
      lines[#lines + 1] = ('%5d  %-' .. WIDTH .. 's -- %s'):format(line, shown, what)
    end
  end
  return table.concat(lines, '\n') .. '\n'
end

---@param run Run
---@param plans HandlerPlan[]
---@param checked contract.Handlers
---@return string lines
function explain.text(run, plans, checked)
  local parts = { dry_run.text(run, true) }
  for _, plan in ipairs(plans) do
    local event = plan.events[1]
    if not (event and event.is_derived) then parts[#parts + 1] = handler(run, plan) end
  end
  if #checked.consumers > 0 then
    parts[#parts + 1] = ('entries without an event: %d, which take their events as said above\n'):format(
      #checked.consumers)
  end
  local life = {}
  for name in pairs(checked.life) do life[#life + 1] = name end
  table.sort(life)
  if #life > 0 then parts[#parts + 1] = ('other handlers, in Lua: %s\n'):format(table.concat(life, ', ')) end
  return table.concat(parts)
end

return explain
