-- SPDX-License-Identifier: GPL-2.0-only
-- Random C expressions over random field values: gcc and the expression compiler must agree on value and
-- type of each. Undefined behavior is excluded by construction.

local cases = require 'tests.unit.bindings.expr.expr_cases'
local event = require 'tests.unit.bindings.expr.expr_event'
local expr = require 'bindings.expr.compile'

local EXPRESSIONS = tonumber(os.getenv('EXPR_GCC_COUNT')) or 3000
local RECORDS = 4
local SEED = tonumber(os.getenv('EXPR_GCC_SEED')) or 20240607

-- The C program prints type and value for each record, one expression per line.
local function c_program(expressions, records)
  local out = {
    '#include <stdint.h>', '#include <stdio.h>', '#define uint64_t unsigned long', '#define int64_t long',
    ('struct rec { %s } __attribute__((packed));'):format(event.declaration),
    '#define K(x) _Generic(+(x), int: "i32", unsigned: "u32", long: "i64", unsigned long: "u64",'
      .. ' long long: "i64", unsigned long long: "u64", default: "?")',
  }
  for name in (table.concat(cases.INTS, ' ') .. ' args ints comm'):gmatch('%S+') do
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
    for i = 1, EXPRESSIONS do expressions[i] = cases.expression(i) end
    for i = 1, RECORDS do records[i] = cases.record() end
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
