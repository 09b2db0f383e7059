-- SPDX-License-Identifier: GPL-2.0-only
--- Costs: the CPU time that an event adds to the task in which it happens, in ns. The figures are those of
--- docs/performance.md, measured there on one machine: `getppid` in a loop for system calls, `perf bench sched pipe`
--- for the scheduler. Other tracepoints cost about as much as system calls. On another machine the figures are a guess,
--- but their order is not.
local costs = {}

costs.SOURCE = 'docs/performance.md'

-- By way: of system calls and others, of the scheduler.
local EVENT = {
  sample = { 557, 855 }, capture = { 113, 250 }, count = { 113, 132 }, pair = { 105, 207 }, outliers = { 112, 257 },
  keep = { 120, 301 }, states = { 228, 228 },
}
-- The same with the stack in the kernel. That of `waits` has the program's part, too, by unwind tables.
local WITH_STACK = { sample = { 776, 2737 }, capture = { 702, 2326 }, waits = { 1000, 1000 } }

--- Returns the cost of an event; nil: it was not measured.
---@param way string
---@param event EventFacts
---@return number?
function costs.of(way, event)
  if not event.is_tracepoint then return end
  local figures = (event.has_stack and WITH_STACK or EVENT)[way]
  return figures and figures[event.name:match '^sched:' and 2 or 1]
end

return costs
