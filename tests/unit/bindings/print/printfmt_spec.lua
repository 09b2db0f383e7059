-- SPDX-License-Identifier: GPL-2.0-only
-- Formats are given as text; the comparison with libtraceevent needs those of the running kernel.
local bit = require 'bit'
local ffi = require 'ffi'
local printfmt = require 'bindings.print.printfmt'
local views = require 'bindings.view.views'
local new_buffer = require 'string.buffer'.new

local C = ffi.C

ffi.cdef [[
  void *mmap(void *, size_t, int, int, int, long);
  int munmap(void *, size_t);
  void free(void *);
]]

local PAGE = 4096

--- Three pages, the last of them not readable: with payloads that end where it starts, reads beyond
--- them crash.
local pages = ffi.cast('uint8_t *', C.mmap(nil, 3 * PAGE, 3, 0x22, -1, 0))
C.munmap(pages + 2 * PAGE, PAGE)
local fence = pages + 2 * PAGE

-- Size and sign of the types in the tests.
local TYPES = {
  u8 = { 1, 0 }, s8 = { 1, 1 }, u16 = { 2, 0 }, s16 = { 2, 1 }, u32 = { 4, 0 }, int = { 4, 1 },
  u64 = { 8, 0 }, long = { 8, 1 }, ['const char *'] = { 8, 0 },
}

local env = {
  safe = function(s) return (s:gsub('%c', '?')) end,
  symbol = function(address, with_offset)
    if address ~= 0xffffffff81000010ULL then return nil end
    return with_offset and 'func+0x10' or 'func'
  end,
  string = function(address) return address == 0xffffffff82000000ULL and 'CPU start' or nil end,
}

--- A tracepoint with the fields "TYPE NAME" or "TYPE NAME[N]" one after the other from offset 8.
local function tracepoint(decls, print_fmt)
  local lines, at = { 'name: t\nID: 1\nformat:\n\tfield:u64 common_all;\toffset:0;\tsize:8;\tsigned:0;\n' }, 8
  for _, decl in ipairs(decls) do
    local dynamic = decl:match '^__'
    local type, count = decl:match '^(.-) ?[%w_]+%[(%d*)%]$'
    type = type or decl:match '^(.-) ?[%w_]+$'
    local of = dynamic and { 4, 0 } or TYPES[type] or { 1, 0 }
    local size = count and of[1] * (tonumber(count) or 0) or of[1]
    lines[#lines + 1] = ('\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:%d;\n'):format(decl, at, size, of[2])
    at = at + size
  end
  lines[#lines + 1] = '\nprint fmt: ' .. print_fmt .. '\n'
  local text = table.concat(lines)
  local formats = ffi.gc(C.formats_new(), C.formats_free)
  assert(C.formats_add_text(formats, 'test', text, #text) == 0)
  local err = ffi.new 'struct error'
  local tp = C.formats_find(formats, 'test', 't', err)
  assert(tp ~= nil, ffi.string(err.text))
  local _, fields = views.fields(tp)
  return { print_fmt = ffi.string(C.tracepoint_print_fmt(tp)), fields = fields, keep = formats }
end

--- Renders a payload (a Lua string, without the 8 common bytes) that ends at the fence.
local function render(decls, print_fmt, payload)
  local printer, reason = printfmt.compile(tracepoint(decls, print_fmt), env)
  assert(printer, reason)
  local raw = fence - 8 - #payload
  ffi.fill(raw, 8)
  ffi.copy(raw + 8, payload, #payload)
  local buf = new_buffer()
  buf:put '>'
  local whole = printer(buf, ffi.cast('const uint8_t *', raw), 8 + #payload)
  local text = buf:tostring():sub(2)
  if not whole then
    assert.equal('', text)
    return nil
  end
  return text
end

local function le(v, bytes)
  local out = {}
  for i = 1, bytes do
    out[i] = string.char(tonumber(bit.band(bit.rshift(ffi.cast('int64_t', v), 8 * (i - 1)), 0xff)))
  end
  return table.concat(out)
end

local function reason(decls, print_fmt)
  local printer, why = printfmt.compile(tracepoint(decls, print_fmt), env)
  assert.is_nil(printer)
  return why
end

describe('printfmt', function()
  it('prints integers of all sizes and signs', function()
    local decls = { 's8 a', 's16 b', 'int c', 'long d', 'u8 e', 'u16 f', 'u32 g', 'u64 h' }
    local payload = le(-1, 1) .. le(-2, 2) .. le(-3, 4) .. le(-4, 8) .. ('\xff'):rep(15)
    local all = ', REC->a, REC->b, REC->c, REC->d, REC->e, REC->f, REC->g, REC->h'
    assert.equal(
      '-1 -2 -3 -4 255 65535 4294967295 18446744073709551615',
      render(decls, '"%d %d %d %ld %d %d %u %llu"' .. all, payload)
    )
    assert.equal(
      'ffffffff fffffffe fffffffd fffffffffffffffc ff ffff ffffffff ffffffffffffffff',
      render(decls, '"%x %x %x %lx %x %x %x %llx"' .. all, payload)
    )
    -- Conversions narrower and wider than the argument.
    assert.equal('-4 4294967292 -1 18446744073709551613 255 -2 ff',
      render(decls, [["%d %u %d %lu %hhu %hd %hhx", REC->d, REC->d, REC->g, REC->c, REC->a, REC->b, REC->h]], payload))
  end)

  it('knows flags, widths and precisions', function()
    assert.equal('[   42|42   |00042|0x2a|+42|2A|52|0x002a| 42]', render({ 'int a' },
      '"[%5d|%-5d|%05d|%#x|%+d|%X|%o|%#06x|% d]"' .. (', REC->a'):rep(9), le(42, 4)))
    assert.equal('100% 0 [   42|42   |ab|   ab]', render({ 'int a', 'char s[4]' },
      [["100%% %#x [%*d|%-*d|%.2s|%*s]", 0, 5, REC->a, 5, REC->a, "abc", REC->a - 37, "ab"]], le(42, 4) .. 'abcd'))
  end)

  it('computes as C does', function()
    local cases = {
      ['10 - 3 - 2'] = '5', ['100 / 5 / 2'] = '10', ['2 + 3 * 4'] = '14', ['7 & 3 == 3'] = '1',
      ['1 << 3 | 1'] = '9', ['-7 / 2'] = '-3', ['-7 % 3'] = '-1', ['1 ? 2 : 0 ? 3 : 4'] = '2',
      ['!REC->a'] = '0', ['!!REC->a + 1'] = '2', ['~REC->a'] = '4', ['-REC->a'] = '5', ['REC->a < 0'] = '1',
      ['REC->a < 0U'] = '0', ['REC->a >> 1'] = '-3', ['(u32)REC->a >> 28'] = '15', ['(u8)REC->a'] = '251',
      ['(s8)(REC->b)'] = '-128', ['REC->b == 128 && REC->a'] = '1', ['0 || 0'] = '0',
      ['sizeof(u64) + sizeof(REC->a)'] = '12', ['sizeof(void *)'] = '8', ['(unsigned short)-1'] = '65535',
      ['__builtin_expect(!!(REC->b), 0) ? 3 : 4'] = '3', ["'A'"] = '65', ['010 + 0x10'] = '24',
      ['({ int x = (REC->a); int y = (3); x < y ? x : y; })'] = '-5', ['2147483647 * 2'] = '-2',
      ['REC->a ^ 1'] = '-6', ['REC->b / 0'] = '0', ['(u8)(REC->a & 15)'] = '11', ['(REC)->b'] = '128',
    }
    for source, expected in pairs(cases) do
      assert.equal(source .. ' = ' .. expected,
        source .. ' = ' .. render({ 'int a', 'u8 b' }, '"%d", ' .. source, le(-5, 4) .. '\x80'))
    end
  end)

  it('keeps all 64 bits', function()
    local cases = {
      ['REC->a + 1'] = '9007199254740994', ['REC->a * 3'] = '27021597764222979',
      ['REC->a | (1ULL << 63)'] = '9232379236109516801', ['1UL << 40'] = '1099511627776',
      ['~0ULL'] = '18446744073709551615', ['REC->a - 9007199254740994'] = '18446744073709551615',
      ['REC->a > -1'] = '0', ['(long)REC->a > -1'] = '1', ['REC->b'] = '18446744073709551611',
    }
    local payload = le(0x20000000000001ULL, 8) .. le(-5, 4)
    for source, expected in pairs(cases) do
      local text = render({ 'u64 a', 'int b' }, '"%llu", ' .. source, payload)
      assert.equal(source .. ' = ' .. expected, source .. ' = ' .. text)
    end
  end)

  it('prints strings within their bounds', function()
    local decls = { 'char a[4]', '__data_loc char[] b', '__rel_loc char[] c' }
    local print = [["a=%s b=%s c=%s" " d=%s", REC->a, __get_str(b), __get_rel_str(c), REC->a[0] ? "yes" : "no"]]
    local b, c = le(4 * 65536 + 20, 4), le(4 * 65536 + 4, 4)
    assert.equal('a=full b=text c=more d=yes', render(decls, print, 'full' .. b .. c .. 'textmore'))
    assert.equal('a=x b=te c=more d=yes', render(decls, print, 'x\0yz' .. b .. c .. 'te\0xmore'))
    assert.equal('a=a?b b=text c=more d=yes', render(decls, print, 'a\27b\0' .. b .. c .. 'textmore'))
    -- Offsets and lengths that lead out of the payload.
    assert.equal('a= b=text c=(bad) d=no', render(decls, print, '\0xyz' .. b .. c .. 'text'))
    assert.equal('a= b=(bad) c=(bad) d=no', render(decls, print, ('\0'):rep(4) .. ('\xff'):rep(8)))
    assert.equal('a= b= c= d=no', render(decls, print, ('\0'):rep(12)))
  end)

  it('prints formats without arguments', function()
    assert.equal('a\tb\\c"d\nE', render({}, [["a\tb\\c\"d\n\x45"]], ''))
    assert.equal('none', render({}, [["%s", "no" "ne"]], ''))
    assert.equal('?[2J', render({}, [["\033[2J"]], ''))
    assert.equal('A|?', render({ 'u8 a' }, [["%c|%c", 'A', REC->a]], '\7'))
  end)

  it('refuses a payload that is too short', function()
    assert.is_nil(render({ 'int a' }, '"a=%d", REC->a', '\0\0\0'))
    assert.equal('a=0', render({ 'int a', 'int b' }, '"a=%d", REC->a', '\0\0\0\0'))
  end)

  it('names values and flags', function()
    local symbolic = [["%s", __print_symbolic(REC->a, { 0, "zero" }, { 1, "o" "ne" }, { -1, "minus" },
      { UNKNOWN + (1), "x" })]]
    assert.equal('zero', render({ 'int a' }, symbolic, le(0, 4)))
    assert.equal('one', render({ 'int a' }, symbolic, le(1, 4)))
    assert.equal('minus', render({ 'int a' }, symbolic, le(-1, 4)))
    assert.equal('0x7', render({ 'int a' }, symbolic, le(7, 4)))
    assert.equal('0xfffffffffffffffe', render({ 'int a' }, symbolic, le(-2, 4)))
    assert.equal('0xffffffff', render({ 'u32 a' }, symbolic, le(-1, 4)))

    local flags = [["%s", __print_flags(REC->a, "|", { 1, "A" }, { 6, "BC" }, { 1ULL << 63, "TOP" },
      { 0, ((void *)0) })]]
    assert.equal('', render({ 'u64 a' }, flags, le(0, 8)))
    assert.equal('A|BC', render({ 'u64 a' }, flags, le(7, 8)))
    assert.equal('A|0x4', render({ 'u64 a' }, flags, le(5, 8)))
    assert.equal('TOP|0x20000000000000', render({ 'u64 a' }, flags, le(0x8020000000000000ULL, 8)))
    assert.equal('[     A|B ] none', render({ 'u32 a' },
      [["[%8s ] %s", __print_flags(REC->a, "|", { 1, "A" }, { 2, "B" }),
        REC->a ? "none" : __print_symbolic(REC->a, { 0, "0" })]], le(3, 4)))
  end)

  it('forgets values when a payload brings too many', function()
    local tp = tracepoint({ 'u32 a' }, '"%s", __print_symbolic(REC->a, { 9999, "name" })')
    local printer = assert(printfmt.compile(tp, env))
    local raw, buf = ffi.new 'uint8_t[12]', new_buffer()
    for i = 0, 10000 do
      ffi.cast('uint32_t *', raw + 8)[0] = i
      buf:reset()
      printer(buf, raw, 12)
      assert(buf:tostring() == (i == 9999 and 'name' or ('0x%x'):format(i)))
    end
  end)

  it('prints arrays', function()
    local decls = { 'u8 a[4]', 'u16 b[2]', '__data_loc u32[] c' }
    local payload = '\1\2\254\255' .. le(7, 2) .. le(65535, 2) .. le(8 * 65536 + 20, 4) .. le(1, 4) .. le(-1, 4)
    assert.equal('01 02 fe ff|0102|7 65535|1 4294967295|8', render(decls, [["%s|%s|%s|%s|%d",
      __print_hex(REC->a, 4), __print_hex_str(REC->a, 2), __print_array(REC->b, 2, 2),
      __print_array(__get_dynamic_array(c), __get_dynamic_array_len(c) / sizeof(u32), 4),
      __get_dynamic_array_len(c)]], payload))
    assert.equal('2 65535 ffffffff 1', render(decls, [["%d %d %x %d", REC->a[1], REC->b[1],
      ((u32 *)__get_dynamic_array(c))[1], *(u32 *)__get_dynamic_array(c)]], payload))
    -- Counts and indices that lead out of the field or of the payload.
    assert.equal('01 02 fe ff|||', render(decls, [["%s|%s|%s|", __print_hex(REC->a, 1 << 30),
      __print_hex(REC->a, -1), __print_array(REC->b, 0, 2)]], payload))
    assert.equal('0 0 (bad)', render(decls, [=["%d %d %s", REC->b[REC->b[1]], REC->a[-(int)REC->b[1]],
      __print_array(REC->b, 2, 3)]=], payload))
    assert.equal('(bad) 0', render(decls, [["%s %d", __print_array(__get_dynamic_array(c), 1, 4),
      ((u32 *)__get_dynamic_array(c))[0] ]], payload:sub(1, 12)))
    assert.equal('tail', render({ 'int a', 'char b[]' }, '"%s", REC->b', le(0, 4) .. 'tail'))
  end)

  it('prints bit masks', function()
    local mask = le(8 * 65536 + 12, 4) .. '\13\0\0\128\1\0\0\0'
    assert.equal('00000001,8000000d', render({ '__data_loc unsigned long[] m' }, '"%s", __get_bitmask(m)', mask))
    assert.equal('0,2-3,31-32', render({ '__data_loc cpumask_t m' }, '"%s", __get_cpumask(m)', mask))
    assert.equal('0,2-3', render({ 'u8 m[2]' }, '"%*pbl", 16, REC->m', '\13\0'))
  end)

  it('prints addresses', function()
    local decls = { 'u64 a', 'const char * b', 'u8 v4[4]', 'u8 v6[16]', 'u8 mac[6]' }
    local payload = le(0xffffffff81000010ULL, 8) .. le(0xffffffff82000000ULL, 8) .. '\192\168\0\1'
      .. '\32\1\13\184' .. ('\0'):rep(11) .. '\1' .. '\1\2\3\171\205\239'
    local rest = '-0000-0000-0000-000000000001'
    local cases = {
      ['"%pS %ps %p %p", REC->a, (void *)REC->a, REC->a, 0'] = 'func+0x10 func 0xffffffff81000010 (nil)',
      ['"%pS %s %s", REC->b, REC->b, (char *)REC->a'] = '0xffffffff82000000 CPU start ffffffff81000010',
      ['"%pI4 %pi4 %pI4h", REC->v4, REC->v4, REC->v4'] = '192.168.0.1 192.168.000.001 1.0.168.192',
      ['"%pI6c", REC->v6'] = '2001:db8::1',
      ['"%pI6 %pi6", REC->v6, REC->v6'] = '2001:0db8:0000:0000:0000:0000:0000:0001 20010db8000000000000000000000001',
      ['"%pM %pMF %pMR %pm", REC->mac, REC->mac, REC->mac, REC->mac'] =
        '01:02:03:ab:cd:ef 01-02-03-ab-cd-ef ef:cd:ab:03:02:01 010203abcdef',
      ['"%pU %pUl %pUB", REC->v6, REC->v6, REC->v6'] =
        '20010db8' .. rest .. ' b80d0120' .. rest .. ' 20010DB8' .. rest,
      ['"%*phC %4ph", 3, REC->mac, REC->mac'] = '01:02:03 01 02 03 ab',
    }
    for print, expected in pairs(cases) do
      assert.equal(expected, render(decls, print, payload))
    end
  end)

  it('shortens IPv6 addresses as the kernel does', function()
    local cases = {
      [('\0'):rep(16)] = '::',
      [('\0'):rep(15) .. '\1'] = '::1',
      [('\0'):rep(10) .. '\255\255\127\0\0\1'] = '::ffff:127.0.0.1',
      ['\254\128' .. ('\0'):rep(6) .. '\0\0\94\254\10\0\0\1'] = 'fe80::5efe:10.0.0.1',
      ['\0\1\0\0\0\2\0\0\0\0\0\3\0\0\0\0'] = '1:0:2::3:0:0',
      ['\0\1\0\0\0\2\0\3\0\4\0\5\0\6\0\7'] = '1:0:2:3:4:5:6:7',
    }
    for bytes, expected in pairs(cases) do
      assert.equal(expected, render({ 'u8 a[16]' }, '"%pI6c", REC->a', bytes))
    end
    local v6 = '\10\0' .. '\31\144' .. ('\0'):rep(4) .. ('\0'):rep(15) .. '\1' .. ('\0'):rep(4)
    assert.equal('[::1]:8080', render({ 'u8 a[28]' }, '"%pISpc", REC->a', v6))
    assert.equal('127.0.0.1:80', render({ 'u8 a[28]' }, '"%pISpc", REC->a', '\2\0\0\80\127\0\0\1' .. ('\0'):rep(20)))
  end)

  it('says why a format does not translate', function()
    assert.equal('jiffies_to_msecs()', reason({ 'int a' }, '"%u", jiffies_to_msecs(REC->a)'))
    assert.equal("unknown name 'jiffies'", reason({ 'int a' }, '"%u", jiffies - REC->a'))
    assert.equal("no field 'b'", reason({ 'int a' }, '"%u", REC->b'))
    assert.equal('fewer arguments than conversions', reason({ 'int a' }, '"%u %d", REC->a'))
    assert.equal("conversion '%f\"'", reason({ 'int a' }, [["%f\"", REC->a]]))
    assert.equal('%pV', reason({ 'int a' }, '"%pV", REC->a'))
    assert.equal('a number as a string', reason({ 'int a' }, '"%s", REC->a'))
    assert.equal("no field 'a.b'", reason({ 'int a' }, '"%u", REC->a.b'))
    assert.equal('a member of a struct', reason({ 'int a' }, '"%u", (REC->a + 1).b'))
    assert.equal("expected ')', found 'end'", reason({ 'int a' }, '"%u", (REC->a end'))
    assert.equal("unexpected '}'", reason({ 'int a' }, '"%u", REC->a }'))
    assert.equal('unclosed quote "', reason({ 'int a' }, '"%u'))
    assert.equal('the expression is empty', reason({ 'int a' }, ''))
    assert.equal('not a string literal', reason({ 'int a' }, 'REC->a'))
  end)

  it('survives hostile formats', function()
    local doubled = { '({ long a = REC->a; ' }
    for _ = 1, 60 do
      doubled[#doubled + 1] = 'long b = a + a; long a = b; '
    end
    doubled[#doubled + 1] = 'a; })'
    assert.equal('too long an expression', reason({ 'int a' }, '"%ld", ' .. table.concat(doubled)))
    assert.equal('nested too deeply', reason({ 'int a' }, '"%d", ' .. ('('):rep(5000) .. 'REC->a' .. (')'):rep(5000)))
    assert.equal('nested too deeply', reason({ 'int a' }, '"%d", ' .. ('~'):rep(30000) .. 'REC->a'))
    assert.equal('nested too deeply', reason({ 'int a' }, '"%d", ' .. ('1?1:'):rep(5000) .. '1'))
    assert.equal('nested too deeply', reason({ 'int a' }, '"%d", REC->a' .. ('[0]'):rep(20000)))
    assert.equal('30001', render({}, '"%d", 1' .. ('+1'):rep(30000), ''))
    assert.equal('too long a format', reason({ 'int a' }, '"' .. ('x'):rep(70000) .. '"'))
    assert.truthy(reason({ 'int a' }, '"' .. ('%d'):rep(1000) .. '"' .. (', REC->a'):rep(1000)))
    assert.truthy(reason({ 'int a' }, '"%999999999d", REC->a'))
    assert.truthy(reason({ 'int a' }, '"%5*d", 1, REC->a'))
    assert.equal('"]] os.exit(1) --[[ ?', render({}, [=["\"]] os.exit(1) --[[ \1"]=], ''))
    assert.equal((' '):rep(1020) .. '1234', render({ 'int a' }, '"%*d", 1 << 30, REC->a', le(1234, 4)))
  end)

  it('runs compiled', function()
    local tp = tracepoint({ 'char a[16]', 'int b', 'long c', 'u64 d' }, [["%s %d %s%s %llx %pS", REC->a, REC->b,
      __print_flags(REC->c & 255, "|", { 1, "S" }), REC->c & 256 ? "+" : "", REC->d, REC->d]])
    local printer = assert(printfmt.compile(tp, env))
    local raw, buf, traces, aborts = ffi.new('uint8_t[44]', {}), new_buffer(), 0, {}
    local const_raw = ffi.cast('const uint8_t *', raw)
    local function trace(what, _, _, _, code, extra)
      if what == 'stop' then traces = traces + 1 end
      if what == 'abort' then aborts[#aborts + 1] = ('%s %s'):format(tostring(code), tostring(extra)) end
    end
    local function run()
      for _ = 1, 500 do
        printer(buf, const_raw, 44)
      end
    end
    jit.attach(trace, 'trace')
    run()
    assert.is_true(traces > 0)
    aborts = {} -- functions may have been tried before the loop was compiled
    run()
    jit.attach(trace)
    assert.same({}, aborts)
    assert.equal(1000 * #' 0  0 0x0', #buf)
  end)
end)

--- A payload with small values, strings and dynamic fields in their places.
local function sample(list)
  local raw, fixed = ffi.new 'uint8_t[4096]', 0
  for _, field in ipairs(list) do
    fixed = math.max(fixed, field.offset + field.size)
  end
  local tail = fixed
  for i, field in ipairs(list) do
    local at = raw + field.offset
    if views.has(field, 'DYNAMIC') then
      local base = views.has(field, 'RELATIVE') and field.offset + 4 or 0
      ffi.cast('uint32_t *', at)[0] = bit.bor(8 * 65536, tail - base)
      ffi.copy(raw + tail, 'text' .. i % 10)
      tail = tail + 8
    elseif views.has(field, 'STRING') then
      if field.size > 4 then ffi.copy(at, 'str' .. i % 10) end
    elseif not views.has(field, 'COMMON') then
      for element = 0, math.max(field.count, 1) - 1 do
        at[element * field.elem_size] = (i + element) % 5
      end
    end
  end
  return raw, tail + 8
end

describe('printfmt and libtraceevent', function()
  local err = ffi.new 'struct error'
  local formats = C.formats_open_tracefs(err)

  it('agree on the formats of this kernel', function()
    if formats == nil then return pending(ffi.string(err.text)) end
    local names = C.formats_names(formats)
    local room, total, translated, same = ffi.new 'char[65536]', 0, 0, 0
    local plain = { safe = function(s) return s end }
    for system, name in ffi.string(names):gmatch '([^:\n]+):([^\n]+)' do
      local tp = C.formats_find(formats, system, name, err)
      -- Probes of other runs come and go.
      assert(tp ~= nil or system:match '^profscript_', ffi.string(err.text))
      if tp == nil then goto next_one end
      local list, fields = views.fields(tp)
      local printer = printfmt.compile({ print_fmt = ffi.string(C.tracepoint_print_fmt(tp)), fields = fields }, plain)
      total = total + 1
      if printer then
        local raw, size = sample(list)
        local buf = new_buffer()
        assert(printer(buf, ffi.cast('const uint8_t *', raw), size))
        translated = translated + 1
        local n = C.tracepoint_print(tp, raw, size, room, 65536)
        if ffi.string(room, n) == buf:tostring() then same = same + 1 end
      end
      ::next_one::
    end
    C.free(names)
    C.formats_free(formats)
    assert(translated >= 0.95 * total, ('%d of %d translate'):format(translated, total))
    -- The rest are names that libtraceevent does not resolve, its precedences, and formats that it cannot parse.
    assert(same >= 0.95 * translated, ('%d of %d agree'):format(same, translated))
  end)
end)
