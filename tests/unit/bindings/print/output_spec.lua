-- SPDX-License-Identifier: GPL-2.0-only
local cjson = require 'cjson'
local ffi = require 'ffi'
local output = require 'bindings.print.output'
local tables = require 'lib.table'

ffi.cdef [[
int spec_pipe(int fds[2]) __asm__("pipe");
int spec_close(int fd) __asm__("close");
void *spec_signal(int number, void *handler) __asm__("signal");
]]

local SEC, NS = 1795190086, 227953999
local STAMP = os.date('%Y-%m-%d %H:%M:%S', SEC) .. '.227953 \n'

local path

local function new(format)
  return assert(output.new { format = format, file = path, clock = function() return SEC, NS end })
end

local function read()
  local file = assert(io.open(path, 'rb'))
  local text = file:read '*a'
  file:close()
  return text
end

local SPEC = tables.new('wakeups', {
  { name = 'pid', width = 6 },
  { name = 'wait_ns', title = 'wait(us)', width = 9, format = '%.3f', scale = 1000 },
  { name = 'comm' },
})
local ROWS = {
  { pid = 1, wait_ns = 1500, comm = 'a,"b"' },
  { pid = 0xffffffffffffffffULL, wait_ns = 0 / 0, comm = '=x\27\255' },
}

describe('output', function()
  before_each(function() path = os.tmpname() end)
  after_each(function() os.remove(path) end)

  it('prints a table as text under the wall time', function()
    local out = new 'text'
    out:table(SPEC, ROWS)
    out:table(SPEC, {})
    assert.equal('', read())
    assert.is_true(out:flush())
    assert.equal(STAMP .. [[
                 pid  wait(us) comm
-------------------- --------- ----------
                   1     1.500 a,"b"
18446744073709551615         - =x\x1b\xff
]], read())
  end)

  it('is empty after reports without rows, whatever is told about them', function()
    local out = new()
    assert.is_false(out:is_empty()) -- there was no report
    out:warn 'before'
    out:table(SPEC, {})
    assert.is_true(out:is_empty())
    out:warn 'between'
    assert.is_true(out:is_empty())
    out:table(SPEC, ROWS)
    out:table(SPEC, {})
    assert.is_false(out:is_empty())
    out:flush()
    assert.is_false(out:is_empty())
  end)

  it('escapes what reaches it unescaped, whichever way', function()
    local out = new 'text'
    local names = tables.new('x', { { name = 'n', title = 'a\27[1mb' } })
    out:text_buffer():put 'one\27]0;title\7\n'
    out:raw '\27[H'
    out:text_buffer():put 'two\x9b31m\tß\n'
    out:append 'three\r\n'
    out:table(names, { { n = 1 } })
    assert.is_true(out:flush())
    out:printf('four\127%s\n', '\8')
    assert.is_true(out:flush())
    assert.equal('one\\x1b]0;title\\x07\n\27[Htwo\\x9b31m\tß\nthree\\x0d\n' .. STAMP
      .. 'a\\x1b[1mb\n---------\n        1\nfour\\x7f\\x08\n', read())
  end)

  it('prints a table as JSON that reads back exactly', function()
    local out = new 'json'
    out:table(SPEC, ROWS)
    out:flush()
    assert.equal(
      '{"table":"wakeups","time":1795190086.227953,"pid":1,"wait_ns":1500,"comm":"a,\\"b\\""}\n'
        .. '{"table":"wakeups","time":1795190086.227953,"pid":"18446744073709551615","wait_ns":null,'
        .. '"comm":"=x\\u001b\\\\xff"}\n',
      read()
    )
    for line in read():gmatch '[^\n]+' do assert.equal('wakeups', cjson.decode(line).table) end
  end)

  it('prints a table as CSV, its heading once', function()
    local out = new 'csv'
    out:table(SPEC, { ROWS[1] })
    out:table(tables.new('other', { { name = 'a,b' } }), { { ['a,b'] = true } })
    out:table(SPEC, { ROWS[2] })
    out:flush()
    assert.equal([[
table,time,pid,wait_ns,comm
wakeups,1795190086.227953,1,1500,"a,""b"""
table,time,"a,b"
other,1795190086.227953,true
wakeups,1795190086.227953,18446744073709551615,,=x\x1b\xff
]], read())
  end)

  it('prints prose only as text, and escapes it', function()
    for format, expected in pairs { text = 'a\tb\\x1b\n5 \\x9b\n', json = '', csv = '' } do
      os.remove(path)
      local out = new(format)
      out:write 'a\tb\27\n'
      out:printf('%d %s\n', 5, '\155')
      out:flush()
      assert.equal(expected, read())
    end
  end)

  it('formats 64-bit integers without a suffix', function()
    local out = new 'text'
    out:printf('%s %% %-3s|%s %x\n', 5ULL, -7LL, '5LL', 255ULL)
    out:flush()
    assert.equal('5 % -7 |5LL ff\n', read())
  end)

  it('formats unsigned integers and addresses', function()
    local out = new 'text'
    out:printf('%d %%d %i %-6d| %d %p %p %d\n', 0xffff888000000000ULL, -7LL, -5, 2 ^ 53, 0xffff888000000000ULL, 255, -3)
    out:flush()
    assert.equal('18446612682070032384 %d -7 -5    | 9007199254740992 0xffff888000000000 0xff -3\n', read())
  end)

  it('quotes integers in JSON that most readers would round', function()
    local out = new 'json'
    out:record('x', { a = 9007199254740991LL, b = 9007199254740993LL, c = -9007199254740993LL }, { 'a', 'b', 'c' })
    out:flush()
    assert.truthy(read():find('"a":9007199254740991,"b":"9007199254740993","c":"-9007199254740993"', 1, true))
  end)

  it('prints records in every format', function()
    local fields = { pid = 1, addr = 0xffff888000000000ULL, comm = 'a b\n', stack = { 'f', 'g;h' }, none = 1 / 0 }
    local expected = {
      text = 'sys:ev addr=ADDRESS comm=a b\\x0a none= pid=1 stack=f;g;h\n',
      json = '{"event":"sys:ev","addr":"ADDRESS","comm":"a b\\u000a","none":null,"pid":1,'
        .. '"stack":["f","g;h"]}\n',
      csv = 'event,addr,comm,none,pid,stack\nsys:ev,ADDRESS,a b\\x0a,,1,f;g;h\n',
    }
    for format, text in pairs(expected) do
      os.remove(path)
      local out = new(format)
      out:record('sys:ev', fields)
      out:flush()
      assert.equal((text:gsub('ADDRESS', '18446612682070032384')), read())
    end
    local out = new 'json'
    out:record('ordered', { a = 1, b = 2 }, { 'b', 'a' })
    out:flush()
    assert.truthy(read():find('{"event":"ordered","b":2,"a":1}', 1, true))
  end)

  it('prints like print', function()
    local out = new 'text'
    out:print('a', nil, 5LL, 1.5, true)
    out:print()
    out.format = 'json'
    out:print('x', 1)
    out:flush()
    assert.equal('a\tnil\t5\t1.5\ttrue\n\n{"event":"print","text":"x\\u00091"}\n', read())
  end)

  it('flushes by itself when the buffer is large', function()
    local out = new 'text'
    out:write(('x'):rep(65535))
    assert.equal('', read())
    out:write 'x'
    assert.equal(65536, #read())
  end)

  it('lends its buffer, in order with other output', function()
    local out = new 'text'
    local buf = out:text_buffer()
    for i = 1, 2 do
      out:write 'a'
      buf:putf('%d', i)
      out:flush()
    end
    assert.equal('a1a2', read())
  end)

  it('appends, and opens the file again for rotation', function()
    local out = new 'csv'
    out:table(SPEC, { ROWS[1] })
    out:flush()
    local first = read()
    os.rename(path, path .. '.1')
    assert.is_true(out:reopen())
    out:table(SPEC, { ROWS[1] })
    out:flush()
    assert.equal(first, read()) -- with its own heading
    out = new 'csv'
    out:table(SPEC, { ROWS[1] })
    out:flush()
    assert.equal(first .. first, read())
    os.remove(path .. '.1')
  end)

  it('says why it cannot open', function()
    local out, message = output.new { file = '/nonexistent/file' }
    assert.is_nil(out)
    assert.equal("cannot open '/nonexistent/file': No such file or directory", message)
  end)

  it('says why it cannot write, and drops the rest', function()
    local out = assert(output.new { file = '/dev/full' })
    out:write 'text'
    for _ = 1, 2 do
      local ok, message = out:flush()
      assert.is_nil(ok)
      assert.equal("cannot write '/dev/full': No space left on device", message)
      for _ = 1, 10 do out:write(('x'):rep(30000)) end
    end
  end)

  it('distinguishes a closed pipe from an error', function()
    local fds = ffi.new 'int[2]'
    local before = ffi.C.spec_signal(13, ffi.cast('void *', 1)) -- SIGPIPE, SIG_IGN
    ffi.C.spec_pipe(fds)
    local out = assert(output.new { file = '/dev/fd/' .. fds[1] })
    ffi.C.spec_close(fds[0])
    out:write 'text'
    local ok, message = out:flush()
    ffi.C.spec_close(fds[1])
    ffi.C.spec_signal(13, before)
    assert.is_nil(ok)
    assert.equal('EPIPE', message)
  end)
end)

describe('output.safe', function()
  it('returns clean strings unchanged', function()
    assert.equal('kworker/0:1-events_ünbound', output.safe 'kworker/0:1-events_ünbound')
  end)

  it('escapes controls and invalid UTF-8', function()
    assert.equal('\\x1b]0;\\x07 \\xc2\\x9b \\xff\\x0a', output.safe '\27]0;\7 \194\155 \255\n')
    local long = ('\27'):rep(5000)
    assert.equal(20000, #output.safe(long))
    assert.equal('\\x1b', output.safe '\27')
  end)
end)
