#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --perfeval-cpus, --perfeval-pids and --sampling-limit on recordings: they count what tables of the same
# intervals show.
. "$(dirname "$0")/../../../lib.sh"
cd "$TMP" || exit 1

# run KEY FILE ARG...: prints a table by KEY every millisecond to out
run() {
	local key=$1 file=$2
	shift 2
	"$PROFSCRIPT" exec -e sched:sched_switch,sched:sched_wakeup "count($key)" --input "$DATA/$file" -i 1 --format csv "$@" >out
}
# by ID...: the rates in the tables in out, of the IDs only
by() {
	awk -F, -v ids=" $* " -v OFS=, '
		function flush() { if (all) print all * 1000, matched * 1000, n; all = matched = n = 0 }
		$1 ~ /^count/ { if ($2 != time) flush(); time = $2; all += $4; if (index(ids, " " $3 " ")) { matched += $4; n++ } }
		END { flush() }' out
}
rates() { sed -n "s/^perfeval,$1,\(\"[^\"]*\"\|[^,]*\),\(.*\),false\$/\2/p" out; }

# same NAME LIST: except for the last table, whose interval may be incomplete
same() {
	rates "$2" >got
	head -n $(($(wc -l <want) - 1)) want | diff - <(head -n $(($(wc -l <want) - 1)) got) >wrong
	result $? "$1" wrong
}

for file in sched.data hogs.data nap.data; do
	run ev._cpu $file --perfeval-cpus 0-1,7
	by 0 1 7 >want
	same "$file: CPUs" cpus
	run ev._cpu $file --perfeval-cpus 1
	by 1 >want
	same "$file: one of them" cpus
	check 'there are some rows' test "$(wc -l <want)" -ge 4
done
# Two processes of the scheduler benchmark, with one thread each; there are no other pids.
run ev._tid sched.data
mapfile -t tids < <(awk -F, '/^count/ { n[$3] += $4 } END { for (t in n) print n[t], t }' out | sort -rn | awk 'NR < 3 { print $2 }')
run ev._tid sched.data --perfeval-pids "${tids[0]},${tids[1]},4000000"
by "${tids[@]}" >want
same 'threads of processes' pids
run ev._cpu sched.data
cp out plain
run ev._cpu sched.data --perfeval-cpus 0
check 'the tables are unchanged' diff <(grep ^count, plain) <(grep ^count, out)
run ev._cpu sched.data --perfeval-cpus 0
rates cpus >want
run ev._cpu sched.data --perfeval-cpus 0 --filter 'common_pid == 4000000'
check 'filtered events have been sampled' diff want <(rates cpus)

# 4, 1, 1, 319 and 1 events in the intervals with events, up to the last
text() { "$PROFSCRIPT" exec -e sched:sched_switch,sched:sched_wakeup 'count()' --input "$DATA/sched.data" -i 1 --perfeval-cpus 0,1 "$@"; }
text | grep perfeval >out
expect_line 'the line' '^3147\.412888 exec: perfeval cpus\(0,1\): sampled 319000 events matched 319000 on 2 instances$' out
text --sampling-limit 159500 | grep perfeval >got
check 'at the limit the run goes on' diff out got
text --sampling-limit 159499 >got
tail -n 3 got >end
cat >want <<'END'
3147.412888 exec: perfeval cpus(0,1): sampled 319000 events matched 319000 on 2 instances, limit exceeded, stopping
3147.412888 exec: perfeval: cpu 0 sampled 318 events
3147.412888 exec: perfeval: cpu 1 sampled 1 events
END
check 'above it the run ends, with the interval' diff want end
expect_line 'and prints its table' '^  319$' got
text --sampling-limit 159499 --format json | tail -n 3 >end
cat >want <<'END'
{"event":"perfeval","by":"cpus","list":"0,1","sampled":319000,"matched":319000,"instances":2,"exceeds":true}
{"event":"perfeval","by":"cpus","id":0,"sampled":318}
{"event":"perfeval","by":"cpus","id":1,"sampled":1}
END
check 'as JSON' diff want end
