-- SPDX-License-Identifier: GPL-2.0-only
-- Listings of programs: an instruction of each kind.
local asm = require 'bpf.gen.asm'
local listing = require 'bpf.run.listing'

it('a listing has each instruction in the notation of bpftool', function()
  local a = asm.new()
  a:alu_r('mov', 6, 1)
  a:load(4, 1, 6, 16)
  a:store(8, asm.FRAME, -8, 1)
  a:store_value(1, asm.FRAME, -16, 7)
  a:alu('and', 1, 255)
  a:alu32_r('mov', 2, 1)
  a:alu('neg', 2, 0)
  a:to_big_endian(2, 16)
  a:jump('s>', 1, -3, 'out')
  a:jump32_r('!=', 1, 2, 'out')
  a:value(3, 2 ^ 40)
  a:map(1, { fd = 4 })
  a:map_value(2, { fd = 5 }, 8)
  a:atomic_add(8, 2, 0, 3)
  a:call 'map_lookup_elem'
  a:call_kernel(12)
  a:go 'out'
  a:label 'out'
  a:alu('mov', 0, 0)
  a:exit()
  assert.same({
    '   0: r6 = r1', '   1: r1 = *(u32 *)(r6 + 16)', '   2: *(u64 *)(r10 - 8) = r1', '   3: *(u8 *)(r10 - 16) = 7',
    '   4: r1 &= 255', '   5: w2 = w1', '   6: r2 = -r2', '   7: r2 = be16 r2', '   8: if r1 s> -3 goto 20',
    '   9: if w1 != w2 goto 20', '  10: r3 = 0x0000010000000000', '  12: r1 = map 4', '  14: r2 = value of map 5 + 8',
    '  16: lock *(u64 *)(r2 + 0) += r3', '  17: call map_lookup_elem', '  18: call kernel function 12',
    '  19: goto 20', '  20: r0 = 0', '  21: exit',
  }, listing.lines(a))
end)
