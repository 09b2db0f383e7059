#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# blktrace on the disks of this machine; a guest has one whose requests are known.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint block:block_rq_issue block:block_rq_complete
cd "$TMP" || exit 1

# A device without a medium has no requests.
idle=
for disk in /sys/class/block/*; do
	[ "$(<"$disk/size")" != 0 ] || idle=${disk##*/}
done
if [ -n "$idle" ]; then
	"$PROFSCRIPT" blktrace -d "/dev/$idle" --duration 0.2 --than 1ms >out 2>err
	check 'a table of zeros' test "$(grep -Ec "^$idle +block_.* => block_[a-z_]+ +0 +0 ns .* 0 \( +0%\)\$" out)" -eq 3
	"$PROFSCRIPT" blktrace -d "/dev/$idle" --duration 0.2 --json >out 2>err
	check 'no rows in JSON' test ! -s out
else
	skip 'an idle disk' 'no block device without a medium'
fi

disk=$(df --output=source . | sed -n '2s|^/dev/||p')
if [ -e "/sys/class/block/$disk" ] && dd if=/dev/zero of=blocks bs=4k count=1 oflag=direct 2>/dev/null; then
	# Some kernels do not report completions in interrupts of an idle CPU.
	for ((cpu = $(nproc); cpu > 0; cpu--)); do
		nice -n 19 bash -c 'while :; do :; done' &
	done
	start blktrace -d "/dev/$disk" --than 1ns
	dd if=/dev/zero of=blocks bs=4k count=20 oflag=direct conv=notrunc,fsync 2>/dev/null
	stop
	check 'a line with stage and latency before each event' awk -v disk="$disk" '
		/ block:block_rq_complete: / { if (last !~ " blktrace: " disk " block_rq_issue => block_rq_complete [0-9.]+ us$") bad++; n++ }
		{ last = $0 } END { exit !n || bad }' out

	# calls END ARG...: the latencies that end at this stage
	calls() {
		"$PROFSCRIPT" blktrace --csv -d "/dev/$disk" "${@:2}" 2>err | awk -F, -v end="$1" '$5 == end { n += $6 } END { print n + 0 }'
	}
	check 'a workload: also completions, which happen in other threads' test "$(calls block_rq_complete -- \
		dd if=/dev/zero of=blocks bs=4k count=20 oflag=direct conv=notrunc status=none)" -gt 0
	{
		trap exit TERM # after the dd
		while :; do dd if=/dev/zero of=others bs=4k count=20 oflag=direct conv=notrunc status=none; done
	} &
	others=$!
	check 'requests of others are counted' test "$(calls block_rq_issue --duration 0.3)" -gt 0
	check 'but not with a workload' test "$(calls block_rq_issue -- sleep 0.3)" -eq 0
	kill $others
	wait $others
else
	skip 'slow stages' 'the file system is on no disk'
fi

# The same requests with and without their completions, which some kernels do not report.
truncate -s 1M image
if loop=$(losetup -f --show image 2>/dev/null); then
	for completions in 'nr_sector > 0' 'nr_sector == 1234567'; do
		perf record -q -a -e block:block_getrq -e block:block_rq_insert -e block:block_rq_issue -e block:block_rq_complete \
			--filter "$completions" -o data -- dd if="$loop" of=/dev/null bs=4k count=40 iflag=direct 2>/dev/null
		"$PROFSCRIPT" blktrace -d "$loop" --input data >out 2>err
		if [ "$completions" = 'nr_sector > 0' ]; then
			check 'completions that are reported: nothing to say' diff /dev/null err
		else
			expect_line 'completions that are not reported' \
				'^blktrace: the kernel did not report 40 completions \(their requests are in no row, or still wait for the device\)$' err
		fi
	done
	losetup -d "$loop"
else
	skip 'completions that are not reported' 'no loop device'
fi
