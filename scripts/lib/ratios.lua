-- SPDX-License-Identifier: GPL-2.0-only
--- Tables of ratios of counts, such as instructions per cycle: a row for each CPU or thread at each interval.
local tables = require 'lib.table'

local figures = {}

--- A share in percent.
---@param part number
---@param all number
---@return number? percent nil where there was nothing
function figures.percent(part, all) return all > 0 and 100 * part / all or nil end

---@class Figures
---@field name string of the profiler
---@field events string[]
---@field columns TableColumn[] that follow the CPU or thread
---@field row fun(n: number[], share: number, ns: number): table the fields of a row, from the counts of the
--- events, the least share of the time in which one of them was counted, and the length of the interval

--- The handlers of such a profiler.
---@param settings Figures
---@param opt table options with exit_n
---@param out Output
---@param session Session
---@return table handlers
function figures.start(settings, opt, out, session)
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
      local n, least, missing = {}, 1, false
      for i = 1, #counts.events do
        local share
        n[i], share = counts:get(row, i)
        least, missing = math.min(least, share or 0), missing or not n[i]
      end
      if not missing then -- else this CPU does not count them all
        local one = settings.row(n, least, time - before)
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

return figures
