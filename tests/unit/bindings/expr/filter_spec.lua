-- SPDX-License-Identifier: GPL-2.0-only
-- Filters: their value for an event, errors in them, and the part that the kernel evaluates.
local event = require 'tests.unit.bindings.expr.expr_event'
local expr = require 'bindings.expr.compile'

local ENV = { comm_get = function(pid, time) return ('task%d@%.0f'):format(pid, time / 1e9) end }

-- The result as text, from the interpreter and from compiled code.
local function run(compiled)
  local fn = expr.load(compiled, ENV)
  local result
  for i = 1, 100 do
    local now = event.run(fn, event.RECORD)
    assert(i == 1 or now == result, compiled.source)
    result = now
  end
  return tostring(result)
end

local FILTERS = {
  { 'f_i32 == -7', 'true' },
  { 'f_i32 == -7 && f_u8 > 199', 'true' },
  { 'f_i32 > 0 || f_u8 == 200', 'true' },
  { 'f_i32 > 0 || f_u8 == 200 && zero == 1', 'false' },
  { '(f_i32 > 0 || f_u8 == 200) && zero == 0', 'true' },
  { '!(f_i32 > 0)', 'true' },
  { '! f_i32 > 0', 'true' },
  { '!!(zero == 0)', 'true' },
  { 'f_u8 & 8', 'true' },
  { 'f_u8 & 0x10', 'false' },
  { 'f_u16 >= 010', 'true' },
  { 'f_i16 == 65236', 'true' },
  { 'f_u32 < 4294967297', 'false' },
  { 'f_u64 == 0xfedcba9876543210', 'true' },
  { 'f_i64 == -5000000000', 'true' },
  { 'addr > 0xffffffff80000000', 'true' },
  { 'comm == "bash"', 'true' },
  { "comm == 'bash'", 'true' },
  { 'comm != "bash"', 'false' },
  { 'comm == bash', 'true' },
  { 'comm ~ *sh', 'true' },
  { '(comm ~ ba*)&&(zero==0)', 'true' },
  { 'comm ~ "b?s*"', 'true' },
  { 'comm ~ "!ba*"', 'false' },
  { 'comm ~ "[^b]ash"', 'true' },
  { 'comm ~ "[!b]ash"', 'false' },
  { 'comm ~ "bash"', 'true' },
  { 'comm ~ ""', 'false' },
  { 'name ~ "*ls"', 'true' },
  { 'rel == "touch"', 'true' },
  { 'COMM == "task101@12"', 'true' },
  { 'CPU == 3', 'true' },
  { 'cpu & CPUS{0-1,3}', 'true' },
  { 'cpu & CPUS{0-2}', 'false' },
  { 'cpu == CPUS{3}', 'true' },
  { 'cpu == CPUS{2-3}', 'false' },
  { 'cpu != CPUS{2-3}', 'true' },
  { 'cpu != CPUS{3}', 'false' },
  { 'f_u16 & CPUS{6000}', 'false' },
  { 'common_type == 17', 'true' },
}

local BAD_FILTERS = {
  { '', "the filter is empty at column 1" },
  { 'f_i32', "expected an operator: == != < <= > >= & ~ at column 6" },
  { 'f_i32 =< 3', "expected an operator: == != < <= > >= & ~ at column 7" },
  { 'f_i32 == ', "missing value at column 10" },
  { 'f_i32 == zero', "expected a number at column 10" },
  { 'f_i32 == 1 junk', "unexpected 'junk' at column 12" },
  { 'f_i32 == 1)', "unexpected ')' at column 11" },
  { '(f_i32 == 1', "unclosed parenthesis '(' at column 1" },
  { 'f_i32 == 1 &&', "missing comparison at column 14" },
  { 'f_i32 == 1 & 2', "unexpected '&' at column 12" },
  { 'f_i32 == 0x1g', "invalid number '0x1g' at column 10" },
  { 'f_i32 == 9223372036854775808', "number '9223372036854775808' does not fit in 64 bits at column 10" },
  { 'f_u32 == -1', "field 'f_u32' is unsigned at column 10" },
  { 'f_i32 ~ 1', "'~' compares strings at column 7" },
  { 'f_i32 == "a"', "field 'f_i32' is not a string at column 10" },
  { 'comm == 1', "expected a quoted string at column 9" },
  { 'comm < "a"', "strings can be compared with == != ~, not with '<' at column 6" },
  { 'comm == "a', 'unclosed quote " at column 9' },
  { 'args == 1', "field 'args' is not a single number at column 1" },
  { 'f_i33 == 1', "unknown field 'f_i33' at column 1; did you mean 'f_i32'?" },
  { 'comm.ustring == "x"', "only the kernel can evaluate '.ustring' at column 5" },
  { 'addr.function == foo', "only the kernel can evaluate '.function' at column 5" },
  { 'cpu & CPUS{3', "expected CPUS{LIST} at column 7" },
  { 'cpu & CPUS{8192}', "invalid CPU list '8192' at column 12; expected e.g. 0-3,7" },
  { 'cpu & CPUS{3-1}', "invalid CPU list '3-1' at column 12; expected e.g. 0-3,7" },
  { 'cpu < CPUS{3}', "CPUS{} takes == != &, not '<' at column 5" },
}

describe('expr.compile_filter', function()
  for _, case in ipairs(FILTERS) do
    it('evaluates ' .. case[1], function()
      local compiled, err = expr.compile_filter(case[1], event.fields)
      assert.are.equal(case[2], compiled and run(compiled) or expr.caret(err))
    end)
  end

  for _, case in ipairs(BAD_FILTERS) do
    it('refuses ' .. case[1], function()
      local compiled, err = expr.compile_filter(case[1], event.fields)
      assert.is_nil(compiled)
      local first = expr.caret(err):match('^[^\n]*')
      assert.are.equal(("bad filter '%s': %s"):format(case[1], case[2]), first)
    end)
  end
end)

describe('expr.split_filter', function()
  local function split(text)
    local parts, err = expr.split_filter(text, event.fields)
    if not parts then return expr.caret(err) end
    local result = parts.user and run(parts.user) or '-'
    return ('%s | %s | %s'):format(parts.kernel or '-', parts.user_text or '-', result)
  end

  local CASES = {
    { 'f_i32 == -7', 'f_i32 == -7 | - | -' },
    { 'f_i32 < zero', '- | f_i32 < zero | true' },
    { 'f_i32 == -7 && f_i32 < zero && comm == "bash"', 'f_i32 == -7 && comm == "bash" | f_i32 < zero | true' },
    { 'comm == "bash"&&f_u8>1', 'f_u8>1 && comm == "bash" | - | -' },
    { '(f_i32 == 1 || f_i32 < zero) && f_u8 == 200', 'f_u8 == 200 | (f_i32 == 1 || f_i32 < zero) | true' },
    { 'f_i32 == 1 || f_u8 == 200 && zero == 0', 'f_i32 == 1 || f_u8 == 200 && zero == 0 | - | -' },
    { 'f_i32 < zero || f_u8 == 1 && zero == 0', '- | f_i32 < zero || f_u8 == 1 && zero == 0 | true' },
    { 'zero ? 1 && 0 : 1 && 1', '- | zero ? 1 && 0 : 1 && 1 | true' },
    { 'comm ~ "*sh" && f_u8 > 1', 'f_u8 > 1 | comm ~ "*sh" | true' },
    { 'name ~ "*ls" && f_u8 > 1', 'f_u8 > 1 && name ~ "*ls" | - | -' },
    { 'comm ~ "7*" && f_u8 > 1', 'f_u8 > 1 | comm ~ "7*" | false' },
    { 'addr.function == vfs_read && f_i32 < zero', 'addr.function == vfs_read | f_i32 < zero | true' },
    { '_pid == 100 && f_u8 == 200', 'f_u8 == 200 | _pid == 100 | true' },
    { 'comm == "a && b" && zero == 0', 'zero == 0 && comm == "a && b" | - | -' },
  }
  for _, case in ipairs(CASES) do
    it('splits ' .. case[1], function() assert.are.equal(case[2], split(case[1])) end)
  end

  it('keeps under the limit of the kernel, long terms go to user space', function()
    local pids = {}
    for i = 1, 300 do pids[i] = 'f_i32==' .. 100000 + i end
    local long = '(' .. table.concat(pids, '||') .. '||f_i32==-7)'
    local parts = assert(expr.split_filter(long .. ' && f_u8 == 200', event.fields))
    assert.are.equal('f_u8 == 200', parts.kernel)
    assert.are.equal(long, parts.user_text)
    assert.are.equal('true', run(parts.user))
  end)

  it('refuses assignments', function()
    for text, message in pairs {
      ['f_i32 = 5 && f_u8'] = "a filter compares, it cannot assign at column 7; did you mean '=='?",
      ['f_u8 == 1 && (f_i32=zero)'] = "a filter compares, it cannot assign at column 20; did you mean '=='?",
      ['f_i32++'] = 'a filter compares, it cannot assign at column 6',
      ['f_i32 |= 5'] = 'a filter compares, it cannot assign at column 7',
    } do
      local parts, err = expr.split_filter(text, event.fields)
      assert.is_nil(parts)
      assert.are.equal(("bad filter '%s': %s"):format(text, message), expr.caret(err):match '^[^\n]*')
    end
  end)

  it('reports the column in the whole text', function()
    local _, err = expr.split_filter('f_u8 == 200 && f_i3 < zero', event.fields)
    assert.are.equal([[
bad filter 'f_u8 == 200 && f_i3 < zero': unknown variable 'f_i3' at column 16; did you mean 'f_i32'?
  f_u8 == 200 && f_i3 < zero
                 ^]], expr.caret(err))
  end)
end)
