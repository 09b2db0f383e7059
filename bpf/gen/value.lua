-- SPDX-License-Identifier: GPL-2.0-only
--- Numbers of the compiler (compile.lua): integers of a C type, which are constants or in a register.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local TYPES = require('bindings.expr.types').INTEGERS

local value = {}

local CTYPES = {}
for name in pairs(TYPES) do
  CTYPES[name] = ffi.typeof((name:gsub('^i', 'int'):gsub('^u', 'uint') .. '_t'))
end
local int64 = ffi.typeof 'int64_t'

---@class KernelNumber
---@field kind 'num'
---@field type string key of types.INTEGERS
---@field constant? ffi.cdata* int64_t
---@field upper? 'sign'|'zero'|'both' what the upper half of the register holds beside a type of up to 32 bits: extended
--- as signed, as unsigned, or both as it is not negative; nil: anything

--- Returns a number in a register.
---@return KernelNumber
function value.number(kind, upper) return { kind = 'num', type = kind, upper = upper } end

--- Returns a constant, converted to a type.
---@return KernelNumber
function value.constant(kind, n)
  return { kind = 'num', type = kind, constant = int64(ffi.cast(CTYPES[kind], n)) }
end

--- Returns a constant as an operand of an instruction; nil if it does not fit, or is none.
---@return integer?
function value.immediate(number, kind)
  if not number.constant then return nil end
  if TYPES[kind].size == 4 then return tonumber(ffi.cast('int32_t', number.constant)) end
  local n = tonumber(number.constant)
  return asm.fits(n) and n or nil
end

function value.is_wide(kind) return TYPES[kind].size == 8 end

function value.is_signed(kind) return TYPES[kind].signed == true end

--- Promotes types below int to int.
---@param number KernelNumber
---@return KernelNumber
function value.promote(number)
  if TYPES[number.type].size >= 4 then return number end
  return { kind = 'num', type = 'i32', constant = number.constant, upper = number.upper }
end

return value
