#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The timeline page in a real browser: the figures are those of perf and of the profilers, the mouse and keys work, and
# names from outside are only text.
. "$(dirname "$0")/../../../lib.sh"
. "$TOP/tests/tools/browser.sh"
page() { "$PROFSCRIPT" "${@:2}" --export "$TMP/$1.html" >"$TMP/out" 2>"$TMP/err"; }

# Who ran, according to perf's text; who waited, according to rundelay.
perf_text hogs | awk '$3 == "sched:sched_switch:" { match($0, /next_pid=[0-9]+/)
	if ($1 in since && ran[$1]) { n++; ns += $2 - since[$1] }
	since[$1] = $2; ran[$1] = substr($0, RSTART + 9, RLENGTH - 9); last = $2 }
	END { printf "var runs = %d, runNs = %d;\n", n, ns }' >"$TMP/figures.js"
"$PROFSCRIPT" rundelay -q --input "$DATA/hogs.data" --csv >"$TMP/out"
echo "var waits = $(total calls), waitNs = $(total total_ns);" >>"$TMP/figures.js"
"$PROFSCRIPT" export -q "$DATA/hogs.data" -o "$TMP/hogs.html" 2>"$TMP/err"
in_browser timeline "$TMP/hogs.html" <<END
$(cat "$TMP/figures.js")
function sum(items, has_ended) {
  var n = 0, ns = 0;
  for (var i = 0; i < items.n; i++) if (has_ended(i)) { n++; ns += items.to[i] - items.from[i]; }
  return { n: n, ns: ns };
}
var last = timeline.rows.filter(function (row) { return row.cpu !== undefined; }).map(function (row) {
  return row.layers[0].list[row.layers[0].list.length - 1]; // runs to the end
});
var ran = sum(timeline.data.runs, function (i) { return last.indexOf(i) < 0; });
var waited = sum(timeline.data.waits, function (i) { return timeline.data.waits.to[i] < timeline.data.end; });
check('runs, as perf says', ran.n === runs && ran.ns === runNs, [ran.n, runs, ran.ns, runNs]);
check('waits, as rundelay says', waited.n === waits && waited.ns === waitNs, [waited.n, waits, waited.ns, waitNs]);
$(cat <<'JS'
var all = timeline.rows.filter(function (row) { return row.label === 'waiting tasks'; })[0].layers[0].graph;
var ns = 0; // the area below the graph is the time of all waits
all.time.forEach(function (t, n) { ns += all.value[n] * ((n + 1 < all.time.length ? all.time[n + 1] : t) - t); });
var whole = 0;
for (var i = 0; i < timeline.data.waits.n; i++) whole += timeline.data.waits.to[i] - timeline.data.waits.from[i];
check('the queue is as long as there are waits', Math.abs(ns - whole) < 1, [ns, whole]);
check('no task without a name runs', timeline.threads.every(function (one) { return one.name !== '<...>'; }));

var canvas = document.getElementById('canvas'), cpu = timeline.rows.filter(function (row) { return row.label === 'CPU 0'; })[0];
var run = cpu.layers[0].list.reduce(function (a, b) { // the longest one
  var items = timeline.data.runs;
  return items.to[a] - items.from[a] >= items.to[b] - items.from[b] ? a : b;
});
var items = timeline.data.runs, middle = (items.from[run] + items.to[run]) / 2, name = timeline.threads[items.what[run]].label;
function px(t) { return 170 + (t - timeline.view.from) / (timeline.view.to - timeline.view.from) * (canvas.clientWidth - 170); }
function mouse(type, x, y, more) {
  var box = canvas.getBoundingClientRect();
  fire(type, canvas, Object.assign({ clientX: box.left + x, clientY: box.top + y }, more));
}
var y = 22 + cpu.y + 9;
mouse('mousemove', px(middle), y);
check('the mouse shows who ran', text('tip').indexOf(name + '\n') === 0 && document.getElementById('tip').style.display === 'block',
  text('tip'));
var pixel = canvas.getContext('2d').getImageData(px(middle), y, 1, 1).data;
check('something is drawn there', pixel[3] === 255 && pixel[0] + pixel[1] + pixel[2] < 750, pixel);
mouse('mousedown', px(middle), y);
mouse('mouseup', px(middle), y);
check('a click shows it below', text('details').indexOf(name + '\n') === 0 && !document.getElementById('details').hidden, text('details'));
document.getElementById('rows').dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
check('until Esc', document.getElementById('details').hidden);
// Where nobody runs, nothing is drawn, also if somebody ran before.
var gap = cpu.layers[0].list.findIndex(function (one, n, list) { return n > 0 && items.from[one] - items.to[list[n - 1]] > 2000; });
if (gap > 0) {
  timeline.show(items.to[cpu.layers[0].list[gap - 1]] + 500, items.from[cpu.layers[0].list[gap]] - 500);
  timeline.draw();
  check('no mark of what ended before the view', canvas.getContext('2d').getImageData(170, y - 5, 3, 1).data[3] === 0, gap);
}
function axis() {
  var labels = [], context = canvas.getContext('2d'), fill = context.fillText;
  context.fillText = function (label, x, y) { if (y === 11) labels.push(label); };
  timeline.draw();
  context.fillText = fill;
  return labels;
}
for (var span = timeline.data.end; span >= 1000; span /= 10) {
  timeline.show(timeline.data.end / 2, timeline.data.end / 2 + span);
  var labels = axis();
  check('labels differ at ' + Math.round(span) + ' ns', labels.length > 1 && new Set(labels).size === labels.length, labels);
}
timeline.show(0, timeline.data.end);
fire('click', document.getElementById('in'));
check('+ zooms', Math.abs(timeline.view.to - timeline.view.from - timeline.data.end / 2) < 1, timeline.view.to);
fire('click', document.getElementById('all'));
check('all shows all', timeline.view.from === 0 && timeline.view.to === timeline.data.end);
document.getElementById('rows').dispatchEvent(new WheelEvent('wheel', { deltaY: -500, ctrlKey: true, cancelable: true }));
check('ctrl+wheel zooms', timeline.view.to - timeline.view.from < timeline.data.end * 0.6);
var before = timeline.view.from;
document.getElementById('rows').dispatchEvent(new KeyboardEvent('keydown', { key: 'd' }));
check('a key moves', timeline.view.from > before);
timeline.show(0, timeline.data.end);
mouse('mousedown', 300, y, { shiftKey: true });
mouse('mousemove', 500, y);
mouse('mouseup', 500, y);
var at = function (x) { return (x - 170) / (canvas.clientWidth - 170) * timeline.data.end; };
check('shift+drag selects a range', Math.abs(timeline.view.from - at(300)) < 1e-3 * timeline.data.end
  && Math.abs(timeline.view.to - at(500)) < 1e-3 * timeline.data.end, JSON.stringify(timeline.view));
timeline.show(0, timeline.data.end);
mouse('mousedown', 500, y);
timeline.show(0, timeline.data.end / 4);
mouse('mouseup', 500, y);

var search = document.getElementById('search');
search.value = name;
search.dispatchEvent(new Event('input'));
var own = timeline.rows.filter(function (row) { return row.label === name; })[0];
var expected = own.layers.reduce(function (n, layer) { return n + layer.list.length; }, 0);
check('a search finds what a thread did', text('found').indexOf(expected + ' found') === 0,
  text('found') + ' instead of ' + expected);
search.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
check('Enter goes to the first one', text('found') === '1 of ' + expected, text('found'));
JS
)
END
loads_nothing "$TMP/hogs.html"

# Pairs and losses.
page pairs multi-trace -q --input "$DATA/sched.data" --csv -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/
in_browser pairs "$TMP/pairs.html" <<END
var ns = 0, pairs = timeline.data.pairs;
for (var i = 0; i < pairs.n; i++) ns += pairs.to[i] - pairs.from[i];
check('as many as in the table', pairs.n === $(total calls), pairs.n);
check('as long', ns === $(total total_ns), ns);
check('each is on the row of its thread', timeline.rows.reduce(function (n, row) {
  return n + row.layers.reduce(function (m, layer) {
    return m + (layer.items === pairs && row.thread !== undefined ? layer.list.length : 0);
  }, 0);
}, 0) > 0);
END
"$PROFSCRIPT" export -q "$DATA/lost.data" -o "$TMP/lost.html" 2>"$TMP/err"
in_browser losses "$TMP/lost.html" <<'END'
check('all lost events', timeline.data.losses.reduce(function (n, one) { return n + one[3]; }, 0) === 3058);
check('the page says so', text('note').indexOf('3058 events were lost') >= 0, text('note'));
var lost = timeline.data.losses[0];
timeline.show(lost[0] - 1000, lost[0] + 1000);
timeline.draw();
var row = timeline.rows.filter(function (one) { return one.cpu === lost[2]; })[0];
check('a mark on the CPU', timeline.describe(170 + (document.getElementById('canvas').clientWidth - 170) / 2,
  22 + row.y + 9)[0].indexOf(lost[3] + ' events lost') === 0);
END
"$PROFSCRIPT" export -q "$DATA/mixed.data" -o "$TMP/mixed.html" 2>"$TMP/err"
in_browser 'some threads' "$TMP/mixed.html" <<'END'
check('their switches do not tell who runs', timeline.data.runs.n === 0 && timeline.data.waits.n === 0);
check('events are ticks', timeline.data.events.n > 0);
END
in_browser stacks "$TMP/mixed.html" <<'END'
var events = timeline.data.events, with_stack = Array.from(events.stack).findIndex(function (node) { return node > 0; });
check('an event has its stack', with_stack >= 0, events.stack);
var row = timeline.rows.find(function (one) { return one.layers.some(function (layer) { return layer.list && layer.list.indexOf(with_stack) >= 0; }); });
timeline.draw();
timeline.show(events.from[with_stack] - 1000, events.from[with_stack] + 1000);
timeline.draw();
var place = (events.from[with_stack] - timeline.view.from) / (timeline.view.to - timeline.view.from);
var lines = timeline.describe(170 + place * (document.getElementById('canvas').clientWidth - 170), 22 + row.y + 2, true);
var stack = lines.filter(function (line) { return /^  /.test(line); });
check('with names', stack.length > 1 && stack.every(function (line) { return timeline.data.stacks.names.indexOf(line.slice(2)) >= 0; }), lines);
END

# A name that attacks the page.
needs_tracepoint raw_syscalls:sys_enter
name='</script><b x="'
bash -c 'printf %s "$1" >/proc/self/comm; while :; do : >/dev/null; done' bash "$name" &
hostile=$!
wait_for 20 grep -qFx "$name" /proc/$hostile/comm
page hostile trace -e raw_syscalls:sys_enter -N 50 -p $hostile
kill $hostile
check 'the data cannot end their element' test "$(grep -c '</script>' "$TMP/hostile.html")" = 2
in_browser 'a hostile name' "$TMP/hostile.html" <<END
var name = $(printf '%s' "$name" | sed 's|</|<\\/|; s/.*/'\''&'\''/');
check('its name is only text', timeline.threads.some(function (one) { return one.name === name; }),
  JSON.stringify(timeline.threads));
check('no element came of it', document.querySelectorAll('b').length === 1);
check('all events', timeline.data.events.n === 50, timeline.data.events.n);
END
