#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Usage: tests/guest/guest_test.sh [WORD...]
# Runs the *_guest.sh in this folder and below whose names contain one of the WORDs (default: all), each in its own
# guest, where it may change anything, and where a kernel that dies fails only one test. Reports their results as its
# own. The tests that depend most on the kernel also run on an older one.
# GUEST_KERNEL: run all of them on this kernel only; see lab.sh -k.
. "$(dirname "$0")/../lib.sh"
cd "$TOP" || exit 1
OLD_KERNEL=bullseye/cloud-amd64 # 5.10, the oldest kernel that BPF programs support
ON_OLD=' bindings/bpf/program bindings/bpf/sample_filter profilers/bpf-kvm_exit runtime/probes/probe '
LONG=' bpf/ways/capture runtime/pull/vm '
NESTED=' runtime/clocks/kvm_ptp ' # they boot a guest of their own
MODULES=null_blk,kvm_amd,tcrypt,vsock_loopback
LIMIT=$((${TEST_TIMEOUT:-240} / 2)) # seconds for one guest
TIMED_OUT=124 DIED=125 UNAVAILABLE=126

# boot NAME[@old]: leaves the output in $TMP/NAME[@old].out, .err and .status. Tests that run at the same time come first.
boot() {
	local kernel=${GUEST_KERNEL:-cloud-amd64} more=()
	[[ $1 != *@old ]] || kernel=$OLD_KERNEL
	[[ $NESTED != *" ${1%@old} "* ]] || more=(-n -m "$MODULES,ptp_kvm,virtio_mmio,virtio_console")
	mkdir -p "$(dirname "$TMP/$1")"
	LAB_SHARED=$TMP tests/guest/lab.sh -k "$kernel" -m "$MODULES" "${more[@]}" -t "$LIMIT" \
		"bash tests/guest/${1%@old}_guest.sh" >"$TMP/$1.out" 2>"$TMP/$1.err"
	echo $? >"$TMP/$1.status"
}

# merge NAME[@old]: adds the results of its guest, and a failure if some are missing
merge() {
	local name=$1 line status seen=0 planned=none failed=$tests_failed problem=
	read -r status <"$TMP/$name.status"
	while IFS= read -r line; do
		if [[ $line =~ ^(not )?ok\ [0-9]+\ -\ (.*) ]]; then
			seen=$((seen + 1))
			result ${#BASH_REMATCH[1]} "$name: ${BASH_REMATCH[2]}"
		elif [[ $line =~ ^1\.\.([0-9]+)$ ]]; then
			planned=${BASH_REMATCH[1]}
		else
			echo "# ${line#\# }"
		fi
	done <"$TMP/$name.out"
	case $status in
	"$UNAVAILABLE") skip "$name" "$(tail -n 1 "$TMP/$name.err")" && return ;;
	"$TIMED_OUT") problem="took more than $LIMIT s" ;;
	"$DIED") problem='the guest died' ;;
	esac
	[ "$seen" = "$planned" ] || problem=${problem:-printed $seen of $planned results}
	[ "$status" -eq 0 ] || [ $tests_failed -gt "$failed" ] || problem=${problem:-exit status $status}
	[ -z "$problem" ] || result 1 "$name: $problem" "$TMP/$name.err"
}

[ "$(uname -m)" = x86_64 ] || skip_all 'the lab has only guests of x86_64'
names=()
for file in $(find tests/guest -name '*_guest.sh' | LC_ALL=C sort); do
	name=${file#tests/guest/} name=${name%_guest.sh}
	for word in "${@:-}"; do
		[[ $name != *"$word"* ]] || { names+=("$name") && break; }
	done
done
# These take the longest, so they go first.
first=() rest=()
for name in "${names[@]}"; do
	if [[ $LONG == *" $name "* ]]; then first+=("$name"); else rest+=("$name"); fi
	[[ -n ${GUEST_KERNEL-} || $ON_OLD != *" $name "* ]] || first+=("$name@old")
done
names=("${first[@]}" "${rest[@]}")
# One more than there are CPUs, because guests sleep now and then.
for name in "${names[@]}"; do
	while [ "$(jobs -rp | wc -l)" -gt "$(nproc)" ]; do wait -n; done
	boot "$name" &
done
wait
for name in "${names[@]}"; do
	merge "$name"
done
