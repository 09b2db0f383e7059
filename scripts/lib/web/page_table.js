'use strict';
/* global units, model */
/* exported tables */
// Tables of what the selected time adds up to, beside the time before.
const tables = (function () {
  const MAX_SHOWN = 200;          // rows
  const isText = column => column.kind === 'label' || model.isList(column);
  const isNumber = column => column.kind === 'counter' || column.kind === 'gauge';

  function element(name, parent, text, type) {
    const one = document.createElement(name);
    if (text !== undefined) one.textContent = text;
    if (type) one.className = type;
    return parent.appendChild(one);
  }
  function compare(a, b) {
    if (typeof a === 'number' && typeof b === 'number') return a - b;
    if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
    return String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
  }
  // Returns whether a row contains a text.
  function matcher(text) {
    const wanted = text.toLowerCase();
    return row => !wanted || row.some(value => String(value).toLowerCase().includes(wanted));
  }
  // Quantiles cannot be added up: the histogram says in which bucket they are.
  function cell(sum, row, i) {
    const column = sum.columns[i], value = row[i], part = column.name.match(/^p(\d+)/);
    const hist = model.histOf(sum.columns);
    if (part && hist >= 0 && sum.reports > 1 && row[hist]) {
      return '≤ ' + units.bound(sum.columns[hist], model.quantile(row[hist], Number('0.' + part[1])));
    }
    // Nor can averages.
    const at = name => sum.columns.findIndex(other => other.name === name);
    const total = at('total' + column.name.slice(3)), calls = at('calls');
    if (/^avg/.test(column.name) && total >= 0 && row[calls] > 0) return units.text(column, row[total] / row[calls]);
    if (Array.isArray(value)) return value.length ? model.frameName(value[0]) + (value.length > 1 ? ' < …' : '') : '';
    return units.text(column, value);
  }
  function changeOf(now, old) {
    if (!old) return now ? ['new', 'more'] : ['', ''];
    const change = 100 * (now / old - 1);
    return [(change > 0 ? '+' : '') + change.toFixed(Math.abs(change) < 10 ? 1 : 0) + ' %',
      Math.abs(change) < 1 ? '' : change > 0 ? 'more' : 'less'];
  }
  function putHead(view, shown, isCompared, on) {
    const rows = [element('tr', element('thead', view.table))];
    if (isCompared) rows.push(element('tr', view.table.tHead));
    shown.forEach(({ column }) => {
      const sorted = view.sort === column.name, wide = isCompared && isNumber(column);
      const th = element('th', rows[0], units.title(column) + (sorted ? (view.down ? ' ▾' : ' ▴') : ''),
        (isText(column) ? 'text' : '') + (view.charted === column.name && isNumber(column) ? ' on' : ''));
      th.dataset.name = column.name;
      th.tabIndex = 0;
      if (sorted) th.setAttribute('aria-sort', view.down ? 'descending' : 'ascending');
      th.addEventListener('click', () => on.sort(view, column));
      const parts = wide ? ['before', 'after'].concat(column.kind === 'counter' ? 'change' : []) : [];
      if (wide) th.colSpan = parts.length;
      else if (isCompared) th.rowSpan = 2;
      parts.forEach(part => element('th', rows[1], part, 'sub'));
    });
  }
  // One row; old: the same row of the time before, null without one; undefined if none is compared.
  function putRow(view, tr, sums, shown, row, old, seconds, most) {
    shown.forEach(({ column, i }) => {
      const number = isNumber(column), put = (text, type) => {
        const td = element('td', tr, text, type);
        td.dataset.name = column.name;
        return td;
      };
      if (old !== undefined && number) {
        const per = column.kind === 'counter', now = per ? (row[i] || 0) / seconds.now : row[i];
        const was = old && old[i] !== null ? per ? old[i] / seconds.before : old[i] : null;
        put(was === null ? '–' : per ? units.rate(column, was) : cell(sums.before, old, i), 'old');
        put(per ? units.rate(column, now) : cell(sums.now, row, i), '');
        if (per) put(...changeOf(now, was));
        return;
      }
      const td = put(cell(sums.now, row, i), typeof row[i] === 'string' || Array.isArray(row[i]) ? 'text' : '');
      if (isText(column)) td.title = Array.isArray(row[i]) ? row[i].join('\n') : '';
      if (column.kind === 'counter' && column.name === view.charted && most > 0) {
        td.classList.add('bar');
        td.style.backgroundSize = 100 * Math.max(row[i], 0) / most + '% 100%';
      }
    });
  }
  // The buckets of a table that has only a histogram.
  function drawBuckets(view, sum) {
    const counts = model.countsOf(sum), hist = sum.columns[model.histOf(sum.columns)], total = model.totalOf(counts);
    const head = element('tr', element('thead', view.table)), body = element('tbody', view.table);
    let below = 0;
    ['from', 'to', 'count', 'share', 'up to here'].forEach(name => element('th', head, name));
    counts.forEach(([e, count]) => {
      const tr = element('tr', body), share = part => (100 * part / total).toFixed(1) + ' %';
      below += count;
      [units.bound(hist, e), units.bound(hist, e + 1), units.count(count), share(count), share(below)]
        .forEach(text => element('td', tr, text));
      tr.children[2].className = 'bar';
      tr.children[2].style.backgroundSize = 100 * count / Math.max(...counts.map(one => one[1])) + '% 100%';
    });
    view.rest.textContent = '';
  }
  // The heading or the row that has the keyboard, as a test of the elements that replace it.
  function focusOf(table) {
    const { key, name } = table.contains(document.activeElement) ? document.activeElement.dataset : {};
    return key === undefined && name === undefined ? null : one => one.dataset.key === key && one.dataset.name === name;
  }
  function keepFocus(table, isHeld) {
    const held = isHeld && Array.from(table.querySelectorAll('th, tbody tr')).find(isHeld);
    if (held) held.focus({ preventScroll: true });
  }
  // sums: { now, before }; seconds: how long their times are; on: { sort(view, column), focus(view, key) }.
  function draw(view, sums, seconds, filter, on) {
    const sum = sums.now, compared = Boolean(sums.before), keep = matcher(filter), isHeld = focusOf(view.table);
    const shown = sum.columns.map((column, i) => ({ column, i })).filter(one =>
      one.column.kind !== 'histogram' && (one.column.kind !== 'none' || model.isList(one.column)));
    const rows = Array.from(sum.rows.entries());
    if (compared) {
      sums.before.rows.forEach((row, key) => {
        const gone = (value, i) => isText(sum.columns[i]) ? value : sum.columns[i].kind === 'counter' ? 0 : null;
        if (!sum.rows.has(key)) rows.push([key, row.map(gone)]);
      });
    }
    const all = rows.length;
    rows.splice(0, all, ...rows.filter(entry => keep(entry[1])));
    const chartAt = sum.columns.findIndex(column => column.name === view.charted);
    // The rows of one report are in the profiler's order, those of several have none.
    const isOwn = !view.sort && sum.reports > 1 && chartAt >= 0, sort = isOwn ? view.charted : view.sort;
    const sortAt = sum.columns.findIndex(column => column.name === sort), down = isOwn || view.down;
    if (sortAt >= 0) rows.sort((a, b) => compare(a[1][sortAt], b[1][sortAt]) * (down ? -1 : 1));
    const most = chartAt < 0 ? 0 : rows.reduce((max, entry) => Math.max(max, entry[1][chartAt] || 0), 0);
    view.table.textContent = '';
    if (!shown.length) { drawBuckets(view, sum); return; }
    putHead(view, shown, compared, on);
    const body = element('tbody', view.table);
    rows.slice(0, MAX_SHOWN).forEach(([key, row]) => {
      const tr = element('tr', body, undefined, view.focus === key ? 'on' : '');
      tr.tabIndex = 0;
      tr.dataset.key = key;
      tr.addEventListener('click', () => on.focus(view, key));
      const old = compared ? sums.before.rows.get(key) || null : undefined;
      putRow(view, tr, sums, shown, row, old, seconds, most);
    });
    keepFocus(view.table, isHeld);
    const cut = sum.more && sum.reports > 1 ? 'each report has only its first rows' : '';
    const hidden = Math.max(rows.length - MAX_SHOWN, 0) + (cut ? 0 : sum.more), out = all - rows.length;
    view.rest.textContent = [hidden ? hidden + ' more rows' : '', cut,
      out ? out + ' rows do not contain “' + filter + '”' : ''].filter(Boolean).join('; ');
  }
  return { draw, element, matcher };
}());
