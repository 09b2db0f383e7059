#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# kvm-exit without a virtual machine: it says why there is no table.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint kvm:kvm_exit kvm:kvm_entry
! pgrep -f 'enable-kvm|accel=kvm|accel kvm' >/dev/null || skip_all 'a virtual machine runs here'

"$PROFSCRIPT" kvm-exit --duration 0.2 >"$TMP/out" 2>"$TMP/err"
check 'status' test $? -eq 0
expect_line 'why there is nothing' '^kvm-exit: no exits: no virtual machine ran with KVM on this machine$' "$TMP/err"
"$PROFSCRIPT" kvm-exit -- true >"$TMP/out" 2>"$TMP/err"
expect_line 'in a target' '^kvm-exit: no exits: no virtual machine ran with KVM on the traced CPUs or in the traced tasks$' "$TMP/err"
