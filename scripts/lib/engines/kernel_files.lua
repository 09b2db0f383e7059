-- SPDX-License-Identifier: GPL-2.0-only
--- Addresses of the kernel's symbols, and offsets of the fields of tracepoints (breakpoint, bpf:kvm_exit, watchdog).
local kernel_files = {}

local TRACEFS = { '/sys/kernel/tracing', '/sys/kernel/debug/tracing' }

--- Calls a function with each line of a file that can be read, until it returns a value, which is returned.
local function first_of(path, use)
  local file, found = io.open(path), nil
  for line in file and file:lines() or function() end do
    found = use(line)
    if found then break end
  end
  if file then file:close() end
  return found
end

--- Returns the address of a symbol.
---@param name string
---@return string? digits hexadecimal; nil if there is no such symbol; 0 if the kernel hides its addresses
function kernel_files.symbol(name)
  return first_of('/proc/kallsyms', function(line)
    local digits, symbol = line:match '^0*(%x+) %a (%S+)'
    return symbol == name and digits or nil
  end)
end

--- Returns the offsets of the fields of a tracepoint in its records; none if there is no such tracepoint.
---@param system string
---@param name string
---@return table<string, integer> offsets
function kernel_files.offsets(system, name)
  local found = {}
  for _, folder in ipairs(TRACEFS) do
    first_of(('%s/events/%s/%s/format'):format(folder, system, name), function(line)
      local field, offset = line:match 'field:.-([%w_]+);%s*offset:(%d+);'
      if field then found[field] = tonumber(offset) end
    end)
  end
  return found
end

return kernel_files
