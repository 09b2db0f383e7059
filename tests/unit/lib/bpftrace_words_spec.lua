-- SPDX-License-Identifier: GPL-2.0-only
local words = require 'lib.bpftrace_words'

local function translated(source, known)
  local list, message = words.translate({ source }, known)
  return list and list[1], message
end

describe('words of bpftrace', function()
  it('become Lua', function()
    for source, lua in pairs {
      ['@[comm] = count();'] = 'count--[[@]](ev._comm);',
      ['{ @bytes = hist(args.ret); }'] = ' hist--[[@bytes]](ev.ret); ',
      ['@n[pid, probe]++'] = 'count--[[@n]](ev._pid, ev._event)',
      ['@[cpu] += args->len; exit()'] = 'sum--[[@]](ev.len, ev._cpu); exit()',
      ['@ = lhist(args->ret, 0, 20, 2)'] = 'lhist--[[@]](ev.ret, 0, 20, 2)',
      ['@[str(args->filename), tid] = stats(args->ret)'] = "stats--[[@]](ev.ret, str(ev, 'filename'), ev._tid)",
      ['if pid != 1 && !x || y then @++ end'] = 'if ev._pid ~= 1  and  not x  or  y then count--[[@]]() end',
      ['count(ev.function, args->end)'] = "count(ev['function'], ev['end'])",
      ['@[args->prev->mm->total_vm] = count()'] = 'count--[[@]](ev.prev.mm.total_vm)',
      ['print(str(args->path->dentry->d_name.name), args->path)'] =
        "print(str(ev, 'path.dentry.d_name.name'), ev.path)",
      ['count(user("u32", args->uaddr))'] = [[count(ev:user("u32", 'uaddr'))]],
      ['@[func, comm] = count()'] = 'count--[[@]](ev.func, ev._comm)',
      ['count(ksym(ev.addr))'] = 'count(ksym(ev, ev.addr))',
    } do
      assert.equal(lua, (translated(source)))
    end
    assert.equal("print(str(ev, 'buf'))", (translated 'print(str(args->buf, args->count))'))
  end)

  it('that are maps of values become variables', function()
    for source, lua in pairs {
      ['@start[tid] = nsecs'] = 'map_start[ev._tid] = ev._time',
      ['if @s[tid] then @[comm] = hist(nsecs - @s[tid]); delete(@s[tid]) else @s[tid] = nsecs end'] =
        'if map_s[ev._tid] then hist--[[@]](ev._time - map_s[ev._tid], ev._comm); map_s[ev._tid] = nil '
        .. 'else map_s[ev._tid] = ev._time end',
      ['@[comm, f(pid, 1)] = 1 print(@)'] = 'map_[map_key(ev._comm, f(ev._pid, 1))] = 1 print(map_)',
      ['@last = cpu if @last == 1 then exit() end'] = 'map_last = ev._cpu if map_last == 1 then exit() end',
      ['@n = 0; @n++; @n += cpu'] = 'map_n = 0; map_n = (map_n or 0) + 1; map_n = (map_n or 0) +  ev._cpu',
    } do
      assert.equal(lua, (translated(source)))
    end
    assert.same({ 'map_x[1] = 2', 'print(map_x)' }, (words.translate { '@x[1] = 2', 'print(@x)' }))
    assert.equal('print(map_x[1])', (translated('print(@x[1])', { map_x = {} })))
  end)

  it('stay what they are in Lua', function()
    for _, source in ipairs {
      'pid = ev._pid count(pid)', 'local comm = 1 print(comm)', 'for cpu in f() do print(cpu) end', 'print("pid @x")',
      'count(ev.pid, ev.comm)', 'x:clear() t.delete(1)', 'f(function(tid) return tid end)', '-- BEGIN', 'a.args.x = 1',
    } do
      assert.equal(source, (translated(source)))
    end
    assert.equal('count(pid)', (translated('count(pid)', { pid = true })))
    assert.same({ 'pid = 3', 'count(pid)' }, (words.translate { 'pid = 3', 'count(pid)' }))
  end)

  it('that have another place are explained', function()
    for source, want in pairs {
      ['print(str(0))'] = 'str() takes the name of a field at column 7; write str(ev.NAME)',
      ["print(user('u32', 0))"] = 'user() takes a type in quotes and the name of a field at column 7; '
        .. "write user('u32', ev.NAME)",
      ['BEGIN { x }'] = "BEGIN is an option here at column 1; --begin 'CODE'",
      ['count(arg1)'] = "its arguments at column 7; write -e 'kprobe:FUNCTION(NAME=$arg2)'",
      ['print(1, @start[tid])'] = '@start has no values at column 10; write @start[ev._tid] = VALUE, or a function',
      ['delete(@n[pid]); @n[pid]++'] = 'Lua has no delete()',
      ['/pid == 1/ { @++; }'] = 'a filter stands after its event',
      ['if (x) { y }'] = 'blocks have no braces in Lua at column 8',
      ['kprobe:vfs_read { @++ }'] = 'write exec -e kprobe:vfs_read CODE',
      ['$x = 1'] = 'variables have no $',
      ['count(kstack(3))'] = 'kstack takes no number of frames at column 7; write kstack, and -e EVENT//max-stack=N/',
      ['@ = variance(args.ret)'] = 'variance() is a column of stats() here at column 5; write stats(VALUE, KEY)',
      ['n += 1'] = 'Lua has no += at column 3; write n = n + 1',
      ['@[f(] = 1'] = "the '[' is not closed at column 2",
    } do
      local none, message = translated(source)
      assert.is_nil(none)
      assert.truthy(message:find(want, 1, true), message)
    end
  end)
end)
