-- SPDX-License-Identifier: GPL-2.0-only
--- What is said about stacks when a run is over: why some have no names or no end, and, with -v, what
--- memory they took.
local ffi = require 'ffi'

local C = ffi.C
local stack_report = {}

local MANY = 20 -- stacks from which on a part of them says something
local SHORT = 0.3 -- above this part, short stacks are no accident
local MOSTLY = 0.1 -- above this part of all stacks, what went wrong is said without -v

local function mib(bytes)
  return ('%.1f MiB'):format(tonumber(bytes) / 2 ^ 20)
end

---@param self table the run
local function print_unwound(self, stats)
  local stacks, cut, lost = tonumber(stats.unwound), tonumber(stats.cut), tonumber(stats.lost)
  local much = cut > MOSTLY * stacks
  if stacks == 0 or not (much or self.opt.verbose >= 1) then return end
  local hint = much and ' (--call-graph dwarf,SIZE copies more)' or ''
  self.out:warn(('%s: %d stacks were unwound: %d are longer than what was copied of them%s, %d lead to where '
    .. 'nothing is known'):format(self.name, stacks, cut, hint, lost))
end

--- Frame pointers that lead nowhere.
---@param self table the run
local function print_short(self, stats)
  local all, short = tonumber(stats.with_user), tonumber(stats.short_user)
  if self.opt.verbose < 1 or tonumber(stats.unwound) > 0 or all < MANY or short < SHORT * all then return end
  self.out:warn(('%s: %d of %d different stacks of user space have one or two frames: programs without frame pointers, '
    .. 'whose stacks --call-graph dwarf can unwind'):format(self.name, short, all))
end

--- Prints what memory stacks take, where there are any.
---@param self table the run
function stack_report.memory(self)
  local stats = ffi.new 'struct resolve_stats'
  if not C.session_read_resolve_stats(self.session, stats) then return end
  self.out:tell(('profscript: stacks: %d different, %s; symbols: %d files, %d tables, %s; address spaces: '
    .. '%d processes, %s%s; tables to unwind: %s'):format(tonumber(stats.stacks), mib(stats.stack_bytes),
      tonumber(stats.files), tonumber(stats.tables), mib(stats.symbol_bytes), tonumber(stats.processes),
      mib(stats.map_bytes), stats.forgotten > 0 and (', %d forgotten'):format(tonumber(stats.forgotten)) or '',
      mib(stats.unwind_bytes)))
end

--- Prints it, if there is anything to say.
---@param self table the run
function stack_report.print(self)
  local stats = ffi.new 'struct resolve_stats'
  if not C.session_read_resolve_stats(self.session, stats) then return end
  if stats.kernel_hidden ~= 0 then
    self.out:warn(('%s: kernel functions have no names, as their addresses are hidden: kernel.kptr_restrict must be 0, '
      .. 'or 1 with CAP_SYSLOG'):format(self.name))
  end
  if tonumber(stats.overflow) > 0 then
    self.out:warn(('%s: %d stacks were counted as one: there are too many different ones'):format(self.name,
      tonumber(stats.overflow)))
  end
  print_unwound(self, stats)
  print_short(self, stats)
  if self.opt.verbose >= 1 then stack_report.memory(self) end
end

return stack_report
