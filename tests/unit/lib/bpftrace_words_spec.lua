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
      ['count(ksym(ev.addr))'] = 'count(ksym(ev, ev.addr))',
    } do
      assert.equal(lua, (translated(source)))
    end
    assert.equal("print(str(ev, 'buf'))", (translated 'print(str(args->buf, args->count))'))
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
      ['BEGIN { x }'] = "BEGIN is an option here at column 1; --begin 'CODE'",
      ['count(arg1)'] = "its arguments at column 7; write -e 'kprobe:FUNCTION(NAME=$arg2)'",
      ['@start[tid] = nsecs'] = "--begin 'start = {}' and start[ev._tid] = VALUE\n  @start[tid] = nsecs\n  ^",
      ['/pid == 1/ { @++; }'] = 'a filter stands after its event',
      ['if (x) { y }'] = 'blocks have no braces in Lua at column 8',
      ['kprobe:vfs_read { @++ }'] = 'write exec -e kprobe:vfs_read CODE',
      ['$x = 1'] = 'variables have no $',
      ['n += 1'] = 'Lua has no += at column 3; write n = n + 1',
      ['@[f(] = 1'] = "the '[' is not closed at column 2",
    } do
      local none, message = translated(source)
      assert.is_nil(none)
      assert.truthy(message:find(want, 1, true), message)
    end
  end)
end)
