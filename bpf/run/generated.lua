-- SPDX-License-Identifier: GPL-2.0-only
--- Output of --dry-run=code: the Lua source of the generated loops, and the BPF programs, each under a title that says
--- of which events it is.
local dispatch = require 'bindings.view.dispatch'
local listing = require 'bpf.run.listing'
local program = require 'bpf.gen.program'

local generated = {}

---@param run Run
---@return string lines, each with its newline
function generated.text(run)
  local parts = {}
  for _, loop in ipairs(dispatch.sources()) do
    local names = {}
    for _, class in ipairs(loop.classes) do
      local event = run.events.by_class[class]
      names[#names + 1] = event and ('%s is class %d'):format(event.name, class) or nil
    end
    local where = names[1] and ', where ' .. table.concat(names, ', ') or ''
    parts[#parts + 1] = ('\nloop %s%s:\n%s'):format(loop.name, where, loop.source)
  end
  for _, one in ipairs(program.listings()) do
    local lines = listing.lines(one.code)
    parts[#parts + 1] = ('\nBPF program of %s:\n%s\n'):format(one.name, table.concat(lines, '\n'))
  end
  return table.concat(parts)
end

return generated
