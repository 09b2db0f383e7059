-- SPDX-License-Identifier: GPL-2.0-only
--- Symbols of addresses that others have gathered, and places of functions in a file: what pprof asks the program
--- for that it runs with --symbols.
local ffi = require 'ffi'
local check = require 'bindings.base.check'
local failure = require 'bindings.base.failure'
local sys = require 'bindings.base.sys'
local usdt = require 'bindings.select.usdt'

local C = ffi.C
local symbolize = {}

local MAX_EXACT = 2 ^ 53 -- programs have no addresses beyond it

---@class Symbolizer
---@field package _file ffi.cdata* the program's struct elf_file
---@field package _path string
---@field package _symbols ffi.cdata*
---@field package _maps { first: number, last: number, offset: number, path: string }[]
local Symbolizer = {}
Symbolizer.__index = Symbolizer

--- Opens a program. It fails where there is none.
---@param word string path, 'pid:N', or the name of a program or library
---@return Symbolizer
function symbolize.new(word)
  check.is(word, 'string', 'symbolize.new takes the name of a file')
  local err = ffi.new 'struct error'
  -- Who pipes into us is where the program is.
  if not word:find '/' and sys.stat(word) then word = './' .. word end
  local path = usdt.find_binary(word)
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
---@return boolean is_one false: the line is not a mapping
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

--- The mapping that has an address.
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

--- Where the byte at an address is: in what is mapped there, else in the program as it was linked.
---@return string? path, integer|ffi.cdata*|nil offset
function Symbolizer:_place(address)
  local map = self:_find(address)
  if map then
    -- What is at the path of a file that was deleted is another one.
    local is_file = map.path:find '^/' and not map.path:find ' %(deleted%)$' or map.path == '[vdso]'
    if is_file then return map.path, address - map.first + map.offset end
    return
  end
  local offset = ffi.new 'uint64_t[1]'
  if C.elf_file_offset(self._file, address, 1, offset) == 0 then return self._path, offset[0] end
end

--- The function at an address.
---@param digits string the address in hexadecimal
---@return string? symbol 'malloc+0x1c'; nil: not known
function Symbolizer:symbol(digits)
  check.self(self, Symbolizer, 'symbolizer:symbol')
  local address = tonumber(digits, 16)
  if not address or address >= MAX_EXACT then return end
  local path, offset = self:_place(address)
  if not path then return end
  local symbol = ffi.new 'struct symbol'
  local id = C.symbols_add(self._symbols, ffi.new('struct symbols_file', { path = path }))
  if not C.symbols_find(self._symbols, id, offset, symbol) then return end
  return ('%s+0x%x'):format(ffi.string(symbol.name), tonumber(symbol.plus))
end

--- Where a function of the program is in its file.
---@param name string may end in +0xOFFSET
---@return string? offset '0x1234'; nil: there is no such function
function Symbolizer:offset(name)
  check.self(self, Symbolizer, 'symbolizer:offset')
  local func, plus = name:match '^(.+)%+(0x%x+)$'
  local out, err = ffi.new 'uint64_t[1]', ffi.new 'struct error'
  if C.elf_file_function(self._file, func or name, tonumber(plus or 0), out, err) < 0 then return end
  return ('0x%x'):format(tonumber(out[0]))
end

return symbolize
