#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# An invalid command line is reported in one line that says what is wrong and where, with exit status 2; never with a
# traceback, a crash or partial output.
. "$(dirname "$0")/../../../lib.sh"
sched=$DATA/sched.data
switch=sched:sched_switch
cd "$TMP" || exit 1

refused 'an unknown profiler' 2 "no such profiler 'trce'; did you mean 'trace'\\?" trce
refused 'a path without file' 2 "no such file './no/such.lua'" ./no/such.lua
refused 'a directory' 2 "'./' is a directory" ./
refused 'an unknown option' 2 "trace: unknown option '--intervall'; did you mean '--interval'\\?" trace --intervall 1
refused 'an unknown global option' 2 "unknown option '--bogus'" --bogus
refused 'a control character' 2 "no such profiler '.x1b\\[31mx'" $'\e[31mx'
for name in trace top num-dist event-lost; do
	refused "$name without events" 2 "$name: no events; select some with -e" $name
done
refused 'a missing value' 2 "multi-trace: option '--than' needs a value" multi-trace --than
refused 'a missing argument' 2 'exec: missing LUA' exec -e $switch
refused 'a duration with a bad unit' 2 "multi-trace: option '--than': invalid duration '1.5xs': unknown unit 'xs'" \
	multi-trace --than 1.5xs
refused 'an invalid duration' 2 "trace: option '--duration': invalid duration 'soon'" trace --duration soon
refused 'an empty interval' 2 "trace: option '-i': '0' is not a duration >= 1ms" trace -i 0
refused '-N 0' 2 "trace: option '-N': '0' is not an integer >= 1" trace -N 0
refused '-N 1.5' 2 "trace: option '-N': '1.5' is not an integer" trace -N 1.5
refused '-m 3' 2 "trace: option '-m': '3' is not a power of two; the nearest are 2 and 4" trace -m 3
refused '-m 0' 2 "trace: option '-m': '0' is not a power of two from 1" trace -m 0
refused '--usage-self 0' 2 "trace: option '--usage-self': '0' is not a duration >= 1ms" trace --usage-self 0
refused '--usage-self soon' 2 "trace: option '--usage-self': invalid duration 'soon'" trace --usage-self soon
refused '--usage-self of a source' 2 "bad event .*profile: --usage-self is not valid for a source" trace -e 'profile/--usage-self 1/'
refused '--overwrite of a source' 2 'bad event .*trace: --overwrite is not valid for a source' exec -e 'trace/-e sched:sched_switch --overwrite/' 'count()'
refused '--perfeval-cpus without -i' 2 'trace: --perfeval-cpus requires -i' trace --input "$sched" --perfeval-cpus 0
refused '--perfeval-pids without -i' 2 'trace: --perfeval-pids requires -i' trace --input "$sched" --perfeval-pids 1
refused '--perfeval-cpus x' 2 "trace: option '--perfeval-cpus': invalid CPU list 'x'" trace --perfeval-cpus x
refused '--perfeval-pids 0' 2 "trace: option '--perfeval-pids': invalid id list '0'" trace --perfeval-pids 0
refused '--sampling-limit 0' 2 "trace: option '--sampling-limit': '0' is not an integer >= 1" trace --sampling-limit 0
refused '--sampling-limit of nothing' 2 'trace: --sampling-limit requires --perfeval-cpus or --perfeval-pids' \
	trace --input "$sched" -i 1 --sampling-limit 1
refused '--period 0' 2 "trace: option '--period': '0' is not a duration >= 1ns" trace --period 0
refused '--period x' 2 "trace: option '--period': invalid duration 'x'" trace --period x
refused '--lost x' 2 "trace: option '--lost': 'x' is not one of warn, error, ignore" trace --lost x
partly '--lost error' 1 'trace: lost 1274 events; stopped because of --lost=error$' 'sys_exit' trace --input "$DATA/lost.data" --lost error
refused '--watermark 150' 2 "trace: option '--watermark': '150' is not an integer from 0 to 100" trace --watermark 150
refused '--format xml' 2 "trace: option '--format': 'xml' is not one of text, json, csv" trace --format xml
refused '-C x' 2 "trace: option '-C': invalid CPU list 'x'" trace -C x
refused '-C 1-0' 2 "trace: option '-C': invalid CPU list '1-0'" trace -C 1-0
refused '-p 12,0' 2 "trace: option '-p': invalid process list '12,0'" trace -e $switch -p 12,0
refused '-p of a name without process' 1 "no such process: 'a.x1bb'" trace -e $switch -p $'a\x1bb'
refused 'a recording and a target' 2 'trace: --input cannot be combined with' trace --input "$sched" -C 0
refused 'a recording and a workload' 2 'trace: --input cannot be combined with' trace --input "$sched" -- true
