#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# kvm-exit on a nested virtual machine, which exits a known number of times.
. "$(dirname "$0")/../../lib.sh"
cd "$TOP" || exit 1
{ modprobe kvm_amd || modprobe kvm_intel; } 2>"$TMP/err"
[ -e /dev/kvm ] || skip_all 'no KVM: the CPU of the guest has no SVM or VMX'

./profscript kvm-exit --format csv -- build/workloads/vmexits 300 >"$TMP/out" 2>"$TMP/err"
result $? 'a workload that is a virtual machine' "$TMP/err"
# The last exit, a halt, is not followed by an entry; each port access is.
expect_line 'exits by port' '^kvm-exit,[0-9.]+,IO(IO|_INSTRUCTION)?,300,' "$TMP/out"
check 'no HLT, which ends the machine' bash -c "! grep -q HLT '$TMP/out'"
./profscript kvm-exit --perins --than 1ns --format csv -- build/workloads/vmexits 20 >"$TMP/out" 2>"$TMP/err"
check '--than prints exits and entries' test "$(grep -c '^kvm:kvm_exit,.*' "$TMP/out")" -ge 20
./profscript kvm-exit --filter 'exit_reason == 1' -- build/workloads/vmexits 20 >"$TMP/out" 2>"$TMP/err"
check '--filter' test ! -s "$TMP/out"
