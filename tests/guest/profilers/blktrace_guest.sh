#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# blktrace on a null_blk disk: a known number of requests by dd, with and without an I/O scheduler.
. "$(dirname "$0")/../../lib.sh"
cd "$TOP" || exit 1
modprobe null_blk irqmode=0 2>"$TMP/err" || skip_all 'no null_blk'

# stages NAME ARG...: the rows of the CSV while dd writes 50 blocks and reads 30, one at a time
stages() {
	local name=$1
	shift
	start blktrace --format csv "$@"
	dd if=/dev/zero of=/dev/nullb0 bs=4k count=50 oflag=direct 2>/dev/null
	dd if=/dev/nullb0 of=/dev/null bs=4k count=30 iflag=direct skip=100 2>/dev/null
	stop
	result $? "$name ends" "$TMP/err"
	awk -F, 'NR > 1 && $3 == "nullb0" { print $4, $5, $6 }' "$TMP/out" | sort >"$TMP/rows"
}

echo none >/sys/block/nullb0/queue/scheduler
stages 'no scheduler' -d /dev/nullb0
# The writes may go through a list of the queue anyway.
awk '{ from[$1] += $3; to[$2] += $3 }
	END { print from["block_getrq"] + 0, to["block_rq_issue"] + 0, to["block_rq_complete"] + 0 }' "$TMP/rows" >"$TMP/sums"
expect_line 'no scheduler: all requests, at each stage' '^80 80 80$' "$TMP/sums"
expect_line 'no scheduler: reads go straight to the driver' '^block_getrq block_rq_issue (30|80)$' "$TMP/rows"

if modprobe mq-deadline 2>/dev/null && echo mq-deadline >/sys/block/nullb0/queue/scheduler; then
	stages 'a scheduler'
	expect_line 'a scheduler: gets it' '^block_getrq block_rq_insert 80$' "$TMP/rows"
	expect_line 'a scheduler: lets it go' '^block_rq_insert block_rq_issue 80$' "$TMP/rows"
	expect_line 'a scheduler: done' '^block_rq_issue block_rq_complete 80$' "$TMP/rows"
else
	skip 'a scheduler' 'no mq-deadline'
fi
echo none >/sys/block/nullb0/queue/scheduler
./profscript blktrace --than 100ns -d nullb0 --duration 3 >"$TMP/out" 2>&1 &
tracer=$!
wait_ready $tracer
dd if=/dev/zero of=/dev/nullb0 bs=4k count=5 oflag=direct 2>/dev/null
wait $tracer
check '--than prints the slow ones' test "$(grep -c 'block_rq_complete: ' "$TMP/out")" = 5
expect_line '--than says which stage took how long' \
	'blktrace: nullb0 block_rq_issue => block_rq_complete [0-9.]+ us$' "$TMP/out"
expect_line '--than counts them' 'block_rq_issue => block_rq_complete +5 .* 5 \(100%\)$' "$TMP/out"
check_status 'no such device' 2 ./profscript blktrace -d /dev/zork
