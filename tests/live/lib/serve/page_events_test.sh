#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The events behind the page of --serve in Chromium: those of a selected time, and the pairs of a bucket of the heat map.
# The page asks the run, which has read a recording and stays.
. "$(dirname "$0")/../../../lib.sh"
. "$TOP/tests/tools/browser.sh"
needs_tracepoint sched:sched_wakeup sched:sched_switch

is_answered() { test "$(get "/ask?token=$token&q=$1")" = 200; }

serve multi-trace -q -i 1 --json --input "$DATA/sched.data" -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/
wait_for 60 grep -q 'stays until Ctrl-C' "$TMP/err"
token=${url##*=}
check 'no token, no answer' test "$(get '/ask?q=from%3D0')" = 403
check 'no question' test "$(get "/ask?token=$token")" = 400
check 'one that is too long' test "$(get "/ask?token=$token&q=$(printf '%600s' | tr ' ' x)")" = 400
wait_for 60 is_answered n%3D1
result $? 'an answer' "$TMP/answer"
# Answers wait for those who asked, also while others ask.
ask_all() { for n in $(seq "$2"); do get "/ask?token=$token&q=n%3D$1$n"; done >"$TMP/many"; }
ask_all wait 50
check 'many questions: all are taken' test "$(sort -u "$TMP/many")" = 202
wait_for 60 is_answered n%3Dwait50
ask_all wait 50
check 'many questions: all are answered' test "$(sort -u "$TMP/many")" = 200
ask_all more 80
check 'too many: they are to be asked again' sh -c '! grep -vx "202\|503" "$1"' - "$TMP/many"
wait_for 60 is_answered n%3Dlast
result $? 'too many: there is room for another one later' "$TMP/many"
client() (
	mkdir "$TMP/client$1"
	TMP=$TMP/client$1
	wait_for 60 is_answered "n%3Dclient$1"
)
clients=()
for n in $(seq 50); do
	client "$n" &
	clients+=($!)
done
answered=0
for n in "${clients[@]}"; do wait "$n" && answered=$((answered + 1)); done
check 'fifty clients at once: all get an answer' test $answered = 50
check 'the page' test "$(get "/?token=$token")" = 200

# The same page, which a file may not let ask a server: without that rule, and with the address of the run.
as_file() {
	sed "s|<meta http-equiv=\"Content-Security-Policy\"|<base href=\"${url%%\?*}\"><meta name=\"x\"|
		s|location\.search|'?token=$token'|" "$TMP/body" >"$TMP/served.html"
	cat >>"$TMP/served.html" <<'END'
<script>
// Timers of this browser do not wait, but the run needs some time to answer.
function slow_timers() {
  var timer = window.setTimeout;
  window.setTimeout = function (call, ms) {
    for (var i = 0, sum = 0; i < 1e7; i++) sum += i % 7;
    return timer(call, ms);
  };
}
async function until(condition) {
  while (!condition()) await new Promise(function (done) { window.setTimeout(done, 100); });
}
</script>
END
}
as_file
cat >"$TMP/script" <<'END'
slow_timers();
function answered() { return text('notes') !== 'asking'; }
async function user() {
  await until(function () { return model.reports.length > 3; });
  var reports = model.reports, view = page.views.get('latency');
  var filled = reports.map(function (one, i) { return one.tables.length ? i : -1; }).filter(function (i) { return i >= 0; });
  function titles() { return Array.from(document.querySelectorAll('#lines b')).map(function (one) { return one.textContent; }); }
  // All buckets of all reports, each by a click.
  var wrong = [], buckets = 0, pairs = 0;
  for (const i of filled) {
    for (const e of view.series.points[i].counts.keys()) {
      drag(view, i, i, view.y(e + 0.5));
      await until(answered);
      buckets++;
      pairs += titles().length;
      var inside = titles().every(function (title) {
        return parseFloat(title) * 1000 >= Math.pow(2, e) && parseFloat(title) * 1000 < Math.pow(2, e + 1);
      });
      if (titles().length !== view.series.points[i].counts.get(e) || !inside || /not kept/.test(text('notes') + text('lines'))) {
        wrong.push(i + '/' + e + ': ' + view.series.points[i].counts.get(e) + ' ' + text('notes') + ' ' + titles());
      }
    }
  }
  check('each bucket has its pairs', buckets > 5 && wrong.length === 0, buckets + ' ' + wrong);
  check('with their events', text('lines').split('sched:sched_wakeup: ').length - 1 === titles().length,
    text('lines'));
  check('times of a recording without wall time', /^\d+\.\d{6} s, 1 report$/.test(text('range')), text('range'));
  check('the heading', /^Events (from .* to|until) .*, latency of .* to /.test(text('asked')), text('asked'));
  check('as many as in the table', / kept, \d+ in the bucket$/.test(text('notes')), text('notes'));
  // The events of a time.
  var a = filled[1], b = filled[2];
  drag(view, a, b, 20);
  await new Promise(function (done) { window.setTimeout(done, 0); }); // a drag suppresses clicks until then
  check('another selection hides them', document.getElementById('events').hidden, '');
  document.getElementById('ask').click();
  check('a question', text('notes') === 'asking' && !document.getElementById('events').hidden, text('notes'));
  await until(answered);
  var n = Number((text('notes').match(/^the first 200 of (\d+)$/) || [])[1] || text('lines').split('\n').length - 1);
  check('all events of the time', n > 2 && n === reports[b].events - reports[a - 1].events,
    n + ' ' + (reports[b].events - reports[a - 1].events));
  var before = text('asked');
  press('ArrowLeft');
  check('they follow the selection', text('notes') === 'asking' && !document.getElementById('events').hidden, text('notes'));
  await until(answered);
  check('with another heading', text('asked') !== before, text('asked'));
  var range = page.state.range, from = reports.findIndex(function (one) { return one.time === range.from; });
  n = Number((text('notes').match(/^the first 200 of (\d+)$/) || [])[1] || text('lines').split('\n').length - 1);
  check('and are those of its time', n === reports.find(function (one) { return one.time === range.to; }).events -
    (from > 0 ? reports[from - 1].events : 0), n);
  document.getElementById('everything').click();
  await until(answered);
  n = Number((text('notes').match(/^the first 200 of (\d+)$/) || [])[1]);
  check('a long list is cut', n === reports[reports.length - 1].events, text('notes'));
  document.getElementById('close').click();
  check('they can be closed', document.getElementById('events').hidden, '');
  page.showEvents({ items: [{ title: '<b>x</b>', text: '<img src=x onerror=alert(1)>\n' }], more: 0, notes: ['<i>'], gone: 5 }, null);
  check('events are text', text('lines') === '<b>x</b><img src=x onerror=alert(1)>\n' && !document.querySelector('#events img'),
    text('lines'));
  // The command of a part of the recording, which is run below.
  for (const from of [0, a]) {
    drag(view, from, b, 20);
    await new Promise(function (done) { window.setTimeout(done, 0); });
    var calls = reports.slice(from, b + 1).reduce(function (sum, report) {
      return sum + report.tables.reduce(function (all, table) {
        var at = table.columns.findIndex(function (column) { return column.name === 'calls'; });
        return all + table.rows.reduce(function (n, row) { return n + row[at]; }, 0);
      }, 0);
    }, 0);
    check('part: ' + calls + ' calls of ' + page.command(), true);
  }
  await until(function () { return runQueues.view.strips; });
  check('the run queues', !document.getElementById('queues').hidden && runQueues.view.strips.cpus.length > 0, '');
  var area = runQueues.view.box.getBoundingClientRect(), middle = (runQueues.view.strips.from + runQueues.view.strips.to) / 2;
  fire('mousemove', runQueues.view.box, { clientX: area.left + charts.xOf(middle), clientY: area.top + 10 });
  check('say who waits for a CPU', / s, CPU \d+: [0-9.]+ tasks on average, at most \d+$/.test(text('queued')), text('queued'));
  check('what is not kept is said', /^events until 5\.000000 s are not kept any more; <i>$/.test(text('notes')), text('notes'));
}
user().catch(function (error) { check('no exception', false, error.stack); }).then(print_results);
END
browser_ms=60000 in_browser events "$TMP/served.html" --disable-web-security --allow-file-access-from-files <"$TMP/script"
grep -q 'PASS what is not kept' "$TMP/lines"
result $? 'to its end' "$TMP/lines"
kill -INT $tracer
wait $tracer
result $? 'it ends with Ctrl-C' "$TMP/err"
# Without the beginning of the recording, pairs that begin in it are missing.
parts=0
while read -r _ _ calls _ _ command; do
	parts=$((parts + 1))
	bash -c "$(sed 's/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g' <<<"$command")" >"$TMP/out" 2>"$TMP/err"
	sum_of calls
	got=$(<"$TMP/sum")
	echo "$command: $got" >>"$TMP/err"
	[ "$got" -gt 0 ] && [ "$got" -le "$calls" ] && { [ $parts -gt 1 ] || [ "$got" = "$calls" ]; }
	result $? 'the command gives what is seen' "$TMP/err"
done < <(grep '^PASS part: ' "$TMP/lines")
check 'two commands' test $parts = 2

# The integral of the queues is the time that tasks wait.
csv rundelay -q --input "$DATA/hogs.data"
want=$(total total_ns)
serve rundelay -q -i 10 --input "$DATA/hogs.data"
wait_for 60 grep -q 'stays until Ctrl-C' "$TMP/err"
token=${url##*=}
wait_for 60 is_answered queues%3D1
echo "$want ns" >"$TMP/sum"
cat "$TMP/body" >>"$TMP/sum"
awk -v want="$want" 'match($0, /"from":[0-9.]+/) { from = substr($0, RSTART + 7, RLENGTH - 7) }
	match($0, /"to":[0-9.]+/) { to = substr($0, RSTART + 5, RLENGTH - 5) }
	{ while (match($0, /\[[0-9]+,\[[0-9.e+]+\]/)) { cpu = substr($0, RSTART, RLENGTH); sub(/.*\[/, "", cpu); mean += cpu; $0 = substr($0, RSTART + RLENGTH) } }
	END { ns = mean * (to - from) * 1e9; print ns; exit !(ns > 0.97 * want && ns < 1.15 * want) }' "$TMP/body" >>"$TMP/sum"
result $? 'tasks that wait: as long as in the table of rundelay' "$TMP/sum"
kill -INT $tracer
wait $tracer

# A profiler without tables: its rate, and its newest events without a question.
serve trace -q -i 1 -o /dev/null --input "$DATA/sched.data" -e sched:sched_switch
wait_for 60 grep -q 'stays until Ctrl-C' "$TMP/err"
token=${url##*=}
check 'the page of trace' test "$(get "/?token=$token")" = 200
as_file
cat >"$TMP/script" <<'END'
slow_timers();
async function user() {
  await until(function () { return /^the last|^$/.test(text('notes')) && text('lines'); });
  check('its newest events', text('lines').indexOf('sched:sched_switch: ') > 0, text('lines'));
  check('and why there is no table', /no tables/.test(text('empty')), text('empty'));
  check('its events by name', document.querySelector('td[data-name="event"]').textContent === 'sched:sched_switch' ||
    document.querySelector('td[data-name="event"]').textContent === 'sched_switch', document.body.textContent.slice(-500));
  check('their rate', page.overview.series.points.length === model.reports.length && model.reports.length > 3, '');
  press('a');
  await until(function () { return /^the last 200 of 211$/.test(text('notes')); });
  check('those of everything', text('lines').split('\n').length === 201, text('lines'));
}
user().catch(function (error) { check('no exception', false, error.stack); }).then(print_results);
END
browser_ms=60000 in_browser trace "$TMP/served.html" --disable-web-security --allow-file-access-from-files <"$TMP/script"
kill -INT $tracer
wait $tracer

# Live, the kernel pairs the events: there are none to show, which is said.
answer() { wait_for 60 is_answered "n%3D$1" && grep -q "$2" "$TMP/body"; }
"$PROFSCRIPT" rundelay --dry-run >"$TMP/plan" 2>&1
serve rundelay -q -i 200
token=${url##*=}
if grep -q 'in the kernel' "$TMP/plan"; then
	check 'events that stay in the kernel' answer 0 'the kernel itself takes sched_'
fi
kill -INT $tracer
wait $tracer
serve rundelay -q -i 200 --capture=perf
token=${url##*=} n=0
with_events() { n=$((n + 1)) && answer $n 'sched_switch: '; }
wait_for 60 with_events
result $? 'with --capture=perf they are shown' "$TMP/body"
kill -INT $tracer
wait $tracer

# What the profiler says about an event is shown, too, even if it fails.
cat >"$TMP/fails.lua" <<'END'
return {
  summary = 'Count switches',
  start = function()
    return { ['sched:sched_switch'] = function() end, describe = function() error 'no words' end }
  end,
}
END
serve "$TMP/fails.lua" -q --input "$DATA/sched.data"
wait_for 60 grep -q 'stays until Ctrl-C' "$TMP/err"
token=${url##*=}
check 'a profiler that cannot describe an event' answer 1 'no words'
kill -INT $tracer
wait $tracer
result $? 'goes on' "$TMP/err"
