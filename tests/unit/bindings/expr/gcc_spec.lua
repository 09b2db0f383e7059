-- SPDX-License-Identifier: GPL-2.0-only
-- Random C expressions over random field values: gcc and the expression compiler must agree on value and
-- type of each. Undefined behavior is excluded by construction.

local ffi = require 'ffi'
local event = require 'tests.unit.bindings.expr.expr_event'
local expr = require 'bindings.expr.compile'

local EXPRESSIONS = tonumber(os.getenv('EXPR_GCC_COUNT')) or 3000
local RECORDS = 4
local SEED = tonumber(os.getenv('EXPR_GCC_SEED')) or 20240607

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

local function any_expression(i)
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


local function random_record()
  local values = { args = {}, ints = {} }
  for _, name in ipairs(ASSIGNABLE) do
    local kind = name:gsub('f_i', 'int'):gsub('f_u', 'uint') .. '_t'
    values[name] = ffi.cast(kind, random_i64())
  end
  for i = 1, 6 do values.args[i] = ffi.cast('uint64_t', random_i64()) end
  for i = 1, 4 do values.ints[i] = tonumber(ffi.cast('int32_t', random_i64())) end
  return event.new(values)
end

-- The C program prints type and value for each record, one expression per line.
local function c_program(expressions, records)
  local out = {
    '#include <stdint.h>', '#include <stdio.h>', '#define uint64_t unsigned long', '#define int64_t long',
    ('struct rec { %s } __attribute__((packed));'):format(event.declaration),
    '#define K(x) _Generic(+(x), int: "i32", unsigned: "u32", long: "i64", unsigned long: "u64",'
      .. ' long long: "i64", unsigned long long: "u64", default: "?")',
  }
  for name in (table.concat(INTS, ' ') .. ' args ints comm'):gmatch('%S+') do
    out[#out + 1] = ('#define %s r.%s'):format(name, name)
  end
  for i, text in ipairs(expressions) do
    out[#out + 1] = ('static long e%d(struct rec r) { return (long)(%s); }'):format(i, text)
    out[#out + 1] = ('static const char *k%d(struct rec r) { return K((%s)); }'):format(i, text)
  end
  out[#out + 1] = ('static const unsigned char records[%d][%d] = {'):format(#records, event.fixed_size)
  for _, record in ipairs(records) do
    local bytes = {}
    for i = 0, event.fixed_size - 1 do bytes[#bytes + 1] = tostring(record.raw[i]) end
    out[#out + 1] = '{' .. table.concat(bytes, ',') .. '},'
  end
  out[#out + 1] = '};\nstatic struct { long (*e)(struct rec); const char *(*k)(struct rec); } all[] = {'
  for i = 1, #expressions do out[#out + 1] = ('{e%d, k%d},'):format(i, i) end
  out[#out + 1] = ([[};
int main(void) {
  const struct rec *r = (const void *)records;
  for (int i = 0; i < %d; i++) {
    printf("%%s", all[i].k(r[0]));
    for (int j = 0; j < %d; j++) printf(" %%ld", all[i].e(r[j]));
    puts("");
  }
}]]):format(#expressions, #records)
  return table.concat(out, '\n')
end

local function gcc_results(source)
  local base = os.tmpname()
  local file = assert(io.open(base .. '.c', 'w'))
  file:write(source)
  file:close()
  local status = os.execute(('gcc -w -O0 -fwrapv -fsigned-char -std=gnu11 -o %s %s.c'):format(base, base))
  local lines = {}
  if status == 0 or status == true then
    local pipe = assert(io.popen(base))
    for line in pipe:lines() do lines[#lines + 1] = line end
    pipe:close()
  end
  os.remove(base .. '.c')
  os.remove(base)
  return lines
end

local function our_results(text, records)
  local compiled, err = expr.compile(text, event.fields, { form = 'key' })
  if not compiled then return expr.caret(err) end
  local fn = expr.load(compiled)
  local parts = { compiled.type }
  for _, record in ipairs(records) do -- interpreted, then compiled, then through its side traces
    local ok
    for _ = 1, 12 do ok = event.run(fn, record) end
    parts[#parts + 1] = ok and tostring(record.e.key):gsub('LL$', '') or 'nil'
  end
  return table.concat(parts, ' '), compiled.source
end

describe('expressions against gcc', function()
  local has_gcc = os.execute('gcc --version >/dev/null 2>&1')
  if has_gcc ~= 0 and has_gcc ~= true then
    pending('gcc is not installed')
    return
  end

  it(('agrees on %d random expressions'):format(EXPRESSIONS), function()
    jit.opt.start('hotloop=3', 'hotexit=3')
    finally(function() jit.opt.start('hotloop=56', 'hotexit=10') end)
    math.randomseed(SEED)
    local expressions, records = {}, {}
    for i = 1, EXPRESSIONS do expressions[i] = any_expression(i) end
    for i = 1, RECORDS do records[i] = random_record() end
    local expected = gcc_results(c_program(expressions, records))
    assert.are.equal(EXPRESSIONS, #expected)
    for i, text in ipairs(expressions) do
      local got, source = our_results(text, records)
      if got ~= expected[i] then
        error(('%s\n  gcc:  %s\n  ours: %s\n%s'):format(text, expected[i], got, source or ''))
      end
    end
  end)
end)
