-- SPDX-License-Identifier: GPL-2.0-only
--- Tables of ratios of counts, such as instructions per cycle. They have a row for each CPU or thread.
---
---   start = function(opt, out, session)
---     return ratios.start({
---       name = 'ipc',
---       events = { 'instructions', 'cycles' },
---       columns = { { name = 'ipc', format = '%.2f' } },
---       row = function(n) return { ipc = n[1] / n[2] } end,
---     }, opt, out, session)
---   end
local reports = require 'lib.reports'
local tables = require 'lib.table'

local ratios = {}

--- Returns a share in percent.
---@param part number
---@param total number
---@return number? percent nil if the total is 0
function ratios.percent(part, total) return total > 0 and 100 * part / total or nil end

--- Returns a quotient.
---@param part number
---@param total number
---@return number? quotient nil if the total is 0
function ratios.of(part, total) return total > 0 and part / total or nil end

--- Returns the event whose count is the time that CPUs or threads run, in ns.
---@param session Session
---@return string
function ratios.running(session) return session.per_thread and 'task-clock' or 'sched:sched_stat_runtime' end

---@class RatioSettings
---@field name string name of the profiler
---@field events? string[] events to count, as in -e
---@field read? fun(add: fun(id: integer, n: number[], share: number)) instead of events: passes what was counted on
--- each CPU or in each thread since the last call to `add`: the counts, and the smallest share of the time
---@field only_cpus? string why the events cannot be counted by thread
---@field handlers? table other handlers of the profiler
---@field columns TableColumn[] columns after the CPU or thread
---@field row fun(n: number[], share: number, ns: number): table returns the fields of a row; n: counts of the events;
--- share: smallest share of the time in which an event was counted; ns: length of the interval

--- Returns `read` of the settings for events that the kernel counts.
local function reader(counts)
  return function(add)
    for row = 1, counts:rows() do
      local n, min_share, missing = {}, 1, false
      for i = 1, #counts.events do
        local share
        n[i], share = counts:get(row, i)
        min_share, missing = math.min(min_share, share or 0), missing or not n[i]
      end
      if not missing then add(counts:id(row), n, min_share) end -- a CPU need not have all events
    end
  end
end

--- Returns the handlers of such a profiler.
---@param settings RatioSettings
---@param opt table options of reports.options()
---@param out Output
---@param session Session
---@return table? handlers nil: see message
---@return string? message
function ratios.start(settings, opt, out, session)
  local read, title = settings.read, session.instance_title
  if settings.only_cpus and title == 'THREAD' then return nil, settings.only_cpus end
  if not read then
    local counts = session.count(settings.events, { together = true })
    read, title = reader(counts), counts.title
  end
  local id = title == 'CPU' and 'cpu' or 'tid'
  local columns = {
    { name = id, title = ('[%s]'):format(title), format = id == 'cpu' and '[%03d]' or '[%6d]', align = 'right' },
  }
  for _, column in ipairs(settings.columns) do
    column.align = 'right'
    columns[#columns + 1] = column
  end
  local spec = tables.new(settings.name, columns)
  local before = 0
  return reports.handlers(opt, session, function(time)
    local rows = {}
    read(function(instance, n, share)
      local row = settings.row(n, share, time - before)
      row[id] = instance
      rows[#rows + 1] = row
    end)
    before = time
    out:table(spec, rows)
  end, settings.handlers)
end

return ratios
