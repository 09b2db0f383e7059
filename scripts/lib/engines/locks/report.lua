-- SPDX-License-Identifier: GPL-2.0-only
--- The report of lock: waits by lock, type, caller and owner.
local aggregate = require 'lib.aggregate'
local hist = require 'lib.hist'
local rows = require 'lib.engines.rows'
local tables = require 'lib.table'
local text = require 'bindings.base.text'
local wait_totals = require 'lib.engines.off_cpu.wait_totals'

local report = {}

local KERNEL = 0xffff000000000000ULL -- the first address of the kernel that a key keeps as what is above it
local KINDS = 64
local MOST_OFFSET = 4096 -- of a lock in a variable
local UNKNOWN = '<...>'

--- Functions that wait for a lock on behalf of others: their caller is of interest.
local OF_LOCKS = { '^__traceiter', '^trace_', '^bpf_', 'slowpath', '^_*mutex_', '^_*down_', '^_*up_', '^_*rwsem_',
  '^_raw_', '^queued_', '^native_queued', '^__pv_', '^pcpu_', '^percpu_', '^rt_mutex', '^__?rt_', '^contention',
  '^_*lll_', '^_*pthread_', '^_*GI_', '^_*futex', 'futex_wait', '^syscall$', '^sem_', '^__new_sem', '^_*cnd_',
  '^_*mtx_', '^%[libc%A', '^%[libpthread%A' }

local function is_of_locks(name)
  for _, pattern in ipairs(OF_LOCKS) do
    if name:find(pattern) then return true end
  end
  return false
end

---@class LockReport
---@field kernel_type fun(kind: integer): string
---@field user_type fun(kind: integer): string
---@field holds? fun(out: Output, limit: integer) see holds.follow()
---@field cycles? fun(time: number): string[] returns threads that wait for each other, as text
local Report = {}
Report.__index = Report

--- Returns an address in the kernel as a number that is a key.
---@param address integer64
---@return number
function report.kernel_key(address) return tonumber(address - KERNEL) end

--- Creates the report.
---@param opt table
---@param out Output
---@param session Session
---@return LockReport
function report.new(opt, out, session)
  return setmetatable({
    opt = opt, out = out, session = session, than = opt.than or -1,
    totals = wait_totals.new(), -- by process or 0, address, stack, type and owner
    names = {}, -- of locks, by id
    waits = out:is_observed() and hist.set(wait_totals.MAX_KEYS + 1), -- by id, for metrics and the page
    hists = opt.hist and aggregate.new('hist', { 'lock', 'type' }, { name = 'waits (ns)' }),
    spec = tables.new('lock', {
      { name = 'task' }, { name = 'lock' }, { name = 'type' }, { name = 'count', title = 'waits', metric = 'counter' },
      { name = 'total_ns', title = 'total', unit = 'ns', metric = 'counter', of_histogram = true },
      { name = 'max_ns', title = 'max', unit = 'ns' }, { name = 'caller' }, { name = 'owner' },
      { name = 'wait_ns', metric = 'histogram' },
    }),
  }, Report)
end

--- Returns an address in a program as text.
function report.address(address) return ('0x%x'):format(address) end

--- Adds a wait.
---@param ns number
---@param pid integer process; 0: the kernel
---@param address number of the lock; in the kernel, see report.kernel_key()
---@param kind integer type, less than 64
---@param stack integer
---@param owner integer thread; 0: not known
---@param ev? Ev at the end of the wait; nil: it lasts
function Report:add(ns, pid, address, kind, stack, owner, ev)
  if ns <= self.than then return end
  local id = self.totals.id(pid, address, stack, owner * KINDS + kind)
  if not self.names[id] then
    self.names[id] = report.name_of(self.session, ev, pid == 0 and KERNEL + address or address)
  end
  self.totals:add(id, ns, 1, ns)
  if self.waits then self.waits:add(id, ns) end
  if self.hists then self.hists:add(ns, self.names[id], (pid > 0 and self.user_type or self.kernel_type)(kind)) end
end

--- Returns the name of a lock: its symbol, if it is a variable or a member of one.
---@param session Session
---@param ev? Ev of its process; nil: none is at hand
---@param address number|integer64
---@return string
function report.name_of(session, ev, address)
  local symbol = ev and session.address_text(ev, address) or ''
  local name, offset = symbol:match '^([%a_][^%[]*)%+0x(%x+)$'
  local is_near = name and tonumber(offset, 16) < MOST_OFFSET
  return is_near and (offset == '0' and name or symbol) or report.address(address)
end

--- Returns the function that has wanted the lock.
local function caller_of(self, stack, is_user)
  if stack < 0 then return '' end
  local names, kinds = {}, {}
  local n = self.session.frame_names(stack, names, kinds)
  for i = 1, n do
    if not (is_user and kinds[i] == 'k') and not is_of_locks(names[i]) then return names[i] end
  end
  return names[n] or ''
end

local function owner_of(self, tid)
  local name = tid > 0 and self.session.task_name(tid) or UNKNOWN
  return name ~= UNKNOWN and ('%s (%d)'):format(name, tid) or nil
end

--- Returns the entries. Stacks with the same caller are one, unless stacks are printed.
local function entries(self)
  local totals, session, with_stacks, by_text = self.totals, self.session, self.opt.call_graph, {}
  return totals:entries(function(id)
    local pid, stack, what = totals:part(id, 1), totals:part(id, 3), totals:part(id, 4)
    local type_of = pid > 0 and self.user_type or self.kernel_type
    local entry = { task = pid > 0 and rows.task(session, pid) or '[kernel]',
      lock = self.names[id], type = type_of(what % KINDS), stack = stack, caller = caller_of(self, stack, pid > 0),
      owner = owner_of(self, math.floor(what / KINDS)) }
    local shown = table.concat({ entry.lock, entry.task, entry.type, entry.caller, entry.owner or '',
      with_stacks and session.stack_text(stack) or '' }, '\n')
    local same, waits = by_text[shown], self.waits and self.waits:get(id)
    if same and waits then same:merge(waits) end
    entry.wait_ns, by_text[shown] = waits, same or waits
    return entry, shown
  end)
end

--- Prints the waits since the last report, and the threads that wait for each other.
---@param time number
function Report:print(time)
  local printed = rows.print(self.out, self.spec, entries(self), self.opt.top)
  for _, row in ipairs(self.opt.call_graph and printed or {}) do
    if row.stack >= 0 then
      self.out:print(('%s, %s, %s:'):format(row.lock, row.type, row.caller))
      for _, line in ipairs(self.session.stack_lines(row.stack)) do self.out:print('    ' .. line) end
    end
  end
  if self.hists then
    self.hists:print(self.out, { limit = self.opt.top })
    self.hists:clear()
  end
  if self.holds then self.holds(self.out, self.opt.top) end
  for _, line in ipairs(self.cycles and self.cycles(time) or {}) do
    self.out:warn('lock: ' .. text.safe(line))
  end
  self.totals:finish(self.out, 'lock')
  if self.waits then self.waits:clear() end
  self.names = {}
end

return report
