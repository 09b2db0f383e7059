-- SPDX-License-Identifier: GPL-2.0-only
-- An event with one field of each kind, for the specs of the expression compiler.

local ffi = require 'ffi'

local C = ffi.C
local SIGNED, ARRAY, STRING = C.FIELD_SIGNED, C.FIELD_ARRAY, C.FIELD_STRING
local DYNAMIC, RELATIVE, POINTER = C.FIELD_DYNAMIC, C.FIELD_RELATIVE, C.FIELD_POINTER

local event = {}

local DECLARATION = [[
  uint16_t common_type; uint8_t common_flags, common_preempt_count; int32_t common_pid;
  int8_t f_i8; uint8_t f_u8; int16_t f_i16; uint16_t f_u16; uint8_t pad[2];
  int32_t f_i32; uint32_t f_u32; int64_t f_i64; uint64_t f_u64; uint64_t addr;
  char comm[16]; char next_comm[16];
  uint64_t args[6]; int32_t ints[4];
  uint32_t name; uint32_t nums; uint32_t rel;
  uint8_t big[12];
  int32_t end_; int32_t zero; uint8_t mac[6];
]]
event.declaration = DECLARATION

local payload = ffi.typeof('struct { ' .. DECLARATION:gsub('end_', '_end') .. ' } __attribute__((packed))')
event.payload = payload
event.fixed_size = ffi.sizeof(payload)

local function field(name, offset_of, elem_size, flags, count, size)
  return name, {
    name = name, type = '', offset = ffi.offsetof(payload, offset_of or name), size = size or elem_size * (count or 1),
    elem_size = elem_size, count = count or 1, flags = flags or 0,
  }
end

local fields = {}
local function add(name, description) fields[name] = description end
add(field('common_type', nil, 2))
add(field('common_flags', nil, 1))
add(field('common_preempt_count', nil, 1))
add(field('common_pid', nil, 4, SIGNED))
add(field('f_i8', nil, 1, SIGNED))
add(field('f_u8', nil, 1))
add(field('f_i16', nil, 2, SIGNED))
add(field('f_u16', nil, 2))
add(field('f_i32', nil, 4, SIGNED))
add(field('f_u32', nil, 4))
add(field('f_i64', nil, 8, SIGNED))
add(field('f_u64', nil, 8))
add(field('addr', nil, 8, POINTER))
add(field('comm', nil, 1, ARRAY + STRING, 16)) -- unsigned, as on kernels since 6.2
add(field('next_comm', nil, 1, ARRAY + STRING + SIGNED, 16))
add(field('args', nil, 8, ARRAY, 6))
add(field('ints', nil, 4, ARRAY + SIGNED, 4))
add(field('name', nil, 1, DYNAMIC + STRING, 0, 4))
add(field('nums', nil, 4, DYNAMIC + SIGNED + ARRAY, 0, 4))
add(field('rel', nil, 1, DYNAMIC + RELATIVE + STRING, 0, 4))
add(field('big', nil, 12, 0, 1))
add(field('zero', nil, 4, SIGNED))
add(field('mac', nil, 1, ARRAY, 6))
event.fields = fields

-- Builds a record: values of fixed fields by name; name, nums and rel as strings of bytes.
function event.new(values)
  local tail, tail_size = {}, 0
  local p = payload()
  for _, dynamic in ipairs { 'name', 'nums', 'rel' } do
    local bytes = values[dynamic] or ''
    local at = event.fixed_size + tail_size
    local base = dynamic == 'rel' and fields.rel.offset + 4 or 0
    p[dynamic] = #bytes * 65536 + at - base
    tail[#tail + 1] = bytes
    tail_size = tail_size + #bytes
  end
  for key, value in pairs(values) do
    if key == 'args' or key == 'ints' then
      for i, element in ipairs(value) do p[key][i - 1] = element end
    elseif key == 'words' then
      for dynamic, word in pairs(value) do p[dynamic] = word end
    elseif key ~= 'name' and key ~= 'nums' and key ~= 'rel' and key:sub(1, 1) ~= '_' then
      p[key] = value
    end
  end
  local size = event.fixed_size + tail_size
  local raw = ffi.new('uint8_t[?]', size + 1)
  ffi.copy(raw, p, event.fixed_size)
  ffi.copy(raw + event.fixed_size, table.concat(tail))
  local e = ffi.new('struct event')
  e.raw, e.raw_size = raw, size
  e.cpu, e.pid, e.tid = values._cpu or 3, values._pid or 100, values._tid or 101
  e.time, e.period = values._time or 12345678901, values._period or 7
  return {
    e = e, raw = ffi.cast('const uint8_t *', raw), size = size, keep = raw,
    p = ffi.cast(ffi.typeof('const $ *', payload), raw),
  }
end

function event.run(fn, record)
  return fn(record.e, record.p, record.raw, record.size)
end

--- An event to evaluate.
event.RECORD = event.new {
  common_type = 17, f_i8 = -3, f_u8 = 200, f_i16 = -300, f_u16 = 60000, f_i32 = -7, f_u32 = 4000000000,
  f_i64 = -5000000000LL, f_u64 = 0xfedcba9876543210ULL, addr = 0xffffffff81000000ULL, zero = 0,
  comm = 'bash', next_comm = 'swapper/0', args = { 1, 2, 3, 4, 5, 6 }, ints = { 10, 20, 30, -40 },
  name = '/usr/bin/ls\0', nums = '\1\0\0\0\254\255\255\255', rel = 'touch\0', mac = { 1, 2, 3, 4, 5, 255 },
}

return event
