#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""perf_sched.py PROFSCRIPT RECORDING: compares `profscript sched` with `perf sched timehist` and `perf sched latency`, and
prints what differs. These differences are known:

- A CPU's first switch, and one from another task than the CPU had entered: perf takes the time since the CPU's last
  switch as the run. sched says nothing, as switches are missing.
- After a preemption perf has no delay; sched has the wait. perf 6.1 does not know the state R+ at all, and latency
  does not count such waits.
- latency counts a wait of 0 for a task that it first sees when it runs.
- latency of perf 6.1 ignores sched_waking, which perf sched record writes instead of sched_wakeup: it is not compared.
- perf forgets the first wakeup of a task that it knows by nothing else, if the task then forks.
- perf prints 0 where the time off CPU or the delay is not known, and cuts off digits."""
import collections
import json
import re
import subprocess
import sys

profscript, recording = sys.argv[1:]


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout


def micros(ms):
    return int((ms or 0) * 1000 + 1e-6)


def switches():
    """Returns the ends of runs that perf cannot know as "time tid", waits after R+ by tid, and tasks first seen to run."""
    unknown, preempted, heard, first = set(), collections.defaultdict(list), set(), set()
    current, since = {}, {}
    for line in run("perf", "script", "-i", recording, "--ns", "-F", "cpu,time,event,trace").splitlines():
        found = re.match(r" *\[(\d+)\] +(\d+\.\d+): +sched:(\w+): +(.*)", line)
        if not found:
            continue
        cpu, time, name, rest = found.groups()
        time = int(time.replace(".", ""))
        if name in ("sched_waking", "sched_wakeup", "sched_wakeup_new", "sched_stat_runtime"):
            heard.add(re.search(r" pid=(\d+)", rest).group(1))
        if name != "sched_switch":
            continue
        prev, state, entered = re.search(r"prev_pid=(\d+) .*prev_state=(\S+) .*next_pid=(\d+)", rest).groups()
        if current.get(cpu) != prev:
            unknown.add("%d %s" % (time // 1000, prev))
        current[cpu] = entered
        heard.add(prev)
        if entered not in heard:
            first.add(entered)
        heard.add(entered)
        if entered in since:
            preempted[entered].append((time - since.pop(entered)) / 1e6)
        since.pop(prev, None)
        if state == "R+":
            since[prev] = time
    return unknown, preempted, first


unknown, preempted, first = switches()
rows = [json.loads(line) for line in
        run(profscript, "sched", "-q", "--input", recording, "--runs", "--perins", "--json", "--top", "100000").splitlines()]
runs = {"%s %d" % (row["end"].replace(".", "").lstrip("0"), row["tid"]): row for row in rows if "run_ms" in row}
tasks = {str(row["tid"]): row for row in rows if row.get("table") == "sched-task"}
compared = waits = 0

for line in run("perf", "sched", "-i", recording, "timehist").splitlines():
    found = re.match(r" *(\d+\.\d+) +\[\d+\] +(\S.*?) +([\d.]+) +([\d.]+) +([\d.]+) *$", line)
    if not found or found.group(2) == "<idle>":
        continue
    time, task = found.groups()[:2]
    off, delay, ran = (round(float(x) * 1000) for x in found.groups()[2:])
    tid = re.search(r"(?:\[|^:)(\d+)", task).group(1)
    key = "%s %s" % (time.replace(".", ""), tid)
    row = runs.pop(key, None)
    if key in unknown:
        if row:
            print("timehist: a run that nobody can know: %s" % row)
        continue
    if not row:
        print("timehist: no run for: %s" % line)
        continue
    compared += 1
    numbers = [(x if x != "-" else 0) for x in (row["off_ms"], row["wait_ms"], row["run_ms"])]
    ours = [micros(x) for x in numbers]
    if row["state"] == "RD" or row["state"] == "-" and delay == 0:
        ours[1] = delay
    if ours != [off, delay, ran]:
        print("timehist: %s is %s" % (line, row))
for row in runs.values():
    print("timehist: perf has no run: %s" % row)

if "sched:sched_wakeup\n" not in run("perf", "evlist", "-i", recording):
    print("%d runs compared" % compared, file=sys.stderr)
    sys.exit()
for line in run("perf", "sched", "-i", recording, "latency", "-p").splitlines():
    found = re.match(r" +\S.*?:(\d+) +\| +([\d.]+) ms \| +(\d+) \| avg: +([\d.]+) ms \| max: +([\d.]+) ms", line)
    if not found:
        continue
    tid, runtime, count, mean, longest = found.groups()
    ours = tasks.get(tid, {"waits": 0, "wait_ns": 0, "max_ns": 0, "runtime_ns": 0})
    left = preempted[tid]
    n, total = ours["waits"] - len(left), ours["wait_ns"] / 1e6 - sum(left)
    want = int(count) - (tid in first)
    waits += n
    if n != want or abs(total - float(mean) * int(count)) > 0.001 * int(count) \
            or ours["max_ns"] / 1e6 not in left and abs(ours["max_ns"] / 1e6 - float(longest)) > 0.001:
        print("latency: %s is %s, %s" % (line, ours, left))
    tasks.pop(tid, None)
for row in tasks.values():
    if row["waits"] > len(preempted[str(row["tid"])]):
        print("latency: perf has no task: %s" % row)
print("%d runs and %d waits compared" % (compared, waits), file=sys.stderr)
