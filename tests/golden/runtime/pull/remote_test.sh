# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Streams from other machines: whole ones, damaged ones, and what hostile senders send.
. "$(dirname "$0")/../../../lib.sh"
EVENT=raw_syscalls:sys_enter

# serve FILE...: sends the files, one to each client, from unix:$TMP/u
serve() {
	rm -f "$TMP/u" "$TMP/link"
	python3 "$TOP/tests/tools/link.py" "$TMP/u" "$@" >"$TMP/link" 2>&1 &
	link=$!
	wait_for 20 grep -q listening "$TMP/link"
}

# served NAME STATUS REGEX BYTES_COMMAND...: what the command prints is refused with one line
served() {
	"${@:4}" >"$TMP/stream"
	serve "$TMP/stream"
	refused "$1" "$2" "$3" trace -e $EVENT --input "unix:$TMP/u"
	kill $link 2>/dev/null
	wait $link 2>/dev/null
}

# python CODE ARG...: prints bytes; MAGIC, record(type, body) and own(tag, body) help
python() {
	python3 -c '
import os, struct, sys
MAGIC = b"PERFILE2" + struct.pack("<Q", 16)
PUSHED = open("'"$DATA"'/pushed.data", "rb").read()
def record(kind, body): return struct.pack("<IHH", kind, 0, 8 + len(body)) + body
def own(tag, body): return record(65, tag + body)
def out(data):
    try: sys.stdout.buffer.write(data)
    except BrokenPipeError: pass
'"$1" "${@:2}"
}

# events WHAT: the number of lines about events in $TMP/out
events() { grep -c "$EVENT: NR" "$TMP/out"; }

serve "$DATA/pushed.data" "$DATA/pushed.data" "$DATA/pipe.data" "$DATA/pushed.data" "$DATA/pushed.data"
"$PROFSCRIPT" trace -e $EVENT --input "unix:$TMP/u" >"$TMP/out" 2>"$TMP/err"
check 'a whole stream' test $? -eq 0 -a "$(events)" -eq 60
expect_line 'says where it is connected' '^trace: Connected to unix:' "$TMP/err"
"$PROFSCRIPT" trace -e "$EVENT//pull=\"unix:$TMP/u\"/" >"$TMP/out" 2>"$TMP/err"
check 'the same with pull=' test $? -eq 0 -a "$(events)" -eq 60
check 'all events have the mark' test "$(grep -c '^[-0-9]* [:.0-9]* G ' "$TMP/out")" -eq 60
"$PROFSCRIPT" trace -e "$EVENT//pull=\"unix:$TMP/u\"/" >"$TMP/out" 2>"$TMP/err"
check 'a stream of perf' test $? -eq 0 -a "$(events)" -gt 10
"$PROFSCRIPT" trace -e "$EVENT/id==1/pull=\"unix:$TMP/u\"/" >"$TMP/out" 2>"$TMP/err"
check 'a filter' test $? -eq 0 -a "$(events)" -eq 0
"$PROFSCRIPT" trace --json -e "$EVENT//pull=\"unix:$TMP/u\"/" >"$TMP/out" 2>"$TMP/err"
expect_line 'JSON names the host' '"event":"raw_syscalls:sys_enter","host":"[^"]+",' "$TMP/out"
wait $link

"$PROFSCRIPT" trace -e "$EVENT//pull=\"$DATA/pushed.data,$DATA/pipe.data\"/" >"$TMP/out" 2>"$TMP/err"
check 'two files' test $? -eq 0 -a "$(events)" -gt 70
"$PROFSCRIPT" trace -e "$EVENT//pull=\"$DATA/pushed.data, $DATA/pushed.data\"/" >"$TMP/out" 2>"$TMP/err"
check 'the same file twice' test $? -eq 0 -a "$(events)" -eq 60
"$PROFSCRIPT" trace -e "$EVENT//pull=\"$DATA/syscalls.data\"/" >"$TMP/out" 2>"$TMP/err"
check 'a perf.data file' test $? -eq 0 -a "$(events)" -gt 10
"$PROFSCRIPT" num-dist -e "$EVENT//pull=\"$DATA/pushed.data\"/num=_machine/" --csv >"$TMP/out" 2>"$TMP/err"
rows '_machine counts from 1' 'c["min"] == 1 && c["max"] == 1'

# What the sender has counted is compared with what arrives.
for fault in 1 0 2; do
	python 'at, n = 16, 0
out(MAGIC)
while at < len(PUSHED):
    kind, _, size = struct.unpack_from("<IHH", PUSHED, at)
    if kind == 66: size += struct.unpack_from("<I", PUSHED, at + size - 8)[0]
    n += kind == 9
    out(PUSHED[at:at + size] * (int(sys.argv[1]) if kind == 9 and n in (10, 11) else 1))
    at += size' $fault >"$TMP/$fault.data"
	"$PROFSCRIPT" trace -e "$EVENT//pull=\"$TMP/$fault.data\"/" >"$TMP/out" 2>"$TMP/$fault.err"
	"$PROFSCRIPT" trace -e $EVENT --input "$TMP/$fault.data" >"$TMP/out" 2>"$TMP/$fault.input"
done
for how in err input; do
	check "the account: all has arrived ($how)" bash -c "! grep -E 'missing|more than' '$TMP/1.$how'"
	expect_line "the account: records that were dropped ($how)" \
		'^trace: 2 of 60 events of .* are missing: the sender counted them, but they did not arrive$' "$TMP/0.$how"
	expect_line "the account: records that came twice ($how)" \
		'^trace: 62 events of .* were read, which is 2 more than the sender counted$' "$TMP/2.$how"
done
refused 'an event that is not sent' 1 "$DATA/pushed.data does not send sched:sched_switch; it sends raw_syscalls:sys_enter" \
	trace -e "sched:sched_switch//pull=\"$DATA/pushed.data\"/"
refused 'a host without its port' 2 'web1: the port is missing: web1:PORT' trace -e "$EVENT//pull=web1/"
serve "$DATA/pushed.data" "$DATA/pushed.data"
refused 'a whole run of an event that is not sent' 1 "unix:$TMP/u does not send sched:sched_switch; it sends $EVENT" \
	trace -e sched:sched_switch --input "unix:$TMP/u"
refused 'a whole run of a counter that is not sent' 1 "unix:$TMP/u does not send page-faults; it sends $EVENT" \
	trace -e page-faults --input "unix:$TMP/u"
wait $link
"$PROFSCRIPT" trace -v -e "$EVENT//pull=\"$DATA/pushed.data\"/" >"$TMP/out" 2>"$TMP/err"
expect_line '-v: the source of a run without local events' "^source: $DATA/pushed.data$" "$TMP/err"
check '-v: it has no rings' bash -c "! grep -E '^(target|rings):' '$TMP/err'"
timeout 60 "$PROFSCRIPT" trace -e "$EVENT//pull=1/" >"$TMP/out" 2>"$TMP/err" &
wait_for 50 grep -q '^profscript: waiting for localhost:1: ' "$TMP/err"
result $? 'a port is one of this machine' "$TMP/err"
kill $!
wait $! 2>/dev/null
refused 'no such file' 1 'pushd.data: no such file: an address is HOST:PORT' trace -e "$EVENT//pull=pushd.data/"
refused 'an empty address' 2 'an empty address: an address is HOST:PORT' trace -N 1 -e "$EVENT//pull=\",\"/"
refused 'pull= and --input' 2 'bad event .*: pull= cannot be combined with --input' \
	trace --input "$DATA/pipe.data" -e "$EVENT//pull=\"$DATA/pushed.data\"/"
refused 'vm= without pull=' 2 'bad event .*: vm= names the guest that sends the event of a pull=' trace -e "$EVENT//vm=x/"
refused 'a guest that does not run' 2 'vm=nobody:' trace -e "$EVENT//pull=\"$DATA/pushed.data\"/vm=nobody/"
refused 'cpus= of another machine' 2 'trace: raw_syscalls:sys_enter: cpus= is only for live events' \
	trace -e "$EVENT//pull=\"$DATA/pushed.data\"/cpus=0/"
refused 'a profiler of another machine' 2 "bad event .*: pull= takes events of others, but 'task-state' is created here" \
	trace -e "task-state//pull=\"$DATA/pushed.data\"/"
refused 'events that are only counted' 2 'raw_syscalls:sys_enter: stat only counts events, which pull= cannot do' \
	stat -e "$EVENT//pull=\"$DATA/pushed.data\"/"

served 'random bytes' 1 'unix:.*/u: not a perf recording' head -c 100000 /dev/urandom
served 'another protocol' 1 'unix:.*/u: not a perf recording \(text\)' printf 'SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n'
served 'records of size 0' 1 'unix:.*/u: damaged before its first record' python 'out(MAGIC + bytes(1000000))'
served 'huge formats' 1 'unix:.*/u: its header has no end' \
	python 'out(MAGIC + struct.pack("<IHHI", 66, 0, 12, 0xffffffff) + bytes(80 << 20))'
served 'an endless header' 1 'unix:.*/u: its header has no end' python 'out(MAGIC + record(78, bytes(56)) * 2000000)'
served 'another version' 1 'unix:.*/u: the sender speaks version 9 of the protocol, this is version 1' \
	python 'out(MAGIC + own(b"PSHELLO1", struct.pack("<I", 9) + bytes(140)))'
served 'a short hello' 1 'unix:.*/u: the sender speaks version 0' python 'out(MAGIC + own(b"PSHELLO1", b""))'
served 'no events' 1 'unix:.*/u: ' python 'out(MAGIC + record(68, b""))'

# It hangs up before or after the receiver has answered, which must not end by SIGPIPE.
for i in 1 2 3; do
	PROFSCRIPT_SECRET=x served "a sender that does not accept the secret ($i)" 1 \
		'unix:.*/u: (the sender does not accept the secret|cannot answer the sender: Broken pipe)' \
		printf 'PROFSCRIPT-AUTH 1 %032d\n' 0
done

# A sender that says no more before the end of its header
mkfifo "$TMP/fifo"
exec {fifo}<>"$TMP/fifo"
head -c 1000 "$DATA/pushed.data" >&$fifo
serve "$TMP/fifo"
"$PROFSCRIPT" trace -e $EVENT --input "unix:$TMP/u" >"$TMP/out" 2>"$TMP/err" &
receiver=$!
wait_for 20 grep -q 'waiting for unix:.*/u: it has sent only a part of its header so far' "$TMP/err"
result $? 'a sender that stops in its header' "$TMP/err"
kill $receiver $link
wait $receiver $link 2>/dev/null
exec {fifo}<&-

# damaged NAME CODE: a stream that begins like a whole one; the run ends with the last client, without a crash
damaged() {
	python "$2" >"$TMP/stream"
	serve "$TMP/stream" "$DATA/pushed.data"
	timeout 20 "$PROFSCRIPT" trace -e $EVENT --input "unix:$TMP/u" >"$TMP/out" 2>"$TMP/err"
	check "$1: it connects again" test $? -eq 0 -a "$(events)" -ge 60 -a "$(grep -c 'Connected to' "$TMP/err")" -eq 2
	wait $link
}
damaged 'cut off' 'out(PUSHED[:-3000])'
damaged 'a record of size 0' 'out(PUSHED[:-3000] + bytes(5000))'
damaged 'random bytes' 'out(PUSHED[:-3000] + os.urandom(100000))'
damaged 'a group in the far future' 'at = PUSHED.index(b"PSGROUP1"); out(PUSHED[:at + 16] + b"\xff" * 16 + PUSHED[at + 32:-200])'
damaged 'a group that counts more than there can be' \
	'at = PUSHED.index(b"PSGROUP1"); out(PUSHED[:at + 40] + b"\xff" * 16 + PUSHED[at + 56:-200])'

python 'out(PUSHED.replace(b"\x01\0\0\0\0\0\0\0\x6e", b"\xff\xff\xff\x7f\0\0\0\0\x6e"))' >"$TMP/stream"
serve "$TMP/stream"
"$PROFSCRIPT" multi-trace -e "$EVENT//pull=\"unix:$TMP/u\"/" --cycle --csv >"$TMP/out" 2>"$TMP/err"
check 'CPUs out of range' test $? -eq 0

# A second pair of clocks shows that the sender's clock is behind what the first one told. Times go on in order.
python '
parts, at = [PUSHED[:16]], 16
times = []
while at < len(PUSHED):
    kind, _, size = struct.unpack_from("<IHH", PUSHED, at)
    end = at + size + (struct.unpack_from("<I", PUSHED, at + 8)[0] if kind == 66 else 0)
    rec, at = PUSHED[at:end], end
    if rec[8:16] == b"PSHELLO1":
        rec = rec[:24] + 16 * b"x" + rec[40:] # another boot
    if rec[8:16] == b"PSPAIR01":
        pair = struct.unpack("<4Q2I", rec[16:])
    if rec[8:16] == b"PSGROUP1":
        group = struct.unpack("<3Q2I2Q", rec[16:])
    if kind == 9:
        times.append(struct.unpack_from("<Q", rec, 24)[0])
        if len(times) == 31: # a group ends, and the clock is known better
            half = len(parts)
            span = times[30] - times[0]
            now = times[30] - pair[1]
            parts += [record(68, b""),
                own(b"PSPAIR01", struct.pack("<4Q2I", pair[0] + now, times[30], pair[2] + now, pair[3] + now - span, *pair[4:]))]
            parts.append(own(b"PSGROUP1", struct.pack("<3Q2I2Q", group[0] + 1, times[30], group[2], 30, 0, 30, 0)))
    parts.append(rec)
for i, rec in enumerate(parts[:half]):
    if rec[8:16] == b"PSGROUP1" and struct.unpack_from("<I", rec, 40)[0] == 60:
        parts[i] = own(b"PSGROUP1", struct.pack("<3Q2I2Q", *group[:2], times[29], 30, 0, *group[5:]))
open(sys.argv[1] + "/begin", "wb").write(b"".join(parts[:half + 1]))
open(sys.argv[1] + "/rest", "wb").write(b"".join(parts[half + 1:]))
' "$TMP"
mkfifo "$TMP/halves"
serve "$TMP/halves"
timeout 60 "$PROFSCRIPT" trace -e $EVENT --input "unix:$TMP/u" >"$TMP/out" 2>"$TMP/err" &
receiver=$!
exec {halves}>"$TMP/halves"
cat "$TMP/begin" >&"$halves"
# shellcheck disable=SC2317 # wait_for calls it
half() { [ "$(events)" -ge 29 ]; }
wait_for 20 half
cat "$TMP/rest" >&"$halves"
exec {halves}>&-
wait $receiver $link
grep -o '[0-9]*\.[0-9]*: raw' "$TMP/out" | tr -d a-z: >"$TMP/times"
check 'a clock that is set right: all events arrive' test "$(events)" -eq 60
check 'in order' sort -nc "$TMP/times"
check 'not all at one time' test "$(tail -n 30 "$TMP/times" | sort -u | wc -l)" -gt 10
