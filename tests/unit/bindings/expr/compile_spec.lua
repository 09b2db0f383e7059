-- SPDX-License-Identifier: GPL-2.0-only
local cases = require 'tests.unit.bindings.expr.expr_cases'
local event = require 'tests.unit.bindings.expr.expr_event'
local expr = require 'bindings.expr.compile'

local printed
local ENV = {
  printf = function(format, ...)
    local text = format:format(...)
    printed[#printed + 1] = text
    return #text
  end,
  system = function(format, ...)
    printed[#printed + 1] = 'system: ' .. format:format(...)
    return 3
  end,
  ksymbol = function(address) return ('sym_%x'):format(address) end,
  comm_get = function(pid, time) return ('task%d@%.0f'):format(pid, time / 1e9) end,
  syscall_name = function(number) return 'sys_' .. number end,
  exit_reason_str = function(isa, reason) return isa .. ':' .. reason end,
  intern = function(_, length) return length end,
}

-- The result as text, from the interpreter and from compiled code.
local function run(compiled, record)
  local fn = expr.load(compiled, ENV)
  local result
  for i = 1, 100 do
    printed = {}
    local now = event.run(fn, record or event.RECORD)
    assert(i == 1 or now == result, compiled.source)
    result = now
  end
  return tostring(result)
end

local function value(text, options)
  local compiled, err = expr.compile(text, event.fields, options)
  if not compiled then return expr.caret(err) end
  return run(compiled) .. ' ' .. compiled.type
end

local BAD = {
  { '', [[
bad expression '': the expression is empty at column 1
  ?
  ^]] },
  { '1 +', [[
bad expression '1 +': expected a value, found the end at column 4
  1 +
     ^]] },
  { '(1', [[
bad expression '(1': expected ')', found the end at column 3
  (1
    ^]] },
  { 'f_i32+1 garbage', [[
bad expression 'f_i32+1 garbage': unexpected 'garbage' at column 9
  f_i32+1 garbage
          ^]] },
  { '1.5+2', [[
bad expression '1.5+2': invalid number '1.5' at column 1; floating point is not supported
  1.5+2
  ^]] },
  { '1.5ns', [[
bad expression '1.5ns': '1.5ns' is not a whole number of nanoseconds at column 1
  1.5ns
  ^]] },
  { '08', [[
bad expression '08': invalid number '08' at column 1
  08
  ^]] },
  { '18446744073709551616', [[
bad expression '18446744073709551616': number '18446744073709551616' does not fit in 64 bits at column 1
  18446744073709551616
  ^]] },
  { 'comm == "bash', [[
bad expression 'comm == "bash': unclosed quote " at column 9
  comm == "bash
          ^]] },
  { "comm == 'bash'", [[
bad expression 'comm == 'bash'': a character constant must have exactly one character at column 9; quote strings with "
  comm == 'bash'
          ^]] },
  { 'f_i3 > 1', [[
bad expression 'f_i3 > 1': unknown variable 'f_i3' at column 1; did you mean 'f_i32'?
  f_i3 > 1
  ^]] },
  { '1 + nosuch', [[
bad expression '1 + nosuch': unknown variable 'nosuch' at column 5
  1 + nosuch
      ^]] },
  { 'f_i32 / 0', [[
bad expression 'f_i32 / 0': division by zero at column 7
  f_i32 / 0
        ^]] },
  { 'args[6]', [[
bad expression 'args[6]': index 6 is out of bounds: 'args' has 6 elements at column 6
  args[6]
       ^]] },
  { 'ints[-1]', [[
bad expression 'ints[-1]': index -1 is out of bounds: 'ints' has 4 elements at column 6
  ints[-1]
       ^]] },
  { 'f_i32[1]', [[
bad expression 'f_i32[1]': only arrays have elements at column 7
  f_i32[1]
        ^]] },
  { '&ints[2][3] - ints', [[
bad expression '&ints[2][3] - ints': only arrays have elements at column 10
  &ints[2][3] - ints
           ^]] },
  { '&5', [[
bad expression '&5': '&' requires a field of the event at column 1
  &5
  ^]] },
  { 'args', [[
bad expression 'args': an array is not a number at column 1; select an element: [0]
  args
  ^]] },
  { 'big', [[
bad expression 'big': field 'big' is 12 bytes wide and not a number at column 1
  big
  ^]] },
  { '*addr', [[
bad expression '*addr': the record does not contain the traced system's memory at column 1
  *addr
  ^]] },
  { 'comm < "a"', [[
bad expression 'comm < "a"': strings can be compared with == != ~, not with '<' at column 6
  comm < "a"
       ^]] },
  { 'comm && 1', [[
bad expression 'comm && 1': a string is not a number at column 1; strings can be compared with == != ~
  comm && 1
  ^]] },
  { 'comm ~ f_i32', [[
bad expression 'comm ~ f_i32': '~' requires a string and a glob at column 6
  comm ~ f_i32
       ^]] },
  { '5 = f_i32', [[
bad expression '5 = f_i32': only a variable can be assigned to at column 3
  5 = f_i32
    ^]] },
  { 'comm[0] = 65', [[
bad expression 'comm[0] = 65': cannot assign to an array element at column 5; only fields that are numbers can
  comm[0] = 65
      ^]] },
  { 'comm = 3', [[
bad expression 'comm = 3': cannot assign to 'comm' at column 1
  comm = 3
  ^]] },
  { 'prntf("x")', [[
bad expression 'prntf("x")': unknown function 'prntf' at column 1; did you mean 'printf'?
  prntf("x")
  ^]] },
  { 'ksymbol()', [[
bad expression 'ksymbol()': ksymbol() takes 1 argument at column 1
  ksymbol()
  ^]] },
  { 'printf(comm)', [[
bad expression 'printf(comm)': the first argument of printf() must be a quoted format at column 8
  printf(comm)
         ^]] },
  { 'printf("%d")', [[
bad expression 'printf("%d")': printf() has 0 arguments but its format takes 1 at column 1
  printf("%d")
  ^]] },
  { 'printf("%s", f_i32)', [[
bad expression 'printf("%s", f_i32)': %s requires a string at column 14
  printf("%s", f_i32)
               ^]] },
  { 'printf("%d", comm)', [[
bad expression 'printf("%d", comm)': a string is not a number at column 14; strings can be compared with == != ~
  printf("%d", comm)
               ^]] },
  { 'printf("%f", 1)', [[
bad expression 'printf("%f", 1)': unknown conversion '%f' in the format at column 8
  printf("%f", 1)
         ^]] },
  { 'system("ls")', [[
bad expression 'system("ls")': system() is not allowed because it runs commands at column 1; allow it with --allow-exec
  system("ls")
  ^]] },
  { '(unsigned char int)1', [[
bad expression '(unsigned char int)1': no such type at column 2
  (unsigned char int)1
   ^]] },
  { 'f_i32 @ 1', [[
bad expression 'f_i32 @ 1': unexpected character '@' at column 7
  f_i32 @ 1
        ^]] },
}

describe('expr.compile', function()
  for _, case in ipairs(cases.VALUES) do
    it('evaluates ' .. case[1], function()
      assert.are.equal(case[2], value(case[1]))
    end)
  end

  for _, case in ipairs(BAD) do
    it('refuses ' .. case[1], function()
      assert.are.equal((case[2]:gsub('\n  %?\n', '\n  \n')), value(case[1]))
    end)
  end

  it('prints with the conversions of C', function()
    assert.are.equal('51 i32', value([[printf("%d %u %x %5d|%-4s|%c %ld %lu %p %hhd %% %08lx\n",
      f_i32, f_i32, f_i8, 7, "ab", 'A', f_i64, f_u8, 255, f_u8, 1)]]):gsub('^%d+', '51'))
    assert.are.same({ '-7 4294967289 fffffffd     7|ab  |A -5000000000 200 0xff -56 % 00000001\n' }, printed)
  end)

  it('calls once, in order, and only if C does', function()
    value('printf("a") + printf("b"), zero && printf("c"), 1 ? printf("d") : printf("e")')
    assert.are.same({ 'a', 'b', 'd' }, printed)
  end)

  it('runs system() only when allowed', function()
    assert.are.equal('3 i32', value('system("kill %d", _pid)', { allow_system = true }))
    assert.are.same({ 'system: kill 100' }, printed)
  end)

  it('writes the key column with all 64 bits', function()
    local keys = {
      ['f_u64'] = -81985529216486896LL, ['f_i64'] = -5000000000LL, ['f_u32'] = 4000000000LL, ['f_i32 < 0'] = 1LL,
      ['_cpu << 16 | f_u8'] = 196808LL, ['-1'] = -1LL, ['f_u32 + f_i8'] = 3999999997LL,
    }
    for text, key in pairs(keys) do
      assert.are.equal('true', run(assert(expr.compile(text, event.fields, { form = 'key' }))))
      assert.are.equal(tostring(key), tostring(event.RECORD.e.key))
    end
  end)

  it('interns a key that is a string', function()
    run(assert(expr.compile('comm', event.fields, { form = 'key' })))
    assert.are.equal('16LL', tostring(event.RECORD.e.key))
    run(assert(expr.compile('ksymbol(1)', event.fields, { form = 'key' })))
    assert.are.equal('5LL', tostring(event.RECORD.e.key))
  end)

  it('leaves the key alone if the event has none', function()
    event.RECORD.e.key = 77
    assert.are.equal('nil', run(assert(expr.compile('1 / zero', event.fields, { form = 'key' }))))
    assert.are.equal('77LL', tostring(event.RECORD.e.key))
  end)

  it('compiles numbers and conditions', function()
    assert.are.equal('-5000000000 i64', value('f_i64', { form = 'number' }))
    assert.are.equal('true i32', value('f_i64', { form = 'filter' }))
    assert.are.equal('false i32', value('f_i32 & 8 && zero', { form = 'filter' }))
    assert.are.equal('nil i32', value('1 / zero', { form = 'filter' }))
    assert.is_truthy(value('comm', { form = 'number' }):find('a string is not a number', 1, true))
  end)

  it('gives the addresses of fields', function()
    local at = assert(value('&f_i32'):match '^(%d+)ULL u64$')
    assert.equal(at .. 'ULL u64', value '(int *)&f_i32')
    assert.equal(at .. 'ULL u64', value '(unsigned long *)&f_i32')
    assert.matches('^[1-9]%d+ULL u64$', value '(unsigned long *)comm')
  end)

  it('takes other variables', function()
    local options = { variables = { key = { type = 'u64', code = 'e.period' } } }
    assert.are.equal('14ULL u64', value('key * 2', options))
    assert.is_truthy(value('_cpu', options):find("unknown variable '_cpu'", 1, true))
  end)

  it('returns the fields that are read', function()
    local compiled = assert(expr.compile('f_i32 + args[1] + name_len', event.fields))
    assert.are.same({ f_i32 = true, args = true, name = true }, compiled.fields_used)
  end)

  it('accepts or refuses long chains and deep nesting', function()
    assert.are.equal('-4200 i32', value('f_i32' .. (' + f_i32'):rep(599)))
    assert.are.equal('1 i32', value('f_i32 == 1' .. (' || f_i32 == -7'):rep(2000)))
    assert.are.equal('0 i32', value('zero' .. (' && 5 / zero'):rep(300)))
    assert.are.equal('-7 i32', value(('('):rep(30) .. 'f_i32' .. (')'):rep(30)))
    assert.is_truthy(value(('('):rep(5000) .. '1' .. (')'):rep(5000)):find('nested too deeply', 1, true))
    assert.is_truthy(value(('!'):rep(5000) .. '1'):find('nested too deeply', 1, true))
    assert.is_truthy(value('args' .. ('[0]'):rep(20000)):find('nested too deeply', 1, true))
    assert.is_truthy(value('1' .. ('+1'):rep(40000)):find('longer than 65536 bytes', 1, true))
    assert.are.equal('9 i32', value(('zero ? 1 : '):rep(25) .. '9'))
  end)

  it('compiles without a trace abort inside an expression', function()
    local texts = {
      'f_i32', '(_cpu << 16) | f_u8', 'f_u64 >> 12', 'f_i64 / 7 + f_i32 % 3', 'comm == "bash" && name ~ "*ls"',
      'args[_cpu] * 2', 'f_i32 ? f_u32 : f_i64', 'nums[1]', 'comm ~ "b?sh"', 'next_comm == comm',
      'strncmp(comm, "b", 1)',
      'f_u64 = f_u64 * 3, f_u64 + 1', 'max(f_i64, f_i32)', 'ntohl(f_u32)', '1 / zero',
    }
    local aborted = {}
    local function on_trace(what, _, func, _, reason)
      -- a root trace that starts in the callee is aborted when it returns to the loop: harmless
      if what ~= 'abort' or require('jit.vmdef').traceerr[reason]:find('^leaving loop') then return end
      local info = require('jit.util').funcinfo(func)
      if info.source == '=expression' or (info.source or ''):find('expr_run') then
        aborted[#aborted + 1] = ('%s %s: %s'):format(texts.current, info.loc, require('jit.vmdef').traceerr[reason])
      end
    end
    jit.attach(on_trace, 'trace')
    for _, text in ipairs(texts) do
      texts.current = text
      local form = text:find ' = ' and 'number' or 'filter' -- filters do not assign
      local fn = expr.load(assert(expr.compile(text, event.fields, { form = form })), ENV)
      local e, p, raw, size = event.RECORD.e, event.RECORD.p, event.RECORD.raw, event.RECORD.size
      for _ = 1, 200 do fn(e, p, raw, size) end
    end
    jit.attach(on_trace)
    assert.are.same({}, aborted)
  end)
end)

describe('the help of profscript expr', function()
  it('explains each function, and only functions that exist', function()
    local help = require('scripts.profilers.expr').description:match 'Functions:\n(.*)$'
    local explained, known = {}, {}
    for line in help:gmatch '[^\n]+' do
      for name in line:sub(1, 30):gmatch '([%l_]+)%(' do explained[#explained + 1] = name end
    end
    for name in pairs(require('bindings.expr.calls').FUNCTIONS) do known[#known + 1] = name end
    table.sort(explained)
    table.sort(known)
    assert.are.same(known, explained)
  end)
end)

describe('a hostile record', function()
  it('is not read beyond its end', function()
    local record = event.new { name = 'abc', comm = ('x'):rep(16), words = { nums = 0xffff0000, rel = 0x0010ffff } }
    local function check(expected, text)
      assert.are.equal(expected, run(assert(expr.compile(text, event.fields)), record))
    end
    check('abc', 'name')
    check('1', 'name == "abc"')
    check('0', 'name == "abcd"')
    check('1', 'name ~ "*c"')
    check('nil', 'nums[0]')
    check('nil', 'rel')
    check('nil', 'rel == "x"')
    check(('x'):rep(16), 'comm')
    check('1', 'comm == "' .. ('x'):rep(16) .. '"')
    check('0', 'comm == "' .. ('x'):rep(17) .. '"')
    check('0', 'comm ~ "*y"')
    check('1', 'comm ~ "x?*x"')
    check('nil', '(char *)&common_type + nums_len')
  end)
end)
