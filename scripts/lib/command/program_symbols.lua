-- SPDX-License-Identifier: GPL-2.0-only
--- Symbols of a program's file, and of the files that it maps.
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local sys = require 'bindings.base.sys'
local usdt = require 'bindings.select.usdt'

local C = ffi.C
local program_symbols = {}

--- The functions are called with a dot.
---@class ProgramSymbols
---@field path string
---@field offset_of fun(address: number): integer64? returns the place of an address, as linked, in the file
---@field symbol_at fun(path: string, offset: number|integer64): string? returns 'malloc+0x1c' for a place in any file
---@field function_at fun(name: string, add: number): number? returns the place of a function in the file, plus add

--- Opens a program. Fails if it is not found.
---@param program string path, 'pid:N', or name in the current directory or $PATH
---@return ProgramSymbols
function program_symbols.open(program)
  -- The caller usually runs in the directory of the program.
  if not program:find '/' and sys.stat(program) then program = './' .. program end
  local path, err, place = usdt.find_binary(program), ffi.new 'struct error', ffi.new 'uint64_t[1]'
  local file = C.elf_file_open(path, err)
  if file == nil then failure.raise('%s', ffi.string(err.text)) end
  file = ffi.gc(file, C.elf_file_free)
  local symbols = C.symbols_new(true, C.NAMES_SHORT)
  if symbols == nil then failure.raise 'out of memory' end
  symbols = ffi.gc(symbols, C.symbols_free)
  local self = { path = path }

  function self.offset_of(address)
    if C.elf_file_offset(file, address, 1, place) == 0 then return place[0] end
  end

  function self.symbol_at(of, offset)
    local symbol = ffi.new 'struct symbol'
    local id = C.symbols_add(symbols, ffi.new('struct symbols_file', { path = of }))
    if not C.symbols_find(symbols, id, offset, symbol) then return end
    return ('%s+0x%x'):format(ffi.string(symbol.name), tonumber(symbol.offset))
  end

  function self.function_at(name, add)
    if C.elf_file_function(file, name, add, place, err) == 0 then return tonumber(place[0]) end
  end
  return self
end

return program_symbols
