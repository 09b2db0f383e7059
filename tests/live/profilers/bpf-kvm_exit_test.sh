#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# bpf:kvm_exit is compiled, loaded and unloaded; guests, which use the compiled program, test what it counts.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
export XDG_CACHE_HOME=$TOP/build/cache
needs_tracepoint kvm:kvm_exit kvm:kvm_entry
"$PROFSCRIPT" --check | grep -q '^ok  BPF filters' || skip_all "$("$PROFSCRIPT" --check | grep '^--  BPF filters')"
command -v clang >/dev/null || skip_all 'no clang to compile BPF programs with'
check_status 'runs' 0 timeout 30 "$PROFSCRIPT" bpf:kvm_exit --threshold 0 --duration 0.3
"$PROFSCRIPT" trace -e 'bpf:kvm_exit/--threshold 0/,sched:sched_switch' -N 1 >"$TMP/out" 2>&1
expect_line 'a source among others' 'sched:sched_switch: ' "$TMP/out"
check_status 'not for recordings' 2 "$PROFSCRIPT" bpf:kvm_exit --input "$TOP/tests/recordings/sched.data"
