-- SPDX-License-Identifier: GPL-2.0-only
--- --sort: tells the output by which column it sorts tables, and refuses one that no table of the script has.
local failure = require 'bindings.base.failure'
local nearest = require 'bindings.base.nearest'
local tables = require 'bindings.base.table'

local sort = {}

--- Makes the output of a run sort its tables.
---@param run Run
---@return Follower
function sort.new(run)
  local wanted, known, is_known = run.opt.sort, {}, false
  local function see(_, names, spec)
    is_known = is_known or spec ~= nil and tables.column(spec, wanted) ~= nil
    for _, name in ipairs(spec and names or {}) do
      if name ~= 'time' then known[#known + 1] = name end
    end
  end
  tables.listen(see)
  run.out:sort_by(wanted)
  -- A script may create tables later.
  return { prepare = function()
    tables.unlisten(see)
    if is_known or #known == 0 then return end
    failure.usage("%s: --sort: no table has a column '%s'%s; there are %s", run.name, wanted,
      nearest.hint(wanted, known), table.concat(known, ', '))
  end }
end

return sort
