-- SPDX-License-Identifier: GPL-2.0-only
--- Symbolizes addresses from other tools and finds functions in a file. Implements --symbols, which speaks pprof's
--- symbolizer protocol.
local ffi = require 'ffi'
local check = require 'bindings.base.check'
local failure = require 'bindings.base.failure'
local sys = require 'bindings.base.sys'
local usdt = require 'bindings.select.usdt'

local C = ffi.C
local symbolize = {}

local MAX_EXACT = 2 ^ 53 -- user-space addresses are smaller

---@class Symbolizer
---@field package _file ffi.cdata* the program's struct elf_file
---@field package _path string
---@field package _symbols ffi.cdata*
---@field package _maps { first: number, last: number, offset: number, path: string }[]
local Symbolizer = {}
Symbolizer.__index = Symbolizer

--- Opens a program. Fails if it is not found.
---@param program string path, 'pid:N', or name in the current directory or $PATH
---@return Symbolizer
function symbolize.new(program)
  check.is(program, 'string', 'symbolize.new takes the name of a file')
  local err = ffi.new 'struct error'
  -- The caller usually runs in the directory of the program.
  if not program:find '/' and sys.stat(program) then program = './' .. program end
  local path = usdt.find_binary(program)
  local file = C.elf_file_open(path, err)
  if file == nil then failure.raise('%s', ffi.string(err.text)) end
  local symbols = C.symbols_new(true, C.NAMES_SHORT)
  if symbols == nil then failure.raise 'out of memory' end
  return setmetatable({
    _file = ffi.gc(file, C.elf_file_free),
    _path = path,
    _symbols = ffi.gc(symbols, C.symbols_free),
    _maps = {},
  }, Symbolizer)
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
---@return string? path, integer|ffi.cdata*|nil offset
function Symbolizer:_place(address)
  local map = self:_find(address)
  if map then
    -- The path of a deleted file may now belong to another file.
    local is_file = map.path:find '^/' and not map.path:find ' %(deleted%)$' or map.path == '[vdso]'
    if is_file then return map.path, address - map.first + map.offset end
    return
  end
  local offset = ffi.new 'uint64_t[1]'
  if C.elf_file_offset(self._file, address, 1, offset) == 0 then return self._path, offset[0] end
end

--- Returns the function at an address, with the offset from its start.
---@param digits string the address in hexadecimal
---@return string? symbol 'malloc+0x1c'; nil if unknown
function Symbolizer:symbol(digits)
  check.self(self, Symbolizer, 'symbolizer:symbol')
  local address = tonumber(digits, 16)
  if not address or address >= MAX_EXACT then return end
  local path, offset = self:_place(address)
  if not path then return end
  local symbol = ffi.new 'struct symbol'
  local id = C.symbols_add(self._symbols, ffi.new('struct symbols_file', { path = path }))
  if not C.symbols_find(self._symbols, id, offset, symbol) then return end
  return ('%s+0x%x'):format(ffi.string(symbol.name), tonumber(symbol.offset))
end

--- Returns the file offset of a function of the program.
---@param name string function, optionally with +0xOFFSET
---@return string? offset '0x1234'; nil if there is no such function
function Symbolizer:offset(name)
  check.self(self, Symbolizer, 'symbolizer:offset')
  local func, offset = name:match '^(.+)%+(0x%x+)$'
  local out, err = ffi.new 'uint64_t[1]', ffi.new 'struct error'
  if C.elf_file_function(self._file, func or name, tonumber(offset or 0), out, err) < 0 then return end
  return ('0x%x'):format(tonumber(out[0]))
end

return symbolize
