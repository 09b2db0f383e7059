-- SPDX-License-Identifier: GPL-2.0-only
--- Code that fills histograms with the buckets of native/hist.h.
local C = require('ffi').C

local buckets = {}

--- Generates code that raises the number at a register + off to that in another one. Another program may interrupt this
--- one, or run on another CPU, so the number that was there is put back if it is larger. Uses r1. Since Linux 5.12.
---@param a Asm
---@param to integer register
---@param off integer
---@param value integer register
---@param is_alone? boolean no other program writes there
function buckets.raise(a, to, off, value, is_alone)
  local done = a:new_label()
  a:load(8, 1, to, off)
  a:jump_r('<=', value, 1, done)
  if is_alone then
    a:store(8, to, off, value)
    return a:label(done)
  end
  a:alu_r('mov', 1, value)
  for _ = 1, 3 do
    a:exchange(to, off, 1)
    a:jump_r('<=', 1, value, done)
  end
  a:label(done)
end

--- Generates code that puts the number of the bucket of a register, which is not negative, into another one. Uses r1
--- and r2.
---@param a Asm
---@param from integer register
---@param to integer register
---@param none? string label, for a number that has none: never, but the verifier wants to know that before memory is
--- accessed
function buckets.number(a, from, to, none)
  a:alu_r('mov', 2, from)
  a:alu('mov', to, 0)
  for i = 5, 0, -1 do -- shifts the value until it is less than 128; the verifier would follow each path of jumps
    a:value(1, 2 ^ (6 + 2 ^ i) - 1)
    a:alu_r('sub', 1, 2)
    a:alu('rsh', 1, 63) -- 1 if the value is larger
    if i > 0 then a:alu('lsh', 1, i) end
    a:alu_r('rsh', 2, 1)
    a:alu_r('add', to, 1)
  end
  a:alu('lsh', to, 6)
  a:alu_r('add', to, 2)
  if none then a:jump('>=', to, C.HIST_BUCKETS, none) end
end

return buckets
