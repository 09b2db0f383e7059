'use strict';
const KEEP = 20000;               // reports
const MAX_SHOWN = 200;            // rows of a table
const HEAT = ['#fff3d6', '#fee09a', '#fdc35c', '#fb9a3c', '#f26a2e', '#d63a26', '#a8162a', '#6b0a2e'];
const token = new URLSearchParams(location.search).get('token') || '';
// { time, is_wall, from, to, events, lost, tables: [{ name, columns, rows, more }] }; from, to: time in ns of the run
const reports = [];
const views = new Map();          // of tables by name: elements, sorting, the row whose chart is shown
let isWall = true;                // times are since the epoch, else of the events' own clock
let next = 0, mode = 'last', from = 0, to = 0, dragging = null, nrAsked = 0;

function element(name, parent, text, type) {
  const one = document.createElement(name);
  if (text !== undefined) one.textContent = text;
  if (type) one.className = type;
  if (parent) parent.appendChild(one);
  return one;
}
function byId(id) { return document.getElementById(id); }

// --- numbers

function clock(time) {
  if (!isWall) return time.toFixed(6) + ' s';
  const date = new Date(time * 1000);
  return date.toTimeString().slice(0, 8) + '.' + String(date.getMilliseconds()).padStart(3, '0');
}
function number(value) {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'number') return String(value);
  return Number.isInteger(value) ? String(value) : value.toFixed(Math.abs(value) < 1 ? 4 : 2);
}
function cell(column, value) {
  if (Array.isArray(value)) return value.length ? frameName(value[0]) + (value.length > 1 ? ' < ...' : '') : '';
  if (typeof value === 'number' && column.scale) return (value / column.scale).toFixed(3);
  return number(value);
}
// A bound of a histogram, 2^exponent of the column's unit.
function bound(column, exponent) {
  if (exponent < 0) return '0';
  const value = Math.pow(2, exponent);
  if (!/_ns$/.test(column.name)) return value < 1e6 ? String(value) : value.toExponential(1);
  const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'us'], [1, 'ns']];
  const unit = units.find(function (one) { return value >= one[0]; });
  return Number((value / unit[0]).toPrecision(3)) + ' ' + unit[1];
}

// --- adding up

// "ffffffff81000000 f+0x10 (/usr/lib/libx.so)" is f, or [libx.so] without a symbol.
function frameName(line) {
  const parts = line.match(/^(?:[0-9a-f]{8,16} )?(.*?)(?:\+0x[0-9a-f]+)?(?: \((.*)\))?$/);
  if (!parts) return line;
  return parts[1] === 'Unknown' && parts[2] ? '[' + parts[2].replace(/.*\//, '') + ']' : parts[1];
}
function isList(column) { return column.kind === 'none' && column.name === 'stack'; }
// What tells the rows of a table apart: their labels, and a number for further ones with the same labels.
function keysOf(table) {
  const seen = new Map();
  table.keys = table.keys || table.rows.map(function (row) {
    const labels = row.filter(function (_, i) {
      return table.columns[i].kind === 'label' || isList(table.columns[i]);
    });
    const key = JSON.stringify(labels), n = seen.get(key) || 0;
    seen.set(key, n + 1);
    return n ? JSON.stringify(labels.concat(n)) : key;
  });
  return table.keys;
}
function merge(column, a, b) {
  if (b === null) return a;
  if (a === null) return b;
  if (column.kind === 'counter') return a + b;
  if (column.kind === 'histogram') {
    const counts = new Map(a);
    b.forEach(function (one) { counts.set(one[0], (counts.get(one[0]) || 0) + one[1]); });
    return Array.from(counts).sort(function (x, y) { return x[0] - y[0]; });
  }
  if (/^min/.test(column.name)) return Math.min(a, b);
  if (/^(max|longest)/.test(column.name)) return Math.max(a, b);
  return b;                       // the later one
}
// The bucket in which a quantile of a histogram is: its upper bound.
function quantile(counts, fraction) {
  let total = 0, sum = 0;
  counts.forEach(function (one) { total += one[1]; });
  for (const one of counts) {
    sum += one[1];
    if (sum >= fraction * total) return one[0] + 1;
  }
  return 0;
}
function selected() {
  if (mode === 'last') {
    const filled = reports.filter(function (one) { return one.tables.length > 0; });
    return filled.slice(-1);
  }
  if (mode === 'all') return reports;
  return reports.filter(function (one) { return one.time >= from && one.time <= to; });
}
// The table of a name, added up over reports.
function addUp(name, list) {
  const sum = { name: name, columns: null, rows: new Map(), reports: 0, more: 0 };
  list.forEach(function (report) {
    report.tables.forEach(function (table) {
      if (table.name !== name) return;
      sum.columns = table.columns;
      sum.reports++;
      sum.more = Math.max(sum.more, table.more);
      const keys = keysOf(table);
      table.rows.forEach(function (row, at) {
        const key = keys[at], known = sum.rows.get(key);
        sum.rows.set(key, known ? known.map(function (value, i) { return merge(table.columns[i], value, row[i]); })
          : row.slice());
      });
    });
  });
  return sum;
}

// --- charts: one column of pixels or more per report

function chartData(name, view) {
  const data = [];
  reports.forEach(function (report) {
    const one = { time: report.time, value: 0, counts: new Map() };
    report.tables.forEach(function (table) {
      if (table.name !== name) return;
      const hist = table.columns.findIndex(function (column) { return column.kind === 'histogram'; });
      const at = table.columns.findIndex(function (column) { return column.name === view.charted; });
      const keys = view.focus && keysOf(table);
      table.rows.forEach(function (row, i) {
        if (view.focus && keys[i] !== view.focus) return;
        if (hist >= 0 && row[hist]) {
          row[hist].forEach(function (pair) {
            one.counts.set(pair[0], (one.counts.get(pair[0]) || 0) + pair[1]);
          });
        }
        if (at >= 0 && typeof row[at] === 'number') one.value += row[at];
      });
    });
    data.push(one);
  });
  return data;
}
function shade(count, max) {
  return HEAT[max <= 1 ? HEAT.length - 1 : Math.round(Math.log(count) / Math.log(max) * (HEAT.length - 1))];
}
const LEFT = 70;
function drawChart(name, view) {
  const canvas = view.canvas, width = canvas.clientWidth || 900, data = chartData(name, view);
  const hist = view.columns.find(function (column) { return column.kind === 'histogram'; });
  const isHeat = Boolean(hist) && !view.plain, height = isHeat ? 180 : 90;
  canvas.width = width;
  canvas.height = height;
  canvas.style.height = height + 'px';
  const paint = canvas.getContext('2d'), wide = (width - LEFT) / Math.max(data.length, 1);
  paint.font = '11px system-ui, sans-serif';
  view.data = data;
  view.x = function (i) { return LEFT + i * wide; };
  view.at = function (x) { return Math.min(data.length - 1, Math.max(0, Math.floor((x - LEFT) / wide))); };
  if (isHeat) {
    let low = 64, high = -2, max = 1;
    data.forEach(function (one) {
      one.counts.forEach(function (count, exponent) {
        low = Math.min(low, exponent);
        high = Math.max(high, exponent);
        max = Math.max(max, count);
      });
    });
    const rows = Math.max(high - low + 1, 1), tall = height / rows;
    view.exponent = function (y) { return low + Math.floor((height - y) / tall); };
    data.forEach(function (one, i) {
      one.counts.forEach(function (count, exponent) {
        paint.fillStyle = shade(count, max);
        paint.fillRect(view.x(i), height - (exponent - low + 1) * tall, Math.max(wide, 1), Math.ceil(tall));
      });
    });
    paint.fillStyle = '#555';
    for (let e = low; e <= high; e += Math.ceil(rows / 8)) {
      paint.fillText(bound(hist, e), 2, height - (e - low) * tall - 2);
    }
  } else {
    const max = data.reduce(function (most, one) { return Math.max(most, one.value); }, 0);
    view.exponent = null;
    paint.fillStyle = '#48c';
    data.forEach(function (one, i) {
      const tall = max > 0 ? Math.max(one.value, 0) / max * (height - 14) : 0;
      paint.fillRect(view.x(i), height - tall, Math.max(wide - (wide > 4 ? 1 : 0), 1), tall);
    });
    paint.fillStyle = '#555';
    const column = view.columns.find(function (other) { return other.name === view.charted; });
    if (column) paint.fillText(cell(column, max), 2, 11);
  }
  let range = null;
  if (dragging && dragging.view === view) range = [dragging.from, dragging.to];
  else if (mode === 'range') {
    const inside = data.map(function (one, i) { return one.time >= from && one.time <= to ? i : -1; })
      .filter(function (i) { return i >= 0; });
    if (inside.length) range = [inside[0], inside[inside.length - 1]];
  }
  if (range) {
    const a = view.x(Math.min(range[0], range[1])), b = view.x(Math.max(range[0], range[1]) + 1);
    paint.fillStyle = 'rgba(0,102,204,.18)';
    paint.fillRect(a, 0, b - a, height);
    paint.strokeStyle = '#06c';
    paint.strokeRect(a + .5, .5, b - a - 1, height - 1);
  }
}
function pointAt(view, event) {
  const box = view.canvas.getBoundingClientRect();
  return { i: view.at(event.clientX - box.left), y: event.clientY - box.top };
}
function listen(view) {
  view.canvas.addEventListener('mousedown', function (event) {
    const at = pointAt(view, event);
    dragging = { view: view, from: at.i, to: at.i, exponent: view.exponent && view.exponent(at.y) };
    event.preventDefault();
  });
  view.canvas.addEventListener('mousemove', function (event) {
    if (dragging || !view.data.length) return;
    const at = pointAt(view, event), one = view.data[at.i];
    let text = clock(one.time);
    if (view.exponent) {
      const hist = view.columns.find(function (column) { return column.kind === 'histogram'; });
      const e = view.exponent(at.y);
      text += ', ' + bound(hist, e) + ' to ' + bound(hist, e + 1) + ': ' + (one.counts.get(e) || 0);
    } else {
      const column = view.columns.find(function (other) { return other.name === view.charted; });
      text += ', ' + (column ? column.title + ' ' + cell(column, one.value) : '');
    }
    view.hint.textContent = text;
  });
}
document.addEventListener('mousemove', function (event) {
  if (!dragging) return;
  dragging.to = pointAt(dragging.view, event).i;
  drawChart(dragging.view.name, dragging.view);
});
document.addEventListener('mouseup', function () {
  if (!dragging) return;
  const view = dragging.view, data = view.data, exponent = dragging.exponent;
  const a = Math.min(dragging.from, dragging.to), b = Math.max(dragging.from, dragging.to);
  dragging = null;
  if (!data.length) return;
  const count = a === b && exponent !== null && data[a].counts.get(exponent);
  select('range', data[a].time, data[b].time);
  if (count) askEvents({ view: view, exponent: exponent, count: count });
});

// --- the events behind the selected time, or behind a bucket { view, exponent, count } of one report

// What the row whose chart is shown says about the events of its pairs.
function pairOf(view) {
  const names = view.columns.filter(function (column) { return column.kind === 'label' || isList(column); });
  const values = view.focus ? JSON.parse(view.focus) : [], found = {};
  names.forEach(function (column, i) {
    if (['start', 'stop'].includes(column.name) && typeof values[i] === 'string') found[column.name] = values[i];
  });
  return found;
}
function askEvents(bucket) {
  const list = selected();
  if (!list.length) return;
  const last = list[list.length - 1], question = new URLSearchParams({ n: Date.now() + '.' + ++nrAsked, to: last.to });
  let title = 'Events until ' + clock(last.time);
  if (list[0].from !== null) {
    question.set('from', list[0].from);
    title = 'Events from ' + clock(list[0].time - (list[0].to - list[0].from) / 1e9) + ' to ' + clock(last.time);
  }
  if (bucket) {
    const hist = bucket.view.columns.find(function (column) { return column.kind === 'histogram'; });
    title += ', ' + bucket.view.name + ' of ' + bound(hist, bucket.exponent) + ' to ' +
      bound(hist, bucket.exponent + 1);
    const pair = pairOf(bucket.view);
    // Pairs are known by how long they took.
    question.set('bucket', /_ns$/.test(hist.name) ? bucket.exponent : 'other');
    Object.keys(pair).forEach(function (name) { question.set(name, pair[name]); });
  }
  // Below the chart that was clicked, which stays where it is.
  if (bucket) bucket.view.hint.after(byId('events'));
  else byId('tables').before(byId('events'));
  byId('events').hidden = false;
  byId('asked').textContent = title;
  byId('notes').textContent = 'asking';
  byId('lines').textContent = '';
  const asked = nrAsked;
  let pause = 100;                // ms
  function request() {
    return get('ask?q=' + encodeURIComponent(question)).then(function (answer) {
      if (asked !== nrAsked) return;
      if (answer) return showEvents(answer, bucket);
      // Many pages that ask at once must not do so in step, nor all the time.
      const wait = pause * (0.5 + Math.random());
      pause = Math.min(pause * 1.5, 2000);
      return new Promise(function (done) { window.setTimeout(done, wait); }).then(request);
    });
  }
  request().catch(function (error) {
    if (asked !== nrAsked) return;
    byId('notes').textContent = error instanceof TypeError ? 'the run has ended: nobody can be asked' : error.message;
  });
}
function showEvents(answer, bucket) {
  const notes = answer.notes.slice(), n = answer.items.length + answer.more, lines = byId('lines');
  if (answer.gone !== null) notes.unshift('events until ' + clock(answer.gone) + ' are not kept any more');
  if (answer.more) notes.unshift('the first ' + answer.items.length + ' of ' + n);
  if (bucket && answer.items.some(function (item) { return item.title !== null; })) {
    notes.unshift(n + ' kept, ' + bucket.count + ' in the bucket');
  }
  if (!n) notes.unshift('none is kept');
  byId('notes').textContent = notes.join('; ');
  lines.textContent = '';
  answer.items.forEach(function (item) {
    if (item.title !== null) element('b', lines, item.title);
    lines.appendChild(document.createTextNode(item.text));
  });
}
byId('ask').addEventListener('click', function () { askEvents(null); });
function hideEvents() {
  nrAsked++;                      // what is being asked is not shown any more
  byId('events').hidden = true;
}
byId('close').addEventListener('click', hideEvents);

// --- flame graphs of tables with stacks

function drawFlame(view, sum) {
  const stackAt = sum.columns.findIndex(isList);
  const valueAt = sum.columns.findIndex(function (column) { return column.kind === 'counter'; });
  const commAt = sum.columns.findIndex(function (column) { return column.kind === 'label'; });
  view.flame.textContent = '';
  view.flame.hidden = stackAt < 0 || valueAt < 0;
  if (view.flame.hidden) return;
  const root = { name: 'all', value: 0, children: new Map() };
  sum.rows.forEach(function (row) {
    if (!Array.isArray(row[stackAt]) || typeof row[valueAt] !== 'number') return;
    const frames = row[stackAt].map(frameName).reverse();
    if (commAt >= 0) frames.unshift(String(row[commAt]));
    let node = root;
    node.value += row[valueAt];
    frames.forEach(function (name) {
      if (!node.children.has(name)) node.children.set(name, { name: name, value: 0, children: new Map() });
      node = node.children.get(name);
      node.value += row[valueAt];
    });
  });
  let depth = 0;
  function drawFrame(node, left, width, level, path) {
    if (width < 0.1) return;
    depth = Math.max(depth, level + 1);
    const box = element('div', view.flame, node.name);
    box.style.left = left + '%';
    box.style.width = width + '%';
    box.style.top = level * 17 + 'px';
    let hash = 0;
    for (const letter of node.name) hash = (hash * 31 + letter.charCodeAt(0)) % 997;
    box.style.background = 'hsl(' + (10 + hash % 45) + ',85%,' + (62 + hash % 16) + '%)';
    box.title = node.name + ': ' + number(node.value) + ' (' + (100 * node.value / root.value).toFixed(1) + ' %)';
    box.addEventListener('click', function () { view.zoom = path; drawFlame(view, sum); });
    let at = left;
    Array.from(node.children.values()).sort(function (a, b) { return b.value - a.value; }).forEach(function (child) {
      const share = width * child.value / node.value;
      drawFrame(child, at, share, level + 1, path.concat(child.name));
      at += share;
    });
  }
  let top = root, path = [];
  (view.zoom || []).every(function (name) {
    const child = top.children.get(name);
    if (child) { top = child; path = path.concat(name); }
    return Boolean(child);
  });
  if (root.value > 0) {
    if (top === root) drawFrame(root, 0, 100, 0, []);
    else {
      const box = element('div', view.flame, 'all (click to leave ' + top.name + ')');
      box.style.cssText = 'left:0;width:100%;top:0;background:#ddd';
      box.addEventListener('click', function () { view.zoom = null; drawFlame(view, sum); });
      drawFrame(top, 0, 100, 1, path);
    }
  }
  view.flame.style.height = depth * 17 + 'px';
}

// --- tables

function viewOf(name, columns) {
  let view = views.get(name);
  if (!view) {
    view = { name: name, sort: null, down: true, focus: null, plain: false, zoom: null, columns: columns, data: [] };
    const box = element('section', byId('tables'));
    view.heading = element('h2', box, name);
    view.canvas = element('canvas', box);
    view.hint = element('div', box, '', 'hint');
    view.flame = element('div', box, undefined, 'flame');
    view.table = element('table', box);
    view.table.dataset.name = name;
    view.rest = element('div', box, '', 'hint');
    listen(view);
    views.set(name, view);
  }
  view.columns = columns;
  const charted = columns.find(function (column) { return column.name === view.charted; });
  if (!charted) {
    const first = columns.find(function (column) { return column.kind === 'counter'; }) ||
      columns.find(function (column) { return column.kind === 'gauge'; });
    view.charted = first ? first.name : null;
  }
  return view;
}
function compare(a, b) {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  return String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
}
function drawTable(view, sum) {
  const shown = sum.columns.map(function (column, i) { return { column: column, i: i }; }).filter(function (one) {
    return one.column.kind !== 'histogram' && (one.column.kind !== 'none' || isList(one.column));
  });
  const hist = sum.columns.findIndex(function (column) { return column.kind === 'histogram'; });
  const rows = Array.from(sum.rows.entries());
  const sortAt = sum.columns.findIndex(function (column) { return column.name === view.sort; });
  if (sortAt >= 0) {
    rows.sort(function (a, b) { return compare(a[1][sortAt], b[1][sortAt]) * (view.down ? -1 : 1); });
  }
  view.table.textContent = '';
  const head = element('tr', element('thead', view.table));
  shown.forEach(function (one) {
    const mark = view.sort === one.column.name ? (view.down ? ' ▾' : ' ▴') : '';
    const th = element('th', head, one.column.title + mark,
      one.column.kind === 'label' || isList(one.column) ? 'text' : '');
    th.dataset.name = one.column.name;
    th.addEventListener('click', function () {
      view.down = view.sort === one.column.name ? !view.down : one.column.kind !== 'label';
      view.sort = one.column.name;
      const numeric = one.column.kind === 'counter' || one.column.kind === 'gauge';
      if (numeric) view.charted = one.column.name;
      view.plain = numeric;
      draw();
    });
  });
  const body = element('tbody', view.table);
  rows.slice(0, MAX_SHOWN).forEach(function (entry) {
    const tr = element('tr', body, undefined, view.focus === entry[0] ? 'on' : '');
    tr.addEventListener('click', function () {
      view.focus = view.focus === entry[0] ? null : entry[0];
      view.plain = hist >= 0 ? false : view.plain;
      draw();
    });
    shown.forEach(function (one) {
      const value = entry[1][one.i], column = one.column, part = column.name.match(/^p(\d+)/);
      // Quantiles cannot be added up: the histogram says in which bucket they are.
      const text = part && hist >= 0 && sum.reports > 1 && entry[1][hist] ?
        '≤ ' + bound(sum.columns[hist], quantile(entry[1][hist], Number('0.' + part[1]))) : cell(column, value);
      const td = element('td', tr, text, typeof value === 'string' || Array.isArray(value) ? 'text' : '');
      td.dataset.name = column.name;
    });
  });
  const cut = sum.more && sum.reports > 1 ? 'each report has only its first rows' : '';
  const hidden = Math.max(rows.length - MAX_SHOWN, 0) + (cut ? 0 : sum.more);
  view.rest.textContent = [hidden ? hidden + ' more rows' : '', cut].filter(Boolean).join('; ');
}
function draw() {
  const list = selected(), names = [];
  reports.forEach(function (report) {
    report.tables.forEach(function (table) {
      if (!names.includes(table.name)) names.push(table.name);
      viewOf(table.name, table.columns);
    });
  });
  byId('last').className = mode === 'last' ? 'on' : '';
  byId('all').className = mode === 'all' ? 'on' : '';
  byId('range').textContent = !list.length ? (reports.length ? 'nothing was reported' : 'no report yet') :
    mode === 'last' ? 'until ' + clock(list[0].time) :
      clock(list[0].time) + ' to ' + clock(list[list.length - 1].time) + ', ' + list.length + ' reports';
  names.forEach(function (name) {
    const view = views.get(name), sum = addUp(name, list);
    drawChart(name, view);
    if (!sum.columns) {
      view.table.textContent = '';
      view.flame.textContent = '';
      view.rest.textContent = 'no rows in this time';
      return;
    }
    drawTable(view, sum);
    drawFlame(view, sum);
  });
  const newest = reports[reports.length - 1];
  if (newest) {
    byId('totals').textContent = newest.events + ' events' + (newest.lost ? ', ' + newest.lost + ' lost' : '');
    byId('totals').className = newest.lost ? 'lost' : '';
  }
}

// --- what is selected, also in the address: #all, #FROM-TO in seconds since the epoch

function select(what, a, b) {
  hideEvents();
  mode = what;
  from = a || 0;
  to = b || 0;
  history.replaceState(null, '', what === 'last' ? '#' : what === 'all' ? '#all' : '#' + from + '-' + to);
  draw();
}
function readAddress() {
  const range = location.hash.match(/^#([\d.]+)-([\d.]+)$/);
  if (range) { mode = 'range'; from = Number(range[1]); to = Number(range[2]); }
  else mode = location.hash === '#all' ? 'all' : 'last';
}
byId('last').addEventListener('click', function () { select('last'); });
byId('all').addEventListener('click', function () { select('all'); });
window.addEventListener('hashchange', function () { readAddress(); draw(); });
window.addEventListener('resize', draw);

// --- reports arrive

function add(items) {
  items.forEach(function (item) {
    reports.push(item);
    isWall = item.is_wall !== false;
  });
  if (reports.length > KEEP) reports.splice(0, reports.length - KEEP);
  if (items.length && !dragging) draw();
}
function setState(text, is_over) {
  byId('state').textContent = text;
  byId('state').className = is_over ? 'ended' : '';
}
// Returns null where the same is to be asked again: the answer is not ready (202), or too many ask (503).
function get(path) {
  return fetch(path + (path.includes('?') ? '&' : '?') + 'token=' + encodeURIComponent(token), { cache: 'no-store' })
    .then(function (answer) {
      if (answer.status === 202 || answer.status === 503) return null;
      if (!answer.ok) throw new Error('the server answered ' + answer.status);
      return answer.json();
    });
}
// What a request that failed says: without an answer nobody is there.
function failed(error) {
  setState(error instanceof TypeError ? 'the run has ended' : error.message, true);
}
function poll() {
  get('log?after=' + next).then(function (answer) {
    next = answer.next;
    setState('running', false);
    add(answer.items);
    window.setTimeout(poll, 1000);
  }, function (error) {
    failed(error);
    window.setTimeout(poll, 5000);
  });
}
readAddress();
get('about').then(function (about) {
  byId('profiler').textContent = about.profiler;
  byId('host').textContent = about.host;
  document.title = about.profiler + ' - profscript';
  poll();
}, failed);
