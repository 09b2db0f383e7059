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
local tables = require 'lib.table'

local ratios = {}

--- Returns a share in percent.
---@param part number
---@param total number
---@return number? percent nil if the total is 0
function ratios.percent(part, total) return total > 0 and 100 * part / total or nil end

---@class RatioSettings
---@field name string name of the profiler
---@field events string[] events to count, as in -e
---@field columns TableColumn[] columns after the CPU or thread
---@field row fun(n: number[], share: number, ns: number): table returns the fields of a row; n: counts of the events;
--- share: smallest share of the time in which an event was counted; ns: length of the interval

--- Returns the handlers of such a profiler.
---@param settings RatioSettings
---@param opt table options with exit_n
---@param out Output
---@param session Session
---@return table handlers
function ratios.start(settings, opt, out, session)
  local counts = session.count(settings.events, { together = true })
  local id = counts.title == 'CPU' and 'cpu' or 'tid'
  local columns = {
    { name = id, title = ('[%s]'):format(counts.title), format = id == 'cpu' and '[%03d]' or '[%6d]', align = 'right' },
  }
  for _, column in ipairs(settings.columns) do
    column.align = 'right'
    columns[#columns + 1] = column
  end
  local spec = tables.new(settings.name, columns)
  local left, before = opt.exit_n or math.huge, 0

  local function print_rows(time)
    if left == 0 then return end
    local rows = {}
    for row = 1, counts:rows() do
      local n, min_share, missing = {}, 1, false
      for i = 1, #counts.events do
        local share
        n[i], share = counts:get(row, i)
        min_share, missing = math.min(min_share, share or 0), missing or not n[i]
      end
      if not missing then -- a CPU need not have all events
        local one = settings.row(n, min_share, time - before)
        one[id] = counts:id(row)
        rows[#rows + 1] = one
      end
    end
    before = time
    out:table(spec, rows)
    left = left - 1
    if left == 0 then session.stop() end
  end
  return { interval = print_rows, stop = print_rows }
end

return ratios
