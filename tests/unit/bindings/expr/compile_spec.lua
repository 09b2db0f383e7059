-- SPDX-License-Identifier: GPL-2.0-only
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

local VALUES = {
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
  for _, case in ipairs(VALUES) do
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
    local cases = {
      ['f_u64'] = -81985529216486896LL, ['f_i64'] = -5000000000LL, ['f_u32'] = 4000000000LL, ['f_i32 < 0'] = 1LL,
      ['_cpu << 16 | f_u8'] = 196808LL, ['-1'] = -1LL, ['f_u32 + f_i8'] = 3999999997LL,
    }
    for text, key in pairs(cases) do
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
