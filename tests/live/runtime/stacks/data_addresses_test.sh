#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Names of data addresses: variables of the program and of a library, heap, stack, memory without a name. Of a process
# that is started, of one that runs, and of a recording.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint syscalls:sys_enter_write
cd "$TMP" || exit 1
name=data$$

cat >data.c <<'END'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

char filled[64] = "x";
char zeroed[1 << 20]; /* in memory without a file */
static char small[100];
static const char constant[64] = "c";

int main(int argc, char **argv)
{
	char on_stack[64] = "", *heap, *mapped;
	int fd = open("/dev/null", O_WRONLY);

	for (int i = 0; i < 100; i++) /* so much that it grows */
		heap = malloc(10000);
	mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (argc > 1)
		getchar();
	write(fd, filled + 1, 1);
	write(fd, zeroed + 65536, 2);
	write(fd, small + 3, 3);
	write(fd, constant + 4, 4);
	write(fd, heap, 5);
	write(fd, on_stack, 6);
	write(fd, mapped, 7);
	write(fd, (char *)stdout + 8, 8);
	write(fd, (char *)main, 9);
	write(fd, (char *)16, 10);
	return 0;
}
END
gcc -O0 -w -o "$name" data.c || exit 1

cat >data.lua <<END
return {
  summary = 'Name the memory that is written',
  unsupported = { 'event' },
  start = function(_, out, session)
    local write = session.event { 'syscalls:sys_enter_write', resolve = 'data' }
    return {
      [write] = function(ev)
        if ev._comm ~= '$name' then return end
        local frame = session.address(ev, ev:u64 'buf')
        out:printf('%d %s %s %s\n', tonumber(ev.count), session.address_text(ev, ev:u64 'buf'),
          frame and frame.dso and frame.dso:match '[^/]*$' or '-', tostring(frame and frame.is_data))
      end,
    }
  end,
}
END
cat >expected <<END
1 filled+0x1 $name true
2 zeroed+0x10000 $name true
3 small+0x3 $name true
4 constant+0x4 $name true
5 [heap] [heap] true
6 [stack] [stack] true
7 [anon] [anon] true
8 _IO_2_1_stdout_+0x8 libc.so.6 true
9 main+0x0 $name false
10 0000000000000010 - false
END

"$PROFSCRIPT" data.lua --record data.data -o out -- "./$name" 2>err
result $? 'a process that is started' err
sed -i '/^record /d' out
check 'its data' diff expected out
"$PROFSCRIPT" data.lua --input data.data -o recorded 2>err
check 'the same from the recording' diff expected recorded

mkfifo go
"./$name" wait <go &
data=$!
exec {go}>go
wait_for 60 grep -q read "/proc/$data/wchan"
start data.lua -p $data
echo >&"$go"
wait $data
wait "$tracer"
check 'a process that runs' diff expected "$TMP/out"

cat >code.lua <<END
return {
  summary = 'Without data',
  start = function(_, out, session)
    local write = session.event { 'syscalls:sys_enter_write', resolve = true }
    return { [write] = function(ev) out:print(session.address_text(ev, ev:u64 'buf')) end }
  end,
}
END
"$PROFSCRIPT" code.lua -o code -- "./$name" 2>err
check 'only code has names unless data are asked for' diff <(echo main+0x0) <(grep -v '^0' code)
