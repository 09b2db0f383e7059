-- SPDX-License-Identifier: GPL-2.0-only
--- Reports problems with stacks at the end of a run: missing symbols and truncated stacks. With -v also the memory
--- that stacks and symbols use.
local ffi = require 'ffi'
local sys = require 'bindings.base.sys'

local C = ffi.C
local stack_report = {}

local MIN_STACKS = 20 -- with fewer stacks, shares are meaningless
local SHORT_SHARE = 0.3 -- share of short stacks that indicates missing frame pointers
local CUT_SHARE = 0.1 -- share of truncated stacks that is reported even without -v

local function mib(bytes)
  return ('%.1f MiB'):format(tonumber(bytes) / 2 ^ 20)
end

---@param self table the run
local function print_unwound(self, stats)
  local stacks, cut, lost = tonumber(stats.unwound), tonumber(stats.cut), tonumber(stats.lost)
  local gaps = tonumber(stats.gaps)
  local many = cut + gaps > CUT_SHARE * stacks
  if stacks == 0 or not (many or self.opt.verbose >= 1) then return end
  local chosen = self.opt.call_graph
  local mode = type(chosen) == 'table' and chosen.mode == 'dwarf' and 'dwarf,SIZE' or 'dwarf'
  self.out:warn(('%s: unwound %d stacks: %d exceed the copied size%s%s, %d end at an unknown address'):format(self.name,
    stacks, cut, gaps > 0 and (', %d may lack callers'):format(gaps) or '',
    many and (' (--call-graph %s copies more)'):format(mode) or '', lost))
end

--- Reports user stacks that look like those of programs without frame pointers.
---@param self table the run
local function print_short(self, stats)
  local all, short = tonumber(stats.with_user), tonumber(stats.short_user)
  if self.opt.verbose < 1 or tonumber(stats.unwound) > 0 or all < MIN_STACKS or short < SHORT_SHARE * all then
    return
  end
  self.out:warn(('%s: %d of %d distinct user stacks have only one or two frames; programs without frame pointers need '
    .. '--call-graph dwarf'):format(self.name, short, all))
end

--- Prints the memory used by stacks and symbols, if the run has any.
---@param self table the run
function stack_report.memory(self)
  local stats = ffi.new 'struct resolve_stats'
  if not C.session_read_resolve_stats(self.session, stats) then return end
  self.out:tell(('profscript: stacks: %d distinct, %s; symbols: %d files, %d tables, %s; address spaces: '
    .. '%d processes, %s%s; unwind tables: %s'):format(tonumber(stats.stacks), mib(stats.stack_bytes),
      tonumber(stats.files), tonumber(stats.tables), mib(stats.symbol_bytes), tonumber(stats.processes),
      mib(stats.map_bytes), stats.forgotten > 0 and (', %d evicted'):format(tonumber(stats.forgotten)) or '',
      mib(stats.unwind_bytes)))
end

--- Returns why the kernel hides the addresses of its functions.
local function why_hidden()
  local restrict = (sys.read '/proc/sys/kernel/kptr_restrict' or '?'):match '%S+'
  if restrict == '0' or restrict == '1' then
    return ('their addresses are hidden from this user; use CAP_SYSLOG%s'):format(
      restrict == '0' and ', or set kernel.perf_event_paranoid to 1' or '')
  end
  return 'kernel.kptr_restrict hides their addresses; set it to 0, or to 1 and use CAP_SYSLOG'
end

--- Prints the report, if there is anything to report.
---@param self table the run
function stack_report.print(self)
  local stats = ffi.new 'struct resolve_stats'
  if not C.session_read_resolve_stats(self.session, stats) then return end
  if stats.kernel_hidden ~= 0 then
    self.out:warn(('%s: no symbols for kernel functions, because %s'):format(self.name, why_hidden()))
  end
  if tonumber(stats.overflow) > 0 then
    self.out:warn(('%s: counted %d stacks as one, because there are too many distinct ones'):format(self.name,
      tonumber(stats.overflow)))
  end
  print_unwound(self, stats)
  print_short(self, stats)
  if self.opt.verbose >= 1 then stack_report.memory(self) end
end

return stack_report
