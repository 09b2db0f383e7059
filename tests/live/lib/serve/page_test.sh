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
check 'the page loads nothing' sh -c '! grep -v "^// https://d3js.org/.* Copyright" "$1" | grep -oE "(src|href)=\"[^d\"]|https?://[^\" ]*" |
	grep -v "^http://www.w3.org/"' - "$TMP/served.html"
check 'the page has 400 kB at most' test "$(stat -c %s "$TMP/served.html")" -le 400000
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
	echo 'var broken = []; document.addEventListener("securitypolicyviolation", function (e) { broken.push(e.violatedDirective); });'
	echo 'var answer ='
	cat "$TMP/log"
	echo ', stacks ='
	cat "$TMP/stacks"
	cat <<'END'
;
// A drag suppresses clicks until its task has ended.
function released() { return new Promise(function (done) { window.setTimeout(done, 0); }); }
async function user() {
page.add(answer.items);
var reports = model.reports, state = page.state, view = page.views.get('latency');
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
function is(a, b) { return state.mode === 'range' && state.range.from === reports[a].time && state.range.to === reports[b].time; }
check('several reports', filled.length > 3, filled.length);
var a = filled[1], b = a + 1;
drag(view, a, b, 20);
await released();
check('a drag selects a time', is(a, b), location.hash);
check('its pairs are added up', Number(shown('calls')[0]) === callsOf(reports.slice(a, b + 1)), shown('calls'));
check('less than everything', callsOf(reports.slice(a, b + 1)) < callsOf(reports), '');
check('the address has it', location.hash === '#' + state.range.from + '-' + state.range.to, location.hash);
check('all charts show it', charts.list.every(function (one) {
  return Number(one.box.querySelector('.selection').getAttribute('width')) > 3;
}), '');
drag(page.overview, b, a, 20);
await released();
check('backward and over another chart, too', is(a, b), location.hash);
check('quantiles are bounds', /^≤ [0-9.]+ [nu]?m?s$/.test(shown('p50_ns')[0]), shown('p50_ns')[0]);
check('values have units', /^[0-9.]+ [nu]?m?s$/.test(shown('total_ns')[0]), shown('total_ns')[0]);
check('the distribution is that of the time', new RegExp('^' + callsOf(reports.slice(a, b + 1)) + ' values, p50 ≤')
  .test(view.about.textContent), view.about.textContent);
check('time axes', Array.from(document.querySelectorAll('.chart .x')).every(function (axis) {
  var labels = Array.from(axis.querySelectorAll('.tick text')).map(function (one) { return one.textContent; });
  return labels.length > 1 && new Set(labels).size === labels.length;
}), '');
press('ArrowLeft');
check('a key moves the selection', is(a - 1, b - 1), location.hash);
press('ArrowRight', { shiftKey: true });
check('and extends it', is(a - 1, b), location.hash);
press('ArrowLeft', { shiftKey: true });
press('ArrowRight');
check('and back', is(a, b), location.hash);
press('c');
check('a time before', state.before.from === reports[a].time && /before=/.test(location.hash), location.hash);
drag(view, filled[3], filled[3], 180);
await released();
check('two times side by side', Array.from(document.querySelectorAll('th.sub')).slice(0, 3).map(function (one) {
  return one.textContent; }).join() === 'before,after,change' && document.querySelectorAll('td.old').length > 0, '');
press('Escape');
check('leaves it', !state.before && document.querySelectorAll('td.old').length === 0, '');
press('a');
check('everything', Number(shown('calls')[0]) === callsOf(reports), shown('calls'));
var wide = charts.xOf(reports[b].time) - charts.xOf(reports[a].time);
press('+');
check('zooms', charts.zoomed() && charts.xOf(reports[b].time) - charts.xOf(reports[a].time) > 1.9 * wide, wide);
press('Escape');
check('and back to all', !charts.zoomed(), '');
location.hash = '#all&zoom=' + reports[a].time + '-' + reports[b].time + '&q=wakeup&sort=latency,calls';
await released();
check('the address restores it', charts.zoomed() && charts.zoomed()[0] === reports[a].time && state.filter === 'wakeup',
  JSON.stringify(charts.zoomed()));
location.hash = '#all&row=latency,x&row=latency,%7B';
await released();
check('a row that is none is no row', view.focus === null, view.focus);
location.hash = '#all';
await released();
check('and nothing of it', !charts.zoomed() && state.filter === '', location.hash);
document.querySelector('th[data-name="calls"]').click();
check('a heading sorts, and draws its column', view.sort === 'calls' && view.plain && view.charted === 'calls', '');
check('with its unit', /\/s$/.test(view.box.querySelector('.y .tick:last-of-type').textContent), view.box.textContent);
document.querySelector('tbody tr').click();
check('a row is selected', document.querySelectorAll('tr.on').length === 1 && !view.plain && /row=latency/.test(location.hash),
  location.hash);
var row = document.querySelector('tr.on'), key = row.dataset.key;
row.focus();
page.draw();
check('keeps the keyboard when it is drawn again', document.activeElement !== row && document.activeElement.dataset.key === key,
  document.activeElement.outerHTML);
document.querySelector('th[data-name="max_ns"]').focus();
document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
check('Enter sorts by a heading', view.sort === 'max_ns' && document.activeElement.getAttribute('aria-sort') === 'descending',
  view.sort);
check('bars are in the address', /bars=latency/.test(location.hash), location.hash);
view.draw.click();
document.querySelector('th[data-name="calls"]').click();
view.draw.click();
document.activeElement.blur();
press('k');
var top = model.countsOf(view.sum, view.focus).pop();
check('a key goes to the slowest bucket', state.bucket.exponent === top[0] && state.bucket.count === top[1] &&
  new RegExp(': ' + top[1] + ' ').test(view.hint.textContent), view.hint.textContent);
check('which has a frame', Number(view.box.querySelector('.cell').getAttribute('height')) > 3, view.box.innerHTML);
press('j');
check('another one to the next', state.bucket.exponent < top[0], state.bucket.exponent);
press('e');
check('and one to its events', /latency of /.test(text('asked')), text('asked'));
press('Escape');
check('the command', /SELECT \* FROM latency WHERE start = .*sched_wakeup.* ORDER BY calls DESC/.test(page.command()), page.command());
var at = view.box.getBoundingClientRect();
fire('mousemove', view.box, { clientX: at.left + charts.xOf(reports[a].time) - 1, clientY: at.top + 15 });
check('a bucket has its count', / to .*: \d+$/.test(view.hint.textContent), view.hint.textContent);
var canvas = view.canvas, colors = new Set();
var painted = canvas.getContext('2d').getImageData(80, 0, canvas.width - 80, canvas.height).data;
for (var i = 0; i < painted.length; i += 4) colors.add(painted[i] + '/' + painted[i + 1] + '/' + painted[i + 2]);
check('the heat map has colors', colors.size > 2, colors.size);
view.row.click();
function filter(text) {
  document.getElementById('filter').value = text;
  document.getElementById('filter').dispatchEvent(new Event('input'));
}
filter('no such row');
check('a filter', shown('calls').length === 0 && /rows? do not contain/.test(view.rest.textContent), view.rest.textContent);
filter('');
press('t');
check('dark and light', document.documentElement.classList.contains('dark') && /theme=dark/.test(location.hash), location.hash);
press('t');
document.getElementById('newest').click();
check('the last report', Number(shown('calls')[0]) === callsOf([reports[filled[filled.length - 1]]]), shown('calls'));
press(' ');
page.add([{ time: 1, from: null, to: 1e9, events: 1, lost: 7, tables: [{ name: '<b>x</b>', more: 0,
  columns: [{ name: 'comm', title: 'comm', kind: 'label' }, { name: 'n_bytes', title: 'n', kind: 'gauge', unit: 'bytes' }],
  rows: [['<img src=x onerror=alert(1)>', 65536]] }] }]);
check('a pause', page.views.size === 1 && text('state') === 'paused, 1 new reports', text('state'));
press(' ');
check('names are text', !document.querySelector('img, h2 b') && shown('comm')[0].indexOf('<img') === 0, shown('comm'));
check('bytes have units', shown('n_bytes')[0] === '64 KiB', shown('n_bytes'));
check('losses are shown', text('totals') === '1 events, 7 lost', text('totals'));
document.getElementById('everything').click();
page.add(stacks.items);
function frames() { return Array.from(document.querySelectorAll('.flame div')); }
function named(name) { return frames().find(function (one) { return one.textContent === name; }); }
var samples = 0;
stacks.items[0].tables[0].rows.forEach(function (row) { samples += row[2]; });
check('stacks are a flame graph', named('all').title === 'all: ' + samples + ' (100.0 %)', named('all').title);
check('with the names of functions', Boolean(named('read')), frames().map(function (one) { return one.textContent; }));
check('the roots on top', named('all').offsetTop === 0 && named('read').offsetTop > 0, '');
var narrow = named('read').offsetWidth, stacked = page.views.get(stacks.items[0].tables[0].name);
named('read').click();
check('a click zooms', named('read').offsetWidth > narrow, narrow + ' ' + named('read').offsetWidth);
check('its share', /^\d+ .*read: [0-9.]+ % of all$/.test(stacked.flameNote.textContent), stacked.flameNote.textContent);
stacked.flame.focus();
function arrow(name) { stacked.flame.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true })); }
arrow('ArrowDown');
arrow('ArrowDown');
var marked = stacked.flame.querySelector('.at');
check('arrows go to frames', marked.offsetTop > 0 && stacked.flameNote.textContent.indexOf(marked.title) === 0, stacked.flameNote.textContent);
frames()[0].click();
check('and leaves it', named('read').offsetWidth === narrow, named('read').offsetWidth);
stacked.find.value = '^read$';
stacked.find.dispatchEvent(new Event('input'));
check('a search', named('read').classList.contains('found') && / [0-9.]+ % matched/.test(stacked.flameNote.textContent),
  stacked.flameNote.textContent);
page.add([1, 2].map(function (n) {
  return { time: 3e9 + n, from: null, to: n, events: n, lost: 0, tables: [{ name: 'loaded', more: 0, rows: n > 1 ? [['a', 1]] : [['a', 'b', 1]],
    columns: ['x', 'y', 'n'].slice(n > 1 ? 1 : 0).map(function (name) {
      return { name: name, title: name, kind: name === 'n' ? 'counter' : 'label' };
    }) }] };
}));
page.add([{ time: 3e9 + 4, from: 2, to: 4e9, events: 3, lost: 0, tables: [{ name: 'rates', more: 0,
  columns: [['event', 'label'], ['total', 'counter'], ['counts', 'none']].map(function (one) {
    return { name: one[0], title: one[0], kind: one[1] };
  }), rows: [['a', 30, [10, 20]], ['b', 2, [0, 2]]] }] }]);
var rates = page.views.get('rates'), last = rates.series.points[rates.series.points.length - 1];
check('counts of periods are drawn as periods', JSON.stringify(last.periods) === '[[10,0,0],[20,2,0]]' &&
  rates.series.tops.join() === 'a,b', JSON.stringify(last.periods));
check('as the rates of each', Number(rates.box.querySelector('.y .tick:last-of-type text').textContent.replace(/[/]s$/, '')) <= 21,
  rates.box.textContent);
page.add([{ time: 3e9 + 5, from: 4e9, to: 5e9, events: 3, lost: 0, tables: [] }, { time: 3e9 + 6, from: 5e9, to: 6e9, events: 3, lost: 0,
  tables: [{ name: 'rates', at: 5e9, more: 0, columns: rates.columns, rows: [['a', 7, [3, 4]]] }] }]);
check('a table that comes late belongs to the report that it is about', rates.series.points.slice(-2).map(function (one) {
  return one.value; }).join() === '7,0' && model.addUp('rates', null).rows.get('["a"]')[1] === 37, JSON.stringify(rates.series.points.slice(-2)));
check('columns that a loaded script has changed', page.views.get('loaded').table.textContent === 'ynA1'.replace('A', 'a'),
  page.views.get('loaded').table.textContent);
state.mode = 'range';
state.range = { from: 3e9 + 2, to: 3e9 + 2, start: 3e9 + 1 };
state.before = { from: 3e9 + 1, to: 3e9 + 1, start: 3e9 };
page.draw();
check('are not compared', /^ynbeforeafterchangea–.*new$/.test(page.views.get('loaded').table.textContent),
  page.views.get('loaded').table.textContent);
check('no policy was broken', broken.length === 0, broken);
check('to the end', true);
}
user().catch(function (error) { check('no exception', false, error.stack); }).then(print_results);
END
} >"$TMP/script"
in_browser page "$TMP/served.html" <"$TMP/script"
grep -q "PASS to the end" "$TMP/lines"
result $? "page: to its end" "$TMP/lines"

# Answers that come late and in any order: what a panel shows may have gone when they are there.
{
	sed '/<head>/q' "$TMP/served.html"
	echo '<script>var asked = {}; window.fetch = function (path) { return new Promise(function (done) {
	asked[path.match(/^ask.q=queues|^[a-z]+/)[0]] = function (body) { done({ ok: true, status: 200, json: function () { return body; } }); }; }); };
	var broken = []; window.addEventListener("error", function (e) { broken.push(e.message); });
	window.addEventListener("unhandledrejection", function (e) { broken.push(e.reason.message); });</script>'
	sed '1,/<head>/d' "$TMP/served.html"
} >"$TMP/late.html"
cat >"$TMP/script" <<'END'
function soon() { return new Promise(function (done) { window.setTimeout(done, 5000); }); }
function answer(what, body) {
  var call = asked[what];
  delete asked[what];
  check('asks for ' + what, Boolean(call), Object.keys(asked));
  if (call) call(body);
  return soon();
}
var n = 0;
function report(name, columns, rows) {
  n++;
  return { next: n, items: [{ time: 3e9 + n, from: n > 1 ? (n - 1) * 1e9 : null, to: n * 1e9, events: 5 * n, lost: 0, tables: name ? [{ name: name,
    more: 0, rows: rows, columns: columns.map(function (one) { return { name: one[0], title: one[0], kind: one[1], unit: one[2] }; }) }] : [] }] };
}
var latency = [['start', 'label'], ['calls', 'counter'], ['latency_ns', 'histogram', 'ns']];
async function user() {
  press('e');
  press('k');
  press('ArrowLeft');
  await answer('about', { profiler: 'late', host: 'h', command: ['x'], queues: true });
  await answer('log', report('events by name', [['event', 'label'], ['events', 'counter']], [['a', 5]]));
  check('its events before there are tables', Array.from(page.views.keys()).join() === 'events by name' && text('notes') === 'asking', text('notes'));
  document.querySelector('tbody tr').click();
  var overlay = page.views.get('events by name').box.querySelector('.overlay'), area = overlay.getBoundingClientRect();
  fire('mousedown', overlay, { clientX: area.left + 20, clientY: area.top + 20 });
  var late = asked.ask, queues = asked['ask?q=queues'];
  await answer('log', report('latency', latency, [['a', 3, [[10, 3]]]]));
  fire('mouseup', overlay, { clientX: area.left + 20, clientY: area.top + 20 });
  await soon();
  check('then only the tables', Array.from(page.views.keys()).join() === 'latency' && document.querySelectorAll('#tables section').length === 1 &&
    charts.list.length === 2, Array.from(page.views.keys()));
  late({ items: [{ title: null, text: 'late' }], more: 0, notes: [], gone: null });
  queues({ queues: { from: 3e9, to: 3e9 + 1, cpus: [[0, [1], [1]]] }, notes: [] });
  await soon();
  check('an answer that nobody waits for is not shown', text('lines') !== 'late', text('lines'));
  check('run queues that come late', runQueues.view.strips.cpus.length === 1 && !document.getElementById('queues').hidden, '');
  press('k');
  press('e');
  var bucket = asked.ask;
  await answer('log', report('latency', latency.slice(0, 2), [['a', 4]]));
  check('a table without its histogram', !charts.isHeat(page.views.get('latency')), text('tables'));
  bucket({ items: [], more: 0, notes: [], gone: 3e9 });
  await answer('log', report(null));
  press('a');
  await answer('log', { next: n + 1, items: [{ tables: null }] });
  check('a report that is none is an error', broken.length === 1, broken);
  check('after which the next one is asked for', Boolean(asked.log), Object.keys(asked));
}
user().catch(function (error) { check('no exception', false, error.stack); }).then(print_results);
END
browser_ms=60000 in_browser late "$TMP/late.html" <"$TMP/script"
grep -q "PASS after which" "$TMP/lines"
result $? "late: to its end" "$TMP/lines"

refused 'a wrong address' 2 'exec: --serve: ' exec --serve x:y --input "$DATA/sched.data" -e sched:sched_switch 'count()'
