-- SPDX-License-Identifier: GPL-2.0-only
--- Text of the registers of a sample.
local registers = {}

-- Flags and segments are shorter than other registers.
local LAYOUT = {
  { 'RIP', 'RSP', 'RFLAGS' }, { 'RAX', 'RBX', 'RCX' }, { 'RDX', 'RSI', 'RDI' }, { 'RBP', 'R8', 'R9' },
  { 'R10', 'R11', 'R12' }, { 'R13', 'R14', 'R15' }, { 'CS', 'SS' },
}
for first = 0, 27, 3 do -- of arm64
  LAYOUT[#LAYOUT + 1] = { ('X%02d'):format(first), ('X%02d'):format(first + 1), ('X%02d'):format(first + 2) }
end
LAYOUT[#LAYOUT + 1] = { 'LR', 'SP', 'PC' }
local FORMAT = { RFLAGS = '%s:%08x', CS = '%3s: %04x', SS = '%3s: %04x' }

--- Formats registers as indented lines of three. Registers of other architectures are left out.
---@param list { name: string, value: integer64 }[] result of session.registers()
---@return string lines with their newlines
function registers.block(list)
  local values, lines = {}, {}
  for _, register in ipairs(list) do values[register.name] = register.value end
  for _, names in ipairs(LAYOUT) do
    local parts = {}
    for _, name in ipairs(names) do
      if values[name] then parts[#parts + 1] = (FORMAT[name] or '%3s: %016x'):format(name, values[name]) end
    end
    if #parts > 0 then lines[#lines + 1] = '      ' .. table.concat(parts, ' ') .. '\n' end
  end
  return table.concat(lines)
end

return registers
