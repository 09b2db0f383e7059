-- SPDX-License-Identifier: GPL-2.0-only
--- Counts by event and period, as `stat` and `hrcount` print them. A report has a row of periods for each event, or for
--- each event of each CPU or thread.
---
---   local g = grid.new { name = 'stat', events = events, period = 1e8, interval = 1e9, out = out }
---   g:add(12, cpu, 1, 342)   -- period number 12 (from 0), event number 1
---   g:print(1)               -- the report with the periods 10 to 19
local check = require 'bindings.base.check'
local shades = require 'lib.shades'
local sorted = require 'lib.sorted'
local tables = require 'lib.table'

local grid = {}

local MAX_PACKED = 5 -- with at most this many periods, events are columns on a terminal
local PAST = 480 -- periods of a picture

--- The reports that are not printed yet.
---@class Grid
local Grid = {}
Grid.__index = Grid

---@class GridSettings
---@field name string name of the table in JSON and CSV
---@field events Event[]
---@field period integer length of a period in ns
---@field interval integer length of a report in ns
---@field by? 'CPU'|'THREAD' print a row for each CPU or thread
---@field out Output

--- Creates an empty grid.
---@param settings GridSettings
---@return Grid
function grid.new(settings)
  check.is(settings, 'table', 'grid.new takes settings')
  check.settings(settings, { 'name', 'events', 'period', 'interval', 'by', 'out' }, 'grid.new')
  local columns = {
    { name = settings.by == 'THREAD' and 'tid' or 'cpu', show = settings.by ~= nil },
    { name = 'event' },
    { name = 'total', metric = 'counter' },
    { name = 'share', metric = 'none' }, -- of the time in which the event was counted
    { name = 'counts', metric = 'none' },
  }
  return setmetatable({
    by = settings.by,
    cells = math.max(1, math.floor(settings.interval / settings.period + 0.5)),
    period = settings.period,
    out = settings.out,
    events = settings.events,
    reports = {}, -- [number][id][event] = { [cell] = count, samples =, lacking = shares of the time without counting }
    largest = 0, -- count that was printed
    past = {}, -- [id][event] = counts of the last periods, for pictures
    spec = tables.new(settings.name, columns),
  }, Grid)
end

--- Returns the number of the report, from 0, that contains a period.
---@param period integer number of the period, from 0
---@return integer
function Grid:report_of(period) return math.floor(period / self.cells) end

local function new_table(parent, key)
  parent[key] = {}
  return parent[key]
end

local function new_row(self, events, event)
  local row = { samples = 0, lacking = 0 }
  for cell = 0, self.cells - 1 do row[cell] = 0 end
  events[event] = row
  return row
end

--- Adds a count to a period.
---@param period integer number of the period, from 0
---@param id integer CPU or thread
---@param event integer number of the event, from 1
---@param count number
---@param share? number share of the time in which the event was counted; default: 1
function Grid:add(period, id, event, count, share)
  local number = self:report_of(period)
  local report = self.reports[number] or new_table(self.reports, number)
  id = self.by and id or 0
  local events = report[id] or new_table(report, id)
  local row = events[event] or new_row(self, events, event)
  local cell = period - number * self.cells
  row[cell] = row[cell] + count
  row.samples = row.samples + 1
  if share then row.lacking = row.lacking + 1 - share end
end

--- Returns the number of digits of the largest count so far.
local function width_of(self)
  for _, report in pairs(self.reports) do
    for _, events in pairs(report) do
      for _, row in pairs(events) do
        for cell = 0, self.cells - 1 do self.largest = math.max(self.largest, row[cell]) end
      end
    end
  end
  return #('%d'):format(self.largest)
end

--- Returns the sum of the counts of a row.
local function total_of(self, row)
  local total = 0
  for cell = 0, self.cells - 1 do total = total + row[cell] end
  return total
end

--- Returns the counts of a row up to the period `last`.
local function counts_of(row, last)
  local list = {}
  for cell = 0, last do list[cell + 1] = row[cell] end
  return list
end

local function share_of(row) return 1 - row.lacking / row.samples end

local function percent(row)
  local share = share_of(row)
  return share < 0.995 and (' (%d%%)'):format(share * 100) or ''
end

local function label(self, id)
  return self.by and (self.by == 'CPU' and '[%03d] ' or '[%6d] '):format(id) or ''
end

--- Returns the report with a line for each event: `[000] sched:sched_wakeup 17|23|19 | total 59`.
local function direct(self, report, last)
  local lines, names, width = {}, {}, 0
  for i, event in ipairs(self.events) do
    names[i] = event.attrs.alias or event.name
    width = math.max(width, #names[i])
  end
  local cell = ('%%%dd'):format(width_of(self))
  for _, id in ipairs(sorted.keys(report)) do
    for i, name in ipairs(names) do
      local row = report[id][i]
      if row then
        local list = counts_of(row, last)
        for at, count in ipairs(list) do list[at] = cell:format(count) end
        lines[#lines + 1] = ('%s%s%s %s | total %d%s'):format(label(self, id), (' '):rep(width - #name), name,
          table.concat(list, '|'), total_of(self, row), percent(row))
      end
    end
  end
  return table.concat(lines, '\n') .. '\n'
end

--- Draws the report for a terminal: a line for each event, with a cell for each of the last periods. nil if there are
--- too few periods in a report for a picture.
local function picture(self, report, last)
  if not self.out:columns() or self.cells <= MAX_PACKED then return end
  local lines, past, max, widest = {}, self.past, {}, 0
  for _, id in ipairs(sorted.keys(report)) do
    past[id] = past[id] or {}
    for i, event in ipairs(self.events) do
      local row, cells = report[id][i], past[id][i] or {}
      if row then
        for cell = math.max(0, last - PAST + 1), last do cells[#cells + 1] = row[cell] end
        past[id][i] = { unpack(cells, math.max(1, #cells - PAST + 1)) }
        local line = { label = label(self, id) .. (event.attrs.alias or event.name), share = percent(row),
          total = total_of(self, row), event = i, cells = past[id][i] }
        lines[#lines + 1], widest = line, math.max(widest, #line.label)
      end
    end
  end
  return function(columns)
    local head, drawn = ('%%-%ds %%9d%%s '):format(widest), {}
    for _, line in ipairs(lines) do
      line.head = head:format(line.label, line.total, line.share)
      line.shown = { unpack(line.cells, math.max(1, #line.cells - (columns - #line.head) + 1)) }
      for _, count in ipairs(line.shown) do max[line.event] = math.max(max[line.event] or 1, count) end
    end
    for i, line in ipairs(lines) do drawn[i] = line.head .. shades.line(line.shown, max[line.event]) end
    return drawn
  end
end

--- Returns the report with a column for each event; nil if it does not fit the terminal.
local function packed(self, report, last)
  local columns = self.out:columns()
  if not columns or self.cells > MAX_PACKED then return end
  local lines, widths = { {} }, {}
  local cell = ('%%-%dd'):format(width_of(self))
  for i, event in ipairs(self.events) do
    lines[1][i] = event.alias
    widths[i] = #event.alias
  end
  local ids = sorted.keys(report)
  for _, id in ipairs(ids) do
    local line = {}
    for i in ipairs(self.events) do
      local row, text = report[id][i], ''
      if row then
        local list = counts_of(row, last)
        for at, count in ipairs(list) do list[at] = cell:format(count) end
        text = table.concat(list, ' ') .. percent(row)
      end
      line[i] = text
      widths[i] = math.max(widths[i], #text)
    end
    lines[#lines + 1] = line
  end
  local bar = (#self.events > 1 or self.cells > 1) and '|' or ''
  for at, line in ipairs(lines) do
    for i, text in ipairs(line) do line[i] = text .. (' '):rep(widths[i] - #text) .. bar end
    local head = at > 1 and label(self, ids[at - 1]) or self.by and (self.by == 'CPU' and '[CPU] ' or '[THREAD] ') or ''
    lines[at] = head .. bar .. table.concat(line)
    if #lines[at] > columns then return end
  end
  return table.concat(lines, '\n') .. '\n'
end

local function rows_of(self, report, last)
  local rows = {}
  for _, id in ipairs(sorted.keys(report)) do
    for i, event in ipairs(self.events) do
      local row = report[id][i]
      if row then
        rows[#rows + 1] = {
          [self.spec.columns[1].name] = id,
          event = event.attrs.alias or event.name,
          total = total_of(self, row),
          share = share_of(row),
          counts = counts_of(row, last),
        }
      end
    end
  end
  return rows
end

--- Prints a report and removes it.
---@param number integer number of the report, from 0
---@param settings? { at?: number, last?: integer } at: time of the report, default: now; last: the period to end with,
--- default: the last one of the report
---@return boolean printed false: the report is empty
function Grid:print(number, settings)
  local report = self.reports[number]
  if not report then
    self.out:table(self.spec, {}) -- there may be nothing to report in all
    return false
  end
  local at = settings and settings.at
  local last = settings and settings.last and settings.last - number * self.cells or self.cells - 1
  self.out:table(self.spec, rows_of(self, report, last), at, function()
    return packed(self, report, last) or direct(self, report, last)
  end, picture(self, report, last))
  self.reports[number] = nil
  return true
end

return grid
