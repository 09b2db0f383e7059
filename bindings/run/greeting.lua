-- SPDX-License-Identifier: GPL-2.0-only
--- What a run says on a terminal when it begins: what it traces, and how to end it.
local dry_run = require 'bpf.run.dry_run'
local events = require 'bindings.select.events'
local libc = require 'bindings.base.libc'
local text = require 'bindings.base.text'
local units = require 'bindings.base.units'

local greeting = {}

local STDERR, MOST, WIDTH = 2, 3, 80

--- Returns when the run ends and what it does then.
---@param opt table
---@param workload string[]
---@param reports boolean it prints a report at its end
local function ending(opt, workload, reports)
  if #workload > 0 then return (', until %s ends'):format(workload[1]) end
  local till = opt.duration and (' for %s'):format(units.time(opt.duration))
    or opt.exit_n and (' until %d event%s'):format(opt.exit_n, opt.exit_n == 1 and '' or 's') or ''
  return till .. (reports and '; Ctrl-C prints the result' or '; Ctrl-C ends it')
end

--- Prints it, if stderr is a terminal and the user sees nothing else.
---@param run Run
---@param reports boolean
function greeting.show(run, reports)
  local opt, out, words = run.opt, run.out, run.workload
  if run.is_recorded or opt.quiet or opt.verbose > 0 or out.has_prompt or libc.isatty(STDERR) == 0 then return end
  local list, names, seen = events.shown(run.events), {}, {}
  for _, event in ipairs(list) do
    if not seen[event.name] then names[#names + 1], seen[event.name] = event.name, true end
  end
  if #names == 0 then return end
  local first
  for n = #names > MOST + 1 and MOST or #names, 1, -1 do
    local more = #names > n and (', %d more'):format(#names - n) or ''
    first = text.safe(('%s: tracing %s%s'):format(run.name, table.concat(names, ', ', 1, n), more))
    if #first <= WIDTH then break end
  end
  local rest = text.safe('on ' .. dry_run.target(opt, words, run.everywhere) .. ending(opt, words, reports))
  io.stderr:write(first, #first + #rest < WIDTH and ' ' or '\n  ', rest, '\n')
end

return greeting
