-- SPDX-License-Identifier: GPL-2.0-only
--- Symbolizes addresses from other tools and finds functions in a file. Implements --symbols, which speaks pprof's
--- symbolizer protocol.
local check = require 'bindings.base.check'
local program_symbols = require 'lib.command.program_symbols'

local symbolize = {}

local MAX_EXACT = 2 ^ 53 -- user-space addresses are smaller

---@class Symbolizer
---@field package _program ProgramSymbols
---@field package _maps { first: number, last: number, offset: number, path: string }[]
local Symbolizer = {}
Symbolizer.__index = Symbolizer

--- Opens a program. Fails if it is not found.
---@param program string path, 'pid:N', or name in the current directory or $PATH
---@return Symbolizer
function symbolize.new(program)
  check.is(program, 'string', 'symbolize.new takes the name of a file')
  return setmetatable({ _program = program_symbols.open(program), _maps = {} }, Symbolizer)
end

--- Adds a mapping.
---@param line string as in /proc/PID/maps, or `START-END: PATH`
---@return boolean is_mapping
function Symbolizer:add_mapping(line)
  local first, last, offset, path = line:match '^%s*(%x+)%-(%x+) +[%a-]+ +(%x+) +%x+:%x+ +%d+%s*(.-)%s*$'
  if not first then
    first, last, path = line:match '^%s*(%x+)%-(%x+): (.-)%s*$'
    offset = '0'
  end
  if not first then return false end
  self._maps[#self._maps + 1] = {
    first = tonumber(first, 16),
    last = tonumber(last, 16) - 1,
    offset = tonumber(offset, 16),
    path = path:gsub('\\012', '\n'),
  }
  self._is_sorted = false
  return true
end

--- Returns the mapping that contains an address.
function Symbolizer:_find(address)
  local maps = self._maps
  if not self._is_sorted then
    table.sort(maps, function(a, b) return a.first < b.first end)
    self._is_sorted = true
  end
  local low, high = 1, #maps
  while low <= high do
    local middle = math.floor((low + high) / 2)
    local map = maps[middle]
    if address < map.first then
      high = middle - 1
    elseif address > map.last then
      low = middle + 1
    else
      return map
    end
  end
end

--- Returns the file and offset of an address: from its mapping, or from the program as linked.
---@return string? path
---@return number|integer64|nil offset nil: unknown
function Symbolizer:_place(address)
  local map = self:_find(address)
  if map then
    -- The path of a deleted file may now belong to another file.
    local is_file = map.path:find '^/' and not map.path:find ' %(deleted%)$' or map.path == '[vdso]'
    if is_file then return map.path, address - map.first + map.offset end
    return
  end
  return self._program.path, self._program.offset_of(address)
end

--- Returns the function at an address, with the offset from its start.
---@param digits string the address in hexadecimal
---@return string? symbol 'malloc+0x1c'; nil if unknown
function Symbolizer:symbol(digits)
  check.self(self, Symbolizer, 'symbolizer:symbol')
  local address = tonumber(digits, 16)
  if not address or address >= MAX_EXACT then return end
  local path, offset = self:_place(address)
  return path and offset and self._program.symbol_at(path, offset)
end

--- Returns the file offset of a function of the program.
---@param name string function, optionally with +0xOFFSET
---@return string? offset '0x1234'; nil if there is no such function
function Symbolizer:offset(name)
  check.self(self, Symbolizer, 'symbolizer:offset')
  local func, offset = name:match '^(.+)%+(0x%x+)$'
  local place = self._program.function_at(func or name, tonumber(offset or 0))
  return place and ('0x%x'):format(place)
end

return symbolize
