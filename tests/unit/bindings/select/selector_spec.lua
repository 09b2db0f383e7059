-- SPDX-License-Identifier: GPL-2.0-only
local selector = require 'bindings.select.selector'

-- One selector as a line: kind system|name, then the other members that are set.
local function show_one(sel)
  local parts = { ('%s %s|%s'):format(sel.kind, sel.system or '-', sel.name) }
  local function add(name, value) if value then parts[#parts + 1] = name .. '=' .. tostring(value) end end
  if sel.glob then parts[#parts + 1] = 'glob' end
  add('path', sel.path)
  add('args', sel.args)
  add('filter', sel.filter)
  for _, attr in ipairs(sel.attrs) do
    parts[#parts + 1] = ('[%s=%s]'):format(attr.name, tostring(attr.value))
  end
  return table.concat(parts, ' ')
end

local function show(text)
  local list, err = selector.parse(text, nil, { profile = true })
  if not list then return selector.caret(err) end
  local lines = {}
  for i, sel in ipairs(list) do lines[i] = show_one(sel) end
  return table.concat(lines, '\n')
end

local GOOD = {
  { 'sched:sched_switch', 'event sched|sched_switch' },
  { ' sched:sched_switch , sched:sched_wakeup ', 'event sched|sched_switch\nevent sched|sched_wakeup' },
  { 'sched:sched_switch/', 'event sched|sched_switch' },
  { 'sched:sched_switch//', 'event sched|sched_switch' },
  { 'sched:sched_switch/prev_pid>0', 'event sched|sched_switch filter=prev_pid>0' },
  { 'sched:sched_switch/prev_pid>0/', 'event sched|sched_switch filter=prev_pid>0' },
  { 'sched:sched_switch//stack', 'event sched|sched_switch [stack=true]' },
  { 'sched:sched_switch//stack/', 'event sched|sched_switch [stack=true]' },
  { 'sched:sched_wakeup/pid>1/stack/max-stack=32/',
    'event sched|sched_wakeup filter=pid>1 [stack=true] [max-stack=32]' },
  { 'a:b//max-stack/', 'event a|b [max-stack=0]' },
  -- globs
  { 'sched:sched_wak*u*', 'event sched|sched_wak*u* glob' },
  { 'sched:sched_wak?[!_]*/prio<10/stack/', 'event sched|sched_wak?[!_]* glob filter=prio<10 [stack=true]' },
  { '*wakeup*', 'event -|*wakeup* glob' },
  { '*:sys_enter', 'event *|sys_enter glob' },
  { 'sched:sched_wake*/comm~"%s%n"/', 'event sched|sched_wake* glob filter=comm~"%s%n"' },
  -- quotes and parentheses protect separators
  { 'sched:sched_switch//role="(next_pid?1:0)|(prev_pid?2:0)"/',
    'event sched|sched_switch [role=(next_pid?1:0)|(prev_pid?2:0)]' },
  { 'a:b//key=(x/y)/', 'event a|b [key=(x/y)]' },
  { 'a:b//key="x/y"/', 'event a|b [key=x/y]' },
  { "a:b//key='x/y'/", 'event a|b [key=x/y]' },
  { 'a:b//key=((x/y),z)/stack/', 'event a|b [key=((x/y),z)] [stack=true]' },
  { 'a:b/(x==1/2)/', 'event a|b filter=(x==1/2)' },
  { 'a:b/"x==1,2"/', 'event a|b filter=x==1,2' },
  { 'a:b/comm=="x/y"/', 'event a|b filter=comm=="x/y"' },
  { 'a:b/comm=="a" || comm=="b"/', 'event a|b filter=comm=="a" || comm=="b"' },
  { 'a:b/comm=="(" && pid>1/', 'event a|b filter=comm=="(" && pid>1' },
  { "a:b/comm=='\"'/", "event a|b filter=comm=='\"'" },
  { 'task:task_rename//exec=printf("a/b\\n")/', 'event task|task_rename [exec=printf("a/b\\n")]' },
  { 'a:b//exec="printf("P=%d %s\\n", pid*10, prio>1?"LO":"HI")"/stack/',
    'event a|b [exec=printf("P=%d %s\\n", pid*10, prio>1?"LO":"HI")] [stack=true]' },
  { 'a:b/"x" == comm || comm == "y"/', 'event a|b filter="x" == comm || comm == "y"' },
  { 'a:b//exec="printf(\\"a/b, %d\\n\\", pid)"/', 'event a|b [exec=printf("a/b, %d\\n", pid)]' },
  { 'a:b//alias="x\\\\y"/', 'event a|b [alias=x\\y]' },
  { "a:b//alias='it\\'s'/", "event a|b [alias=it's]" },
  { 'a:b//key=x==y/', 'event a|b [key=x==y]' },
  { 'a:b// key = pid / stack /', 'event a|b [key=pid] [stack=true]' },
  { 'kmem:mm_page_alloc//size=4096<<order/key=pfn/stack/',
    'event kmem|mm_page_alloc [size=4096<<order] [key=pfn] [stack=true]' },
  -- probes
  { 'kprobe:vfs_read', 'event kprobe|vfs_read' },
  { 'kretprobe:vfs_read//stack/', 'event kretprobe|vfs_read [stack=true]' },
  { 'kprobe:mod:func+0x10', 'event kprobe|mod:func+0x10' },
  { 'kprobe:vfs_read(count=%dx, buf=%si:u64)/common_pid>1/',
    'event kprobe|vfs_read args=count=%dx, buf=%si:u64 filter=common_pid>1' },
  { 'uprobe:func@"/usr/lib/x.so"', 'event uprobe|func path=/usr/lib/x.so' },
  { 'uprobe:func+0x8@"/usr/lib/x.so"/pid>1/stack/',
    'event uprobe|func+0x8 path=/usr/lib/x.so filter=pid>1 [stack=true]' },
  { 'uprobe:"func@/usr/lib/x.so"', 'event uprobe|func path=/usr/lib/x.so' },
  { 'uretprobe:malloc@lib:c', 'event uretprobe|malloc path=lib:c' },
  { 'uprobe:f@pid:12', 'event uprobe|f path=pid:12' },
  { 'uprobe:operator new[](unsigned long)@"/bin/x"', 'event uprobe|operator new[](unsigned long) path=/bin/x' },
  { 'usdt:libc:setjmp@"/lib/libc.so.6"', 'event usdt|libc:setjmp path=/lib/libc.so.6' },
  { 'uretprobe:malloc@libc.so.6(ptr=$retval)', 'event uretprobe|malloc path=libc.so.6 args=ptr=$retval' },
  { 'uprobe:f@"/bin/x (1)"(a=+0(%di):string, b4@0/32)/a=="x"/',
    'event uprobe|f path=/bin/x (1) args=a=+0(%di):string, b4@0/32 filter=a=="x"' },
  { 'uprobe:"f@/bin/x(a=%di)"', 'event uprobe|f path=/bin/x args=a=%di' },
  -- perf events, profilers as sources
  { 'cycles,cpu-clock', 'event hardware|cycles\nevent software|cpu-clock' },
  { 'LLC-load-misses', 'event hw-cache|LLC-load-misses' },
  { 'page-faults', 'event software|page-faults' },
  { 'mem:0x1234/4:rw,mem:4096//stack/', 'event breakpoint|mem:0x1234/4:rw\nevent breakpoint|mem:4096 [stack=true]' },
  { 'mem:0xffffffffc2cc004a:x/_cpu==1/alias=a/',
    'event breakpoint|mem:0xffffffffc2cc004a:x filter=_cpu==1 [alias=a]' },
  { 'page-faults//untraced/', 'profiler -|page-faults [untraced=true]' },
  { 'page-faults/-N 10/', 'profiler -|page-faults filter=-N 10' },
  { 'profile/-F 500 --watermark 50 -m 32 -g/untraced/',
    'profiler -|profile filter=-F 500 --watermark 50 -m 32 -g [untraced=true]' },
  { 'breakpoint/"0x1234/1:rw -g"/', 'profiler -|breakpoint filter=0x1234/1:rw -g' },
  { 'profile/-C 0,2 --by "a/b,c"/stack/,profile', 'profiler -|profile filter=-C 0,2 --by "a/b,c" [stack=true]\n'
    .. 'profiler -|profile' },
  { 'task-state//untraced/', 'profiler -|task-state [untraced=true]' },
  { 'bpf:kvm_exit', 'event bpf|kvm_exit' },
  { 'cpu/event=0x3c/', 'profiler -|cpu filter=event=0x3c' },
  -- attributes
  { 'a:b//top_by=x/top-by=y/top_add=z/', 'event a|b [top-by=x] [top-by=y] [top-add=z]' },
  { 'a:b//cpus=3/', 'event a|b [cpus=3]' },
  { 'a:b//cpus="0-3,5, 7-8"/', 'event a|b [cpus=0-3,5, 7-8]' },
  { 'a:b//comm=ksymbol(location)/printkey=printf("%d",key)/ptr=p/num=n/trigger/',
    'event a|b [comm=ksymbol(location)] [printkey=printf("%d",key)] [ptr=p] [num=n] [trigger=true]' },
  { 'a:b//alias="/dev/virtio-ports/org.qemu.perf0"/', 'event a|b [alias=/dev/virtio-ports/org.qemu.perf0]' },
  { 'sched:sched_process_exec/filename~*touch/trigger/untraced/',
    'event sched|sched_process_exec filter=filename~*touch [trigger=true] [untraced=true]' },
  { 'raw_syscalls:sys_enter/id>200/,task-state/-N 20/,profile/-F 5000 -N 10/',
    'event raw_syscalls|sys_enter filter=id>200\nprofiler -|task-state filter=-N 20\nprofiler -|profile '
      .. 'filter=-F 5000 -N 10' },
}

local BAD = {
  { '', [[
bad event '': missing event name at column 1

  ^]] },
  { 'a:b,,c:d', [[
bad event 'a:b,,c:d': missing event name at column 5
  a:b,,c:d
      ^]] },
  { 'a:b,', [[
bad event 'a:b,': missing event name at column 5
  a:b,
      ^]] },
  { '/x/', [[
bad event '/x/': missing event name at column 1
  /x/
  ^]] },
  { 'sched:', [[
bad event 'sched:': missing event name at column 7
  sched:
        ^]] },
  { ':b', [[
bad event ':b': missing event system before ':' at column 1
  :b
  ^]] },
  { 'sched:x/comm=="a', [[
bad event 'sched:x/comm=="a': unclosed quote " at column 15
  sched:x/comm=="a
                ^]] },
  { "a:b//key='x", [[
bad event 'a:b//key='x': unclosed quote ' at column 10
  a:b//key='x
           ^]] },
  { 'a:b//alias="x\\"/', [[
bad event 'a:b//alias="x\"/': unclosed quote " at column 12
  a:b//alias="x\"/
             ^]] },
  { 'sched:x/(pid>1/', [[
bad event 'sched:x/(pid>1/': unclosed parenthesis '(' at column 9
  sched:x/(pid>1/
          ^]] },
  { 'a:b//key=(x)+((y)/', [[
bad event 'a:b//key=(x)+((y)/': unclosed parenthesis '(' at column 14
  a:b//key=(x)+((y)/
               ^]] },
  { 'a:b//key/', [[
bad event 'a:b//key/': attribute 'key' needs a value at column 6
  a:b//key/
       ^]] },
  { 'a:b//key=/', [[
bad event 'a:b//key=/': attribute 'key' needs a value at column 9
  a:b//key=/
          ^]] },
  { 'a:b//top-by/', [[
bad event 'a:b//top-by/': attribute 'top-by' needs a value at column 6
  a:b//top-by/
       ^]] },
  { 'a:b//alias=""/', [[
bad event 'a:b//alias=""/': attribute 'alias' needs a value at column 11
  a:b//alias=""/
            ^]] },
  { 'a:b//stak/', [[
bad event 'a:b//stak/': unknown attribute 'stak' at column 6; did you mean 'stack'?
  a:b//stak/
       ^]] },
  { 'a:b//zzzzz/', [[
bad event 'a:b//zzzzz/': unknown attribute 'zzzzz' at column 6
  a:b//zzzzz/
       ^]] },
  { 'a:b//key=x/y/', [[
bad event 'a:b//key=x/y/': unknown attribute 'y' at column 12; quote the value of 'key' if the '/' is part of it
  a:b//key=x/y/
             ^]] },
  { 'a:b//stack/untraced/stack/', [[
bad event 'a:b//stack/untraced/stack/': attribute 'stack' is given twice at column 21
  a:b//stack/untraced/stack/
                      ^]] },
  { 'a:b//stack=0/', [[
bad event 'a:b//stack=0/': attribute 'stack' takes no value at column 11
  a:b//stack=0/
            ^]] },
  { 'a:b//stack//key=1/', [[
bad event 'a:b//stack//key=1/': empty attribute at column 12
  a:b//stack//key=1/
             ^]] },
  { 'a:b//=1/', [[
bad event 'a:b//=1/': unknown attribute '' at column 6
  a:b//=1/
       ^]] },
  { 'a:b//max-stack=x/', [[
bad event 'a:b//max-stack=x/': 'x' is not an integer >= 0 at column 16
  a:b//max-stack=x/
                 ^]] },
  { 'a:b//max-stack=-1/', [[
bad event 'a:b//max-stack=-1/': '-1' is not an integer >= 0 at column 16
  a:b//max-stack=-1/
                 ^]] },
  { 'a:b//cpus=3-1/', [[
bad event 'a:b//cpus=3-1/': invalid CPU list '3-1' at column 11; expected e.g. 0-3,7
  a:b//cpus=3-1/
            ^]] },
  { 'a:b//cpus="0-3,x"/', [[
bad event 'a:b//cpus="0-3,x"/': invalid CPU list '0-3,x' at column 16; expected e.g. 0-3,7
  a:b//cpus="0-3,x"/
                 ^]] },
  { 'a:b//cpus="0-"/', [[
bad event 'a:b//cpus="0-"/': invalid CPU list '0-' at column 12; expected e.g. 0-3,7
  a:b//cpus="0-"/
             ^]] },
  { 'a:b,mem:0x12/3:w', [[
bad event 'a:b,mem:0x12/3:w': invalid breakpoint length '3' (expected 1, 2, 4 or 8) at column 9
  a:b,mem:0x12/3:w
          ^]] },
  { 'mem:here', [[
bad event 'mem:here': invalid address 'here' at column 5
  mem:here
      ^]] },
  { 'a:b//zq=1234/', [[
bad event 'a:b//zq=1234/': unknown attribute 'zq' at column 6
  a:b//zq=1234/
       ^]] },
  { 'uprobe:func@/usr/lib/x.so', [[
bad event 'uprobe:func@/usr/lib/x.so': an unquoted path ends at its first slash at column 13; quote it: @"/path"
  uprobe:func@/usr/lib/x.so
              ^]] },
  { 'uprobe:func', [[
bad event 'uprobe:func': uprobe needs a file at column 12; use NAME@"/path"
  uprobe:func
             ^]] },
  { 'uprobe:func@', [[
bad event 'uprobe:func@': missing file after '@' at column 12
  uprobe:func@
             ^]] },
  { 'kprobe:', [[
bad event 'kprobe:': missing event name at column 8
  kprobe:
         ^]] },
  { 'a:b\1//stak/', [[
bad event 'a:b\x01//stak/': unknown attribute 'stak' at column 7; did you mean 'stack'?
  a:b\x01//stak/
           ^]] },
}

describe('selector.parse', function()
  for _, case in ipairs(GOOD) do
    it('reads ' .. case[1], function() assert.are.equal(case[2], show(case[1])) end)
  end

  for _, case in ipairs(BAD) do
    it('refuses ' .. case[1], function()
      local expected = case[2]:gsub('\n\n', '\n  \n')
      assert.are.equal(expected, show(case[1]))
    end)
  end

  it('requires the value of each attribute that has one, and refuses one for the others', function()
    local with_value = 0
    for name, attribute in pairs(selector.attributes) do
      local wants = attribute.kind ~= 'flag'
      for _, form in ipairs(wants and { '', '=', '=""', "=' '" } or { '=', '=0', '=x' }) do
        local list, err = selector.parse(('a:b//%s%s/'):format(name, form))
        if wants and attribute.optional and form == '' then
          assert.is_table(list)
        else
          assert.is_nil(list)
          local problem = wants and "needs a value" or "takes no value"
          assert.are.equal(("attribute '%s' %s"):format(name, problem), err.message)
        end
      end
      with_value = with_value + (wants and 1 or 0)
    end
    assert.is_true(with_value >= 13)
  end)

  it('returns the columns of filters and attributes', function()
    local sel = selector.parse('x:y, a:b/ "pid>1"/key= "p"/stack/')[2]
    assert.are.same({ 6, 12 }, { sel.column, sel.filter_column })
    assert.are.same({ 19, 28 }, { sel.attrs[1].column, sel.attrs[2].column })
    assert.are.equal('a:b/ "pid>1"/key= "p"/stack/', sel.text)
  end)

  it('shows the surroundings of an error in a long text', function()
    local text = ('a:b/x/,'):rep(100) .. 'a:b//stak/,' .. ('c:d,'):rep(100)
    local _, err = selector.parse(text)
    local caret = selector.caret(err)
    local shown, mark = caret:match('\n  ([^\n]*)\n  ( *)%^$')
    assert.are.equal(72, #shown)
    assert.are.equal('stak', shown:sub(#mark + 1, #mark + 4))
    assert.are.equal(706, err.column)
  end)

  it('takes time in proportion to the text', function()
    local text = 'a:b/' .. ('('):rep(20000) .. (')'):rep(20000) .. '/,' .. ('a:b,'):rep(20000) .. 'c:d'
    assert.are.equal(20002, #selector.parse(text))
  end)
end)
