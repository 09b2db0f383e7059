#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The page of --serve in Chromium: it shows the tables of the profiler, adds up the time that is selected, and draws flame
# graphs. A recording is read at once and then stays until Ctrl-C, so that all numbers are known.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
. "$TOP/tests/tools/browser.sh"
wakeups=(-e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/)

# recorded ARG...: serves a recording, and returns when all of the recording has been read
recorded() {
	serve "$@"
	wait_for 60 grep -q 'stays until Ctrl-C' "$TMP/err"
}
# cells NAME: the cells of this column in $TMP/dom
cells() { grep -o "<td[^>]*data-name=\"$1\"[^>]*>[^<]*" "$TMP/dom" | sed 's/.*>//'; }

csv multi-trace -q -i 1 --input "$DATA/sched.data" "${wakeups[@]}"
calls=$(total calls) reports=$(column time | sort -u | wc -l)
recorded multi-trace -q -i 1 --json --input "$DATA/sched.data" "${wakeups[@]}"
token=${url##*=}
dom "$url#all" >"$TMP/dom"
expect_line 'the profiler' '<h1 id="profiler">multi-trace</h1>' "$TMP/dom"
[ "$(cells calls)" = "$calls" ]
result $? "everything: $calls pairs, as in the tables" "$TMP/dom"

check 'no token, no page' test "$(get /)" = 403
check 'no token, no reports' test "$(get '/log?after=0')" = 403
check 'a wrong token' test "$(get "/log?after=0&token=${token%?}x")" = 403
check 'nothing else' test "$(get "/x?token=$token")" = 404
check 'the page' test "$(get "/?token=$token")" = 200
cp "$TMP/body" "$TMP/served.html"
check 'the reports' test "$(get "/log?after=0&token=$token")" = 200
cp "$TMP/body" "$TMP/log"
check 'the page loads nothing' sh -c '! grep -E "(src|href)=\"[^d\"]|https?://" "$1"' - "$TMP/served.html"
kill -INT $tracer
wait $tracer
result $? 'it ends with Ctrl-C' "$TMP/err"
check 'the tables are printed, too' test "$(grep -c '"table":"latency"' "$TMP/out")" -ge "$reports"

recorded exec -q --json --input "$DATA/mixed.data" -g -e sched:sched_switch 'count(ev._comm, ev._stack)'
check 'the reports of another one, with stacks' test "$(get "/log?after=0&token=${url##*=}")" = 200
cp "$TMP/body" "$TMP/stacks"
kill -INT $tracer
wait $tracer

recorded multi-trace -q --input "$DATA/sched.data" "${wakeups[@]}" --query 'SELECT sum(calls) AS n FROM latency'
check 'the reports with --query' test "$(get "/log?after=0&token=${url##*=}")" = 200
expect_line 'are its results' "\"tables\":\[\{\"name\":\"query\",.*\"rows\":\[\[$calls\]\]" "$TMP/body"
kill -INT $tracer
wait $tracer

# The page with the same reports and a user.
{
	echo 'var answer ='
	cat "$TMP/log"
	echo ', stacks ='
	cat "$TMP/stacks"
	cat <<'END'
;
add(answer.items);
var view = views.get('latency'), canvas = view.canvas, box = canvas.getBoundingClientRect();
var filled = reports.map(function (one, i) { return one.tables.length ? i : -1; }).filter(function (i) { return i >= 0; });
function shown(name) {
  return Array.from(document.querySelectorAll('td[data-name="' + name + '"]')).map(function (td) { return td.textContent; });
}
function callsOf(list) {
  var sum = 0;
  list.forEach(function (report) {
    report.tables.forEach(function (table) {
      var at = table.columns.findIndex(function (column) { return column.name === 'calls'; });
      table.rows.forEach(function (row) { sum += row[at]; });
    });
  });
  return sum;
}
function drag(i, j) {
  function at(k) { return { clientX: box.left + view.x(k) + 1, clientY: box.top + 20 }; }
  fire('mousedown', canvas, at(i));
  fire('mousemove', canvas, at(j));
  fire('mouseup', document.body, at(j));
}
check('several reports', filled.length > 3, filled.length);
var a = filled[1], b = filled[2];
drag(a, b);
check('a drag selects a time', mode === 'range' && from === reports[a].time && to === reports[b].time, location.hash);
check('its pairs are added up', Number(shown('calls')[0]) === callsOf(reports.slice(a, b + 1)), shown('calls'));
check('less than everything', callsOf(reports.slice(a, b + 1)) < callsOf(reports), '');
check('the address has it', location.hash === '#' + from + '-' + to, location.hash);
drag(b, a);
check('backward, too', from === reports[a].time && to === reports[b].time, location.hash);
check('quantiles are bounds', /^≤ [0-9.]+ [nu]?m?s$/.test(shown('p50_ns')[0]), shown('p50_ns')[0]);
document.getElementById('all').click();
check('everything', Number(shown('calls')[0]) === callsOf(reports), shown('calls'));
document.querySelector('th[data-name="calls"]').click();
check('a heading sorts, and draws its column', view.sort === 'calls' && view.plain && view.charted === 'calls', '');
document.querySelector('tbody tr').click();
check('a row is selected', document.querySelectorAll('tr.on').length === 1 && !view.plain, '');
fire('mousemove', canvas, { clientX: box.left + view.x(a) + 1, clientY: box.top + 5 });
check('a bucket tells its count', / to .*: \d+$/.test(view.hint.textContent), view.hint.textContent);
var painted = canvas.getContext('2d').getImageData(LEFT, 0, canvas.width - LEFT, canvas.height).data, colors = new Set();
for (var i = 0; i < painted.length; i += 4) colors.add(painted[i] + '/' + painted[i + 1] + '/' + painted[i + 2]);
check('the heat map has colors', colors.size > 2, colors.size);
document.getElementById('last').click();
check('the last report', Number(shown('calls')[0]) === callsOf([reports[filled[filled.length - 1]]]), shown('calls'));
add([{ time: 1, events: 1, lost: 7, tables: [{ name: '<b>x</b>', more: 0,
  columns: [{ name: 'comm', title: 'comm', kind: 'label' }, { name: 'n', title: 'n', kind: 'gauge' }],
  rows: [['<img src=x onerror=alert(1)>', 1]] }] }]);
check('names are text', !document.querySelector('img, h2 b') && shown('comm')[0].indexOf('<img') === 0, shown('comm'));
check('losses are shown', text('totals') === '1 events, 7 lost', text('totals'));
document.getElementById('all').click();
add(stacks.items);
function frames() { return Array.from(document.querySelectorAll('.flame div')); }
function named(name) { return frames().find(function (one) { return one.textContent === name; }); }
var samples = 0;
stacks.items[0].tables[0].rows.forEach(function (row) { samples += row[2]; });
check('stacks are a flame graph', named('all').title === 'all: ' + samples + ' (100.0 %)', named('all').title);
check('with the names of functions', Boolean(named('read')), frames().map(function (one) { return one.textContent; }));
var narrow = named('read').offsetWidth;
named('read').click();
check('a click zooms', named('read').offsetWidth > narrow, narrow + ' ' + named('read').offsetWidth);
frames()[0].click();
check('and leaves it', named('read').offsetWidth === narrow, named('read').offsetWidth);
END
} >"$TMP/script"
in_browser page "$TMP/served.html" <"$TMP/script"

refused 'a wrong address' 2 'exec: --serve: ' exec --serve x:y --input "$DATA/sched.data" -e sched:sched_switch 'count()'
