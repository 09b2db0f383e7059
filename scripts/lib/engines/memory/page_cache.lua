-- SPDX-License-Identifier: GPL-2.0-only
--- What happens to the page cache, by file and task: pages that are added, removed and written, and faults.
local bit = require 'bit'
local counter = require 'lib.counter'
local inodes = require 'lib.engines.disks.inodes'
local rows = require 'lib.engines.rows'
local tables = require 'lib.table'

local page_cache = { LABELS = { 'task', 'file' } } -- what can make a row

local PAGE = 4096
local MAX_KEYS = 65536
local lshift = bit.lshift

local COLUMNS = { 'faults', 'added', 'removed', 'written' }

---@class PageCache
local PageCache = {}
PageCache.__index = PageCache

--- Creates the counts of a run.
---@param opt table by, top
---@param out Output
---@param session Session
---@return PageCache
function page_cache.new(opt, out, session)
  local shown = rows.shown(opt.by, page_cache.LABELS)
  local self = setmetatable({ opt = opt, out = out, session = session, shown = shown, sums = {},
    inodes = inodes.new(not opt.input) }, PageCache)
  local columns = { { name = 'task', show = shown.task } }
  for _, name in ipairs(COLUMNS) do
    self.sums[name] = counter.new({ 'dev', 'inode', 'pid' }, { max_keys = MAX_KEYS })
    columns[#columns + 1] = { name = name, metric = 'counter', unit = name ~= 'faults' and 'bytes' or nil,
      align = 'right' }
  end
  columns[#columns + 1] = { name = 'file', show = shown.file }
  self.spec = tables.new('pagecache', columns)
  return self
end

--- Adds the handler of an event about pages.
local function add_pages(handlers, session, name, sums)
  local event = session.supports(name) and session.event { name }
  if not event then return end
  local has_order = event.fields.order ~= nil -- older kernels have events of single pages
  handlers[event] = function(ev)
    sums:add(has_order and lshift(1, ev.order) or 1, ev.s_dev, ev.i_ino, ev._pid)
  end
end

--- Returns the handlers of the events.
---@return table handlers
function PageCache:handlers()
  local faults, written, session = self.sums.faults, self.sums.written, self.session
  local all, handlers = {
    ['filemap:mm_filemap_fault'] = function(ev) faults:add(1, ev.s_dev, ev.i_ino, ev._pid) end,
    ['ext4:ext4_writepages_result'] = function(ev) written:add(ev.pages_written, ev.dev, ev.ino, ev._pid) end,
  }, {}
  for name, handler in pairs(all) do
    if session.supports(name) then handlers[name] = handler end
  end
  add_pages(handlers, session, 'filemap:mm_filemap_add_to_page_cache', self.sums.added)
  add_pages(handlers, session, 'filemap:mm_filemap_delete_from_page_cache', self.sums.removed)
  return handlers
end

--- Prints what has happened since the last report.
function PageCache:print()
  local list, by_key, shown, session = {}, {}, self.shown, self.session
  for _, name in ipairs(COLUMNS) do
    self.sums[name]:each(function(value, dev, inode, pid)
      local is_other = type(dev) ~= 'number'
      local task = shown.task and (is_other and '(other)' or rows.task(session, pid))
      local file = shown.file and (is_other and '(other)' or self.inodes:name(dev, tonumber(inode)))
      local key = ('%s\n%s'):format(task or '', file or '')
      local row = by_key[key]
      if not row then
        row = { task = task, file = file, key = key, total = 0 }
        for _, column in ipairs(COLUMNS) do row[column] = 0 end
        by_key[key], list[#list + 1] = row, row
      end
      row[name], row.total = row[name] + value * (name ~= 'faults' and PAGE or 1), row.total + value
    end)
    self.sums[name]:clear()
  end
  table.sort(list, function(a, b)
    if a.total ~= b.total then return a.total > b.total end
    return a.key < b.key
  end)
  rows.print(self.out, self.spec, list, self.opt.top)
end

return page_cache
