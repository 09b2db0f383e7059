-- SPDX-License-Identifier: GPL-2.0-only
--- Marks the results of a run that a signal has ended before all events were read: those of a recording, or those that
--- a live run was too far behind to read. Otherwise a live run that is interrupted is complete: it is of the
--- events until then.
local ffi = require 'ffi'

local C = ffi.C
local partial = {}

--- Says before the last report that it is partial, and sets run.partial.
---@param run Run
---@param interrupted? boolean
function partial.mark(run, interrupted)
  if not interrupted then return end
  local stats = ffi.new 'struct session_stats'
  C.session_read_stats(run.session, stats)
  local read, size = tonumber(stats.read), tonumber(stats.size)
  if not (run.is_recorded or stats.leaves_rest) or size > 0 and read >= size then return end
  local share = not run.is_recorded and 'before all events were read'
    or size > 0 and ('at %.0f %% of the recording'):format(math.floor(100 * read / size))
    or 'before the end of the recording'
  run:cut('interrupted ' .. share)
  run.out:warn(('%s: partial: %s, so all results are of %s events up to %s %s'):format(run.name, run.partial,
    run.is_recorded and 'its' or 'the', tostring(run.axis.value(stats.to)), run.axis.unit))
  if run.out.format ~= 'text' then
    run.out:record('partial', { reason = run.partial, bytes = run.is_recorded and read or nil,
      size = size > 0 and size or nil },
      { 'reason', 'bytes', 'size' })
  end
end

return partial
