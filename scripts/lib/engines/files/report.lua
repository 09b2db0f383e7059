-- SPDX-License-Identifier: GPL-2.0-only
--- The report of files: operations by process, kind and file, and slow ones as rows.
local array = require 'lib.array'
local calls = require 'lib.engines.files.calls'
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local names = require 'lib.names'
local rows = require 'lib.engines.rows'
local tables = require 'lib.table'
local text = require 'bindings.base.text'
local units = require 'lib.units'

local report = { LABELS = { 'task', 'op', 'mount', 'file' } } -- what can make a row

local MAX_ROWS = 65536 -- further ones share a row
local OTHER = '(other)'
local WRITE = 2 -- and less: an operation that has bytes
local SLOW = { 'time', 'task', 'op', 'file', 'result', 'ns' }

---@alias FileAdder fun(ev: Ev, pid: integer, file: integer, operation: integer, ns: number, ret: number, failed:
--- boolean)

local FileReport = {}
FileReport.__index = FileReport

--- Creates the report.
---@param opt table by, top, than
---@param out Output
---@param session Session
function report.new(opt, out, session)
  local shown = rows.shown(opt.by, report.LABELS)
  tables.record('slow', SLOW)
  local time = tables.time_column
  return setmetatable({
    opt = opt, out = out, session = session, shown = shown, keys = intern.new(3, MAX_ROWS),
    hists = hist.set(MAX_ROWS + 1, opt.than), bytes = array.new(MAX_ROWS + 1), errors = array.new(MAX_ROWS + 1),
    spec = tables.new('files', {
      { name = 'task', show = shown.task }, { name = 'op', show = shown.op },
      { name = 'calls', metric = 'counter', of_histogram = true }, { name = 'err', metric = 'counter' },
      { name = 'bytes', metric = 'counter', unit = 'bytes', align = 'right' },
      time('total', true), time 'avg', time 'p99', time 'max', tables.than_column(opt.than),
      { name = 'latency_ns', metric = 'histogram' },
      { name = 'mount', show = shown.mount }, { name = 'file', show = shown.file },
    }),
  }, FileReport)
end

--- Returns the function that adds an operation.
---@return FileAdder
function FileReport:adder()
  local id_of, hists, bytes, errors = self.keys.id, self.hists, self.bytes, self.errors
  local than = self.opt.than or math.huge
  return function(ev, pid, file, operation, ns, ret, failed)
    local id = id_of(pid, file, operation)
    hists:add(id, ns)
    if failed then
      errors[id] = errors[id] + 1
    elseif operation <= WRITE then
      bytes[id] = bytes[id] + ret
    end
    if ns > than then self:slow(ev, pid, file, operation, ns, ret) end
  end
end

--- Prints a slow operation.
function FileReport:slow(ev, pid, file, operation, ns, ret)
  local out, task, op, path = self.out, rows.task(self.session, pid), calls.name(operation), self.files:path(file)
  if out.format == 'text' then
    local result = ret < 0 and names.errno(ret) or ret
    out:stamp(ev._time, text.safe((' files: %s: %s of %s = %s, %s'):format(task, op, path, result, units.time(ns))))
  else
    out:record('slow', { time = out:seconds(ev._time), task = task, op = op, file = path, result = ret, ns = ns }, SLOW)
  end
end

--- Returns the row of the entries with the same texts, without figures.
local function labels(self, id)
  if id == MAX_ROWS then return { task = OTHER, op = '', file = '', mount = '' } end
  local path, mount = self.files:path(self.keys:part(id, 2))
  return { task = rows.task(self.session, self.keys:part(id, 1)), op = calls.name(self.keys:part(id, 3)), file = path,
    mount = mount }
end

--- Returns the rows: entries with the same texts are one.
local function rows_of(self)
  local list, by_key, last = {}, {}, self.keys:count() - 1
  for id = 0, self.keys:overflow() > 0 and MAX_ROWS or last do
    local found = (id <= last or id == MAX_ROWS) and self.hists:get(id)
    if found then
      local row, parts = labels(self, id), {}
      for i, name in ipairs(report.LABELS) do parts[i] = self.shown[name] and row[name] or '' end
      local key = table.concat(parts, '\n')
      local same = by_key[key]
      if not same then
        same, by_key[key], list[#list + 1] = row, row, row
        same.hist, same.bytes, same.err, same.key = hist.new(self.opt.than), 0, 0, key
      end
      same.hist:merge(found)
      same.bytes, same.err = same.bytes + self.bytes[id], same.err + self.errors[id]
    end
  end
  for _, row in ipairs(list) do tables.latency_row(row, row.hist) end
  return list
end

--- Prints the operations since the last report.
function FileReport:draw()
  local list = rows_of(self)
  table.sort(list, function(a, b)
    if a.total_ns ~= b.total_ns then return a.total_ns > b.total_ns end
    return a.key < b.key
  end)
  rows.print(self.out, self.spec, list, self.opt.top)
end

--- Prints them, and begins anew.
function FileReport:print()
  self:draw()
  for id = 0, self.keys:count() - 1 do self.bytes[id], self.errors[id] = 0, 0 end
  self.bytes[MAX_ROWS], self.errors[MAX_ROWS] = 0, 0
  self.hists:clear()
  self.keys:clear()
end

return report
