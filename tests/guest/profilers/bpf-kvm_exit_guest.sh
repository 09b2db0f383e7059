#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# bpf:kvm_exit on a nested virtual machine, which exits a known number of times.
. "$(dirname "$0")/../../lib.sh"
cd "$TOP" || exit 1
export XDG_CACHE_HOME=$TOP/build/cache
{ modprobe kvm_amd || modprobe kvm_intel; } 2>"$TMP/err"
[ -e /dev/kvm ] || skip_all 'no KVM: the CPU of the guest has no SVM or VMX'
[ -d "$XDG_CACHE_HOME/profscript/bpf" ] || skip_all 'no BPF programs: live/profilers/bpf-kvm_exit_test compiles them, on the host'

./profscript bpf:kvm_exit --threshold 0 --format csv -- build/workloads/vmexits 300 >"$TMP/out" 2>"$TMP/err"
result $? 'a workload that is a virtual machine' "$TMP/err"
# The last exit, a halt, is not followed by an entry; each port access is.
expect_line 'exits by port' '^bpf:kvm_exit,[0-9.]+,[0-9]+,IO(IO|_INSTRUCTION)?,300,' "$TMP/out"
./profscript bpf:kvm_exit --threshold 10s -- build/workloads/vmexits 300 >"$TMP/out" 2>"$TMP/err"
check 'no exit is as long as --threshold' test ! -s "$TMP/out"
./profscript bpf:kvm_exit --threshold 0 --than 1ns --detail -- build/workloads/vmexits 20 >"$TMP/out" 2>"$TMP/err"
check '--than prints each' test "$(grep -Ec 'bpf:kvm_exit: IO[A-Z_]* lat [0-9]+ wait [0-9]+ rundelay [0-9]+ sw [0-9]+$' "$TMP/out")" = 20
expect_line '--detail: threads' '^ *[0-9]+ +[0-9]+ vmexits +IO' "$TMP/out"
./profscript bpf:kvm_exit --threshold 0 --output2 "$TMP/longest" --format csv -- build/workloads/vmexits 50 >"$TMP/out" 2>"$TMP/err"
awk -F , '$1 == "table" { split("", at); for (i = 1; i <= NF; i++) at[$i] = i }
	$1 == "bpf:kvm_exit" && $at["exit_reason"] != "HLT" && $at["max_ns"] > max { max = $at["max_ns"] } END { print max }' "$TMP/out" >"$TMP/max"
check "--output2: the longest exit of each process: $(cat "$TMP/max")" grep -Eq "^bpf:kvm_exit-longest,[0-9.]+,[0-9]+,vmexits,$(cat "$TMP/max"),[0-9]+\$" "$TMP/longest"
# One event per exit, where kvm-exit needs two. Interrupts add some to either run.
./profscript exec -e 'bpf:kvm_exit/--threshold 0/' --format csv 'count(ev._event)' -- build/workloads/vmexits 100 >"$TMP/one" 2>"$TMP/err"
result $? 'a source of events' "$TMP/err"
./profscript exec -e kvm:kvm_exit,kvm:kvm_entry --format csv 'count()' -- build/workloads/vmexits 100 >"$TMP/two" 2>"$TMP/err"
one=$(tail -n 1 "$TMP/one") two=$(tail -n 1 "$TMP/two")
check "events: ${one##*,} in place of ${two##*,}" test "${one##*,}" -ge 100 -a $((2 * ${one##*,})) -le $((${two##*,} + 20))
# Its own lines among those of others.
./profscript trace -e 'bpf:kvm_exit/--threshold 0/' -- build/workloads/vmexits 5 >"$TMP/out" 2>"$TMP/err"
expect_line 'lines of a source' ' bpf:kvm_exit: IO' "$TMP/out"
# Another task takes half of the CPU, most of it during exits by interrupts.
taskset 4 sh -c 'while :; do :; done' &
timeout 40 ./profscript bpf:kvm_exit --format csv -- taskset 4 build/workloads/vmexits 30000 >"$TMP/out" 2>"$TMP/err"
awk -F , '$1 == "table" { n = NF } $1 == "bpf:kvm_exit" { sum += $n; total += $6 } END { print (sum > 0 && sum <= total), sum, total }' \
	"$TMP/out" >"$TMP/sums"
expect_line 'time without a CPU is part of the latency' '^1 ' "$TMP/sums"
