#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Usage: tests/guest/guest.sh [NAME[@old]]
# Runs NAME_guest.sh of this folder in a guest, where it may change anything and the kernel may die. Prints its results;
# if some are missing, the end of the guest's console is on stderr. Without NAME it prints all names, those that take
# the longest first. The tests that depend most on the kernel also run on an older one, as NAME@old.
# GUEST_KERNEL: run all of them on this kernel only; see lab.sh -k.
# LAB_SHARED: see lab.sh.
set -u
cd "$(dirname "$0")" || exit 1
OLD_KERNEL=bullseye/cloud-amd64 # 5.10, the oldest kernel that BPF programs support
ON_OLD=' bindings/bpf/program bpf/run/sample_filter profilers/bpf-kvm_exit runtime/probes/probe '
LONG=' bpf/gen/targets bpf/ways/capture runtime/pull/vm '
CLOCKS=' runtime/pull/vm runtime/clocks/clock_axis runtime/clocks/kvm_ptp ' # nobody may set their clocks: they boot
NESTED=' runtime/clocks/kvm_ptp ' # they boot a guest of their own
MODULES=null_blk,kvm_amd,tcrypt,vsock_loopback
UNAVAILABLE=126

if [ $# -eq 0 ]; then
	[ "$(uname -m)" = x86_64 ] || exit 0
	find . -name '*_guest.sh' | LC_ALL=C sort | while read -r name; do
		name=${name#./} name=${name%_guest.sh}
		[[ $LONG == *" $name "* ]] && echo "0 $name" || echo "2 $name"
		[[ -n ${GUEST_KERNEL-} || $ON_OLD != *" $name "* ]] || echo "1 $name@old"
	done | sort -sn | cut -d ' ' -f 2
	exit
fi
kernel=${GUEST_KERNEL:-cloud-amd64} more=()
[[ $1 != *@old ]] || kernel=$OLD_KERNEL
[[ $NESTED != *" $1 "* ]] || more=(-n -m "$MODULES,ptp_kvm,virtio_mmio,virtio_console")
[[ $CLOCKS != *" $1 "* ]] || unset LAB_SHARED
err=$(mktemp)
trap 'rm -f "$err"' EXIT
./lab.sh -k "$kernel" -m "$MODULES" "${more[@]}" -t 450 "bash tests/guest/${1%@old}_guest.sh" 2>"$err"
status=$?
cat "$err" >&2
[ $status -ne $UNAVAILABLE ] || { echo "1..0 # SKIP $(tail -n 1 "$err")" && exit; }
exit $status
