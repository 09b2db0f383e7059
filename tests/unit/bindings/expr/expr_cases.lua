-- SPDX-License-Identifier: GPL-2.0-only
-- Expressions over the event of expr_event.lua: a table with their values, and random ones.

local ffi = require 'ffi'
local event = require 'tests.unit.bindings.expr.expr_event'

local cases = {}

--- Expressions, and their value and type as text.
cases.VALUES = {
  -- literals
  { '42', '42 i32' },
  { '2147483648', '2147483648 i64' },
  { '0x80000000', '2147483648 u32' },
  { '0xffffffffffffffff', '18446744073709551615ULL u64' },
  { '9223372036854775807', '9223372036854775807LL i64' },
  { '010', '8 i32' },
  { '1u', '1 u32' },
  { '5ul', '5 u64' },
  { "'a'", '97 i32' },
  { "'\\n'", '10 i32' },
  { "'\\x41'", '65 i32' },
  { '10ms', '10000000 i64' },
  { '1.5us', '1500 i64' },
  { '4KiB', '4096 i64' },
  { '"a" "b"', 'ab string' },
  { '"x\\ty\\"\\101"', 'x\ty"A string' },
  { '1 # comment', '1 i32' },
  { '1 + // comment\n2', '3 i32' },
  -- fields
  { 'f_i8', '-3 i32' },
  { 'f_u8', '200 i32' },
  { 'f_i16', '-300 i32' },
  { 'f_u16', '60000 i32' },
  { 'f_i32', '-7 i32' },
  { 'f_u32', '4000000000 u32' },
  { 'f_i64', '-5000000000LL i64' },
  { 'f_u64', '18364758544493064720ULL u64' },
  { 'addr', '18446744071578845184ULL u64' },
  { 'common_type', '17 i32' },
  { '_cpu', '3 i32' },
  { '_pid', '100 i32' },
  { '_tid', '101 i32' },
  { '_time', '12345678901LL i64' },
  { '_period', '7ULL u64' },
  -- arithmetic wraps and divides as in C
  { 'f_i32 + 1', '-6 i32' },
  { 'f_u32 + f_u32', '3705032704 u32' },
  { '2147483647 + 1', '-2147483648 i32' },
  { 'f_u32 * f_u32', '1983905792 u32' },
  { 'f_i32 - f_u32', '294967289 u32' },
  { '1 - 2u', '4294967295 u32' },
  { '-f_u32', '294967296 u32' },
  { '-(long)f_u32', '-4000000000 i64' },
  { '123456 * 654321', '-824525248 i32' },
  { 'f_i64 * 3', '-15000000000LL i64' },
  { 'f_u64 + 1', '18364758544493064721ULL u64' },
  { 'f_i32 / 2', '-3 i32' },
  { 'f_i32 % 2', '-1 i32' },
  { 'f_i32 / -2', '3 i32' },
  { '7 % -2', '1 i32' },
  { 'f_u32 / 3', '1333333333 u32' },
  { 'f_u32 % 7', '3 u32' },
  { 'f_i64 / 3', '-1666666666LL i64' },
  { 'f_i64 % 3', '-2LL i64' },
  { 'f_i32 / 2u', '2147483644 u32' },
  { '1 / 2 * 2', '0 i32' },
  { 'zero * -1', '0 i32' },
  { '(zero / -5) >> 33', '0 i64' },
  { 'min(zero / -5, 3)', '0 i32' },
  { '1 + 2 * 3 - 4', '3 i32' },
  { '(1 + 2) * 3', '9 i32' },
  -- bits
  { 'f_u8 & 0x0f', '8 i32' },
  { 'f_i32 & 0xff', '249 i32' },
  { 'f_u64 & 0xffff', '12816 u64' },
  { 'f_u64 & ~0xffffffffUL', '18364758542507835392ULL u64' },
  { 'f_i32 | 1', '-7 i32' },
  { 'f_u32 ^ 1', '4000000001 u32' },
  { '~f_u8', '-201 i32' },
  { '~0u', '4294967295 u32' },
  { '1 << 31', '-2147483648 i32' },
  { '3 << 64', '3 i64' },
  { '1l << 40', '1099511627776 i64' },
  { '1 << 32', '4294967296 i64' },
  { '(_cpu << 32) | f_u8', '12884902088LL i64' },
  { 'f_u32 << 33', '15912994294290448384ULL u64' },
  { 'f_i32 << 32', '-30064771072LL i64' },
  { 'f_i32 >> 32', '-1 i64' },
  { 'f_u32 >> 40', '0 u64' },
  { '1u << zero + 32', '1 u32' },
  { '(_cpu << 16) | f_u8', '196808 i32' },
  { 'f_i32 >> 1', '-4 i32' },
  { 'f_u32 >> 31', '1 u32' },
  { 'f_u64 >> 60', '15ULL u64' },
  { 'f_i64 >> 20', '-4769LL i64' },
  { '4096 << zero', '4096 i32' },
  -- comparisons and logic give 0 or 1
  { 'f_i32 < 0', '1 i32' },
  { 'f_i32 < 0u', '0 i32' },
  { 'f_i32 == -7', '1 i32' },
  { 'f_u32 > f_i32', '0 i32' },
  { 'f_i64 < f_i32', '1 i32' },
  { 'f_u64 > f_i64', '0 i32' },
  { '2 && 3', '1 i32' },
  { 'f_i32 && zero', '0 i32' },
  { 'zero || f_i64', '1 i32' },
  { '!f_i32', '0 i32' },
  { '!zero', '1 i32' },
  { '1 == 1 == 1', '1 i32' },
  { 'f_i32 < zero < 1', '0 i32' },
  { 'zero ? 1 : f_i32 ? 2 : 3', '2 i32' },
  { 'f_i32 ? f_i64 : 0', '-5000000000LL i64' },
  { 'zero ? 1 : 2u', '2 u32' },
  { 'zero && 10 / zero', '0 i32' },
  { 'f_i32 || 10 / zero', '1 i32' },
  { 'zero ? 10 / zero : 5', '5 i32' },
  -- casts truncate
  { '(char)f_u8', '-56 i32' },
  { '(unsigned char)f_i8', '253 i32' },
  { '(short)f_u16', '-5536 i32' },
  { '(unsigned short)f_i32', '65529 i32' },
  { '(int)f_u32', '-294967296 i32' },
  { '(unsigned)f_i32', '4294967289 u32' },
  { '(int)f_u64', '1985229328 i32' },
  { '(unsigned char)f_u64', '16 i32' },
  { '(unsigned long)f_i32', '18446744073709551609ULL u64' },
  { '(u32)f_i64', '3589934592 u32' },
  { '(long)f_u32', '4000000000 i64' },
  { 'sizeof(int)', '4 u64' },
  { 'sizeof(char *)', '8 u64' },
  { 'sizeof f_i16', '2 u64' },
  { 'sizeof(f_i16 + 0)', '4 u64' },
  { 'sizeof args', '48 u64' },
  { 'sizeof args / sizeof args[0]', '6 u64' },
  { 'sizeof "abc"', '4 u64' },
  { 'sizeof(1 / zero)', '4 u64' },
  -- comma, assignment: on a copy
  { '1, 2', '2 i32' },
  { 'f_i32 = 5, f_i32 * 2', '10 i32' },
  { 'f_i8 = 200', '-56 i32' },
  { 'f_u8 += 100, f_u8', '44 i32' },
  { 'f_i32++', '-7 i32' },
  { '++f_i32', '-6 i32' },
  { 'f_i32--, f_i32', '-8 i32' },
  { 'f_u64++, f_u64', '18364758544493064721ULL u64' },
  { 'zero && (f_i32 = 1), f_i32', '-7 i32' },
  { 'f_u8 = f_u16 = 3, f_u8 + f_u16', '6 i32' },
  { 'f_u64 = 0xf000000000000000, f_u64 >> 60', '15ULL u64' },
  -- arrays and pointers
  { 'args[2]', '3ULL u64' },
  { 'args[_cpu]', '4ULL u64' },
  { 'ints[3]', '-40 i32' },
  { '*ints', '10 i32' },
  { '*(ints + 1)', '20 i32' },
  { '&ints[3] - ints', '3 i64' },
  { '&ints[3] > &ints[2]', '1 i32' },
  { '((short *)ints)[2]', '20 i32' },
  { '*(int *)&common_type & 0xffff', '17 i32' },
  { '*&f_i32', '-7 i32' },
  { 'comm[0]', '98 i32' },
  { "comm[1] == 'a'", '1 i32' },
  { 'mac[5]', '255 i32' },
  { 'nums[1]', '-2 i32' },
  { 'nums_len / sizeof(int)', '2 u64' },
  { '*(int *)((char *)&common_type + nums_offset)', '1 i32' },
  -- no value: nil
  { 'f_i32 / zero', 'nil i32' },
  { 'f_i64 % zero', 'nil i64' },
  { 'f_i32 && 1 / zero', 'nil i32' },
  { 'args[f_i32]', 'nil u64' },
  { 'args[f_u64]', 'nil u64' },
  { 'ints[_cpu + 1]', 'nil i32' },
  { 'nums[2]', 'nil i32' },
  { 'nums[-1]', 'nil i32' },
  { '*((char *)&common_type + 100000)', 'nil i32' },
  { '*((char *)&common_type - 1)', 'nil i32' },
  -- strings, whatever the signedness of their characters
  { 'comm', 'bash string' },
  { 'name', '/usr/bin/ls string' },
  { 'rel', 'touch string' },
  { 'name_len', '12 i32' },
  { 'comm == "bash"', '1 i32' },
  { 'comm != "bash"', '0 i32' },
  { 'comm == "bas"', '0 i32' },
  { 'comm == "bashful"', '0 i32' },
  { '"bash" == comm', '1 i32' },
  { 'next_comm == "swapper/0"', '1 i32' },
  { 'comm == next_comm', '0 i32' },
  { 'comm == comm', '1 i32' },
  { 'name == "/usr/bin/ls"', '1 i32' },
  { 'rel == "touch"', '1 i32' },
  { '(char *)&common_type + name_offset', '/usr/bin/ls string' },
  { '((char *)&common_type + name_offset) ~ "*/ls"', '1 i32' },
  { '(comm + 2) == "sh"', '1 i32' },
  { '(comm + 17) == "x"', 'nil i32' },
  { 'comm ~ "ba*"', '1 i32' },
  { 'comm ~ comm', '1 i32' },
  { 'comm ~ next_comm', '0 i32' },
  { 'comm_get(7) ~ comm_get(7)', '1 i32' },
  { 'comm ~ comm_get(7)', '0 i32' },
  { 'comm ~ "*sh"', '1 i32' },
  { 'comm ~ "*as*"', '1 i32' },
  { 'comm ~ "as*"', '0 i32' },
  { 'comm ~ "*"', '1 i32' },
  { 'comm ~ "b?s[a-h]"', '1 i32' },
  { 'comm ~ "[^b]ash"', '0 i32' },
  { 'comm ~ "[!x]ash"', '1 i32' },
  { 'next_comm ~ "*/[0-9]"', '1 i32' },
  { 'f_i32 ? comm : "none"', 'bash string' },
  { 'zero ? name : rel', 'touch string' },
  { 'strncmp(comm, "basil", 3)', '0 i32' },
  { 'strncmp(comm, "basil", 4)', '-1 i32' },
  { 'strncmp(name, comm, 20)', '-1 i32' },
  { 'strncmp("b", "a", 1)', '1 i32' },
  -- functions
  { '_comm', 'task101@12 string' },
  { 'comm_get(_pid)', 'task100@12 string' },
  { 'ksymbol(addr)', 'sym_ffffffff81000000 string' },
  { 'ksymbol(addr) ~ "*81*"', '1 i32' },
  { 'ksymbol(addr) == "sym_1"', '0 i32' },
  { 'syscall_name(59)', 'sys_59 string' },
  { 'exit_reason_str(1, 30)', '1:30 string' },
  { 'ntohl(0x01020304)', '67305985 u32' },
  { 'ntohs(0x0102)', '513 i32' },
  { 'min(f_i32, 3)', '-7 i32' },
  { 'max(f_i32, f_i64)', '-7LL i64' },
  { 'min(f_i32, 1u)', '1 u32' },
}

local INTS = { 'f_i8', 'f_u8', 'f_i16', 'f_u16', 'f_i32', 'f_u32', 'f_i64', 'f_u64', 'zero' }
local ASSIGNABLE = { 'f_i8', 'f_u8', 'f_i16', 'f_u16', 'f_i32', 'f_u32', 'f_i64', 'f_u64' }
local CASTS = {
  'char', 'signed char', 'unsigned char', 'short', 'unsigned short', 'int', 'unsigned', 'long',
  'unsigned long', 'unsigned long long', 'long long',
}
local LITERALS = {
  '0', '1', '2', '3', '7', '10', '255', '256', '65535', '65536', '2147483647', '2147483648', '4294967295',
  '4294967296', '0x7fffffff', '0x80000000', '0xffffffff', '0x100000000', '0x7fffffffffffffff',
  '0xffffffffffffffff', '1u', '1l', '1ul', '4096', '1000000007', "'a'", "'\\n'", '017', '0xffull',
  '9223372036854775807',
  '4503599627370496', '9007199254740993', '2251799813685248',
}

local function pick(list) return list[math.random(#list)] end

local generate

local function leaf()
  local r = math.random(10)
  if r <= 6 then return pick(INTS) end
  if r == 7 then return ('args[%d]'):format(math.random(0, 5)) end
  if r == 8 then return ('ints[%s & 3]'):format(pick(INTS)) end
  return pick(LITERALS)
end

-- A divisor that is neither 0 nor -1.
local function divisor(depth)
  local r = math.random(5)
  if r == 1 then return tostring(math.random(1, 1000)) end
  if r == 2 then return '-' .. math.random(2, 1000) end
  local value = generate(depth - 1)
  if r == 3 then return ('(((%s) & 0xff) | 1)'):format(value) end
  if r == 4 then return ('((unsigned)(%s) | 1u)'):format(value) end
  return ('(((%s) | 1) == -1 ? 3 : ((%s) | 1))'):format(value, value)
end

function generate(depth)
  if depth <= 0 then return leaf() end
  local r = math.random(24)
  local function sub() return generate(depth - 1) end
  if r <= 9 then
    return ('(%s) %s (%s)'):format(sub(), pick { '+', '-', '*', '&', '|', '^' }, sub())
  elseif r <= 11 then
    return ('(%s) %s %s'):format(sub(), pick { '/', '%' }, divisor(depth))
  elseif r <= 13 then
    local count = math.random(2) == 1 and tostring(math.random(0, 31)) or ('((%s) & 31)'):format(sub())
    return ('(%s) %s %s'):format(sub(), pick { '<<', '>>' }, count)
  elseif r == 14 then
    return ('(%s)(%s) %s ((%s) & 63)'):format(pick { 'long', 'unsigned long' }, sub(), pick { '<<', '>>' }, sub())
  elseif r <= 17 then
    return ('(%s) %s (%s)'):format(sub(), pick { '==', '!=', '<', '<=', '>', '>=' }, sub())
  elseif r == 18 then
    return ('(%s) %s (%s)'):format(sub(), pick { '&&', '||' }, sub())
  elseif r <= 20 then
    return ('%s(%s)'):format(pick { '-', '~', '!', '+' }, sub())
  elseif r <= 22 then
    return ('(%s)(%s)'):format(pick(CASTS), sub())
  elseif r == 23 then
    return ('(%s) ? (%s) : (%s)'):format(sub(), sub(), sub())
  end
  return ('((%s) + sizeof(%s))'):format(sub(), pick { 'int', 'char', 'f_i16', 'args', 'comm', 'f_i8 + 1', 'long' })
end

-- Operators without parentheses: checks precedences.
local function flat()
  local parts = { leaf() }
  for _ = 1, math.random(2, 9) do
    parts[#parts + 1] = pick { '+', '-', '*', '&', '|', '^', '==', '<', '&&', '||', '<=', '!=', '>' }
    parts[#parts + 1] = pick { '', '', '-', '!', '~' } .. leaf()
  end
  return table.concat(parts, ' ')
end

local function with_assignment()
  local name = pick(ASSIGNABLE)
  local first = pick {
    ('%s = %s'):format(name, generate(2)), ('%s %s= %s'):format(name, pick { '+', '-', '*', '^', '|' }, generate(1)),
    ('%s++'):format(name), ('--%s'):format(name), ('%s = %s--'):format(name, pick(ASSIGNABLE)),
    ('%s && (%s = %s)'):format(leaf(), name, generate(1)),
  }
  return ('%s, %s'):format(first, (generate(2):gsub('%f[%w_]' .. pick(ASSIGNABLE), name)))
end

--- Returns a random expression, whose behavior in C is defined.
function cases.expression(i)
  if i % 5 == 0 then return flat() end
  if i % 7 == 0 then return with_assignment() end
  return generate(math.random(1, 4))
end

local EDGES = {
  0, 1, -1, 2, -2, 127, 128, -128, 255, 256, 32767, -32768, 65535, 2 ^ 31 - 1, -2 ^ 31, 2 ^ 31, 2 ^ 32 - 1,
}

local function random_i64()
  local r = math.random(6)
  if r <= 2 then return ffi.new('int64_t', pick(EDGES)) end
  if r == 3 then return pick { -0x8000000000000000LL, 0x7fffffffffffffffLL, 0x100000000LL, -0x100000001LL } end
  if r == 4 then return ffi.new('int64_t', math.random(-1000, 1000)) end
  local high, low = math.random(0, 2 ^ 31 - 1), math.random(0, 2 ^ 31 - 1)
  local value = ffi.new('int64_t', high) * 4294967296LL + low * 2
  return r == 5 and value or value / math.random(1, 2 ^ 20)
end


--- Returns a random record.
function cases.record()
  local values = { args = {}, ints = {} }
  for _, name in ipairs(ASSIGNABLE) do
    local kind = name:gsub('f_i', 'int'):gsub('f_u', 'uint') .. '_t'
    values[name] = ffi.cast(kind, random_i64())
  end
  for i = 1, 6 do values.args[i] = ffi.cast('uint64_t', random_i64()) end
  for i = 1, 4 do values.ints[i] = tonumber(ffi.cast('int32_t', random_i64())) end
  return event.new(values)
end

cases.INTS = INTS

return cases
