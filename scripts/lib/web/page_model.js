'use strict';
/* exported model */
// The reports of a run, and what they add up to. A report is
// { time, is_wall, from, to, part, events, lost, tables: [{ name, columns, rows, more }] }; from, to: time in ns of the
// run; part: the same on the clock of a recording, as words of --time. A table with a time `at` is one of the earlier
// report that has this time: hrcount waits for all CPUs.
const model = (function () {
  const KEEP = 20000;             // reports
  const TOPS = 6;                 // rows with a color of their own
  const reports = [];
  let seen = 0, isWall = true;    // times are since the epoch, else of the events' own clock
  let moves = 0;                  // how many tables have come late: what was added up before lacks them

  // Puts a late table into the report that it is about, if that is known.
  function isMoved(table) {
    const about = table.at === undefined ? null :
      reports.find(one => one.to >= table.at && (one.from === null || one.from < table.at));
    if (!about) return false;
    about.tables.push(table);
    return true;
  }
  function add(items) {
    items.forEach(item => {
      const before = reports[reports.length - 1];
      item.start = item.time - (item.to - (item.from || 0)) / 1e9; // the first one begins with the run
      item.nr = seen++;
      item.count = item.events - (before ? before.events : 0);
      isWall = item.is_wall !== false;
      const stays = item.tables.filter(table => !isMoved(table));
      moves += item.tables.length - stays.length;
      item.tables = stays;
      reports.push(item);
    });
    if (reports.length > KEEP) reports.splice(0, reports.length - KEEP);
  }
  const startOf = report => report.start;
  const inside = (report, range) => !range || report.time >= range.from && report.time <= range.to;
  const within = range => reports.filter(one => inside(one, range));
  function secondsOf(range) {
    return within(range).reduce((sum, one) => sum + one.time - startOf(one), 0);
  }
  const since = nr => reports.length ? reports.slice(Math.max(0, nr - reports[0].nr)) : [];
  const lastFilled = () => {
    for (let i = reports.length - 1; i >= 0; i--) if (reports[i].tables.length) return reports[i];
    return null;
  };

  // "ffffffff81000000 f+0x10 (/usr/lib/libx.so)" is f, or [libx.so] without a symbol.
  function frameName(line) {
    const parts = line.match(/^(?:[0-9a-f]{8,16} )?(.*?)(?:\+0x[0-9a-f]+)?(?: \((.*)\))?$/);
    if (!parts) return line;
    return parts[1] === 'Unknown' && parts[2] ? '[' + parts[2].replace(/.*\//, '') + ']' : parts[1];
  }
  const isList = column => column.kind === 'none' && column.name === 'stack';
  const histOf = columns => columns.findIndex(column => column.kind === 'histogram');
  // What tells the rows of a table apart: their labels, and a number for further ones with the same labels.
  function keysOf(table) {
    if (table.keys) return table.keys;
    const known = new Map(), at = [];
    table.columns.forEach((column, i) => { if (column.kind === 'label' || isList(column)) at.push(i); });
    table.keys = table.rows.map(row => {
      const labels = at.map(i => row[i]), key = JSON.stringify(labels), n = known.get(key) || 0;
      known.set(key, n + 1);
      return n ? JSON.stringify(labels.concat(n)) : key;
    });
    return table.keys;
  }
  // The labels of a row as text.
  const labelOf = (columns, row) =>
    row.filter((value, i) => columns[i].kind === 'label' && value !== null).join(' ') || 'all';

  function addCounts(a, b) {
    const counts = new Map(a);
    b.forEach(one => counts.set(one[0], (counts.get(one[0]) || 0) + one[1]));
    return Array.from(counts).sort((x, y) => x[0] - y[0]);
  }
  function merge(column, a, b) {
    if (b === null) return a;
    if (a === null) return b;
    if (column.kind === 'counter') return a + b;
    if (column.kind === 'histogram') return addCounts(a, b);
    if (/^min/.test(column.name)) return Math.min(a, b);
    if (/^(max|longest)/.test(column.name)) return Math.max(a, b);
    return b;                     // the later one
  }
  const totalOf = counts => counts.reduce((sum, one) => sum + one[1], 0);
  // The bucket in which a quantile of a histogram is: its upper bound.
  function quantile(counts, fraction) {
    const total = totalOf(counts);
    let sum = 0;
    for (const one of counts) {
      sum += one[1];
      if (sum >= fraction * total) return one[0] + 1;
    }
    return 0;
  }
  // Whose rows can be added up: a script that is loaded again may have other columns for the same table.
  const shapeOf = columns => columns.map(column => column.name).join();
  // The tables of a name, added up over a range (null: everything), from where a sum of the same range has ended.
  function addUp(name, range, before) {
    const key = moves + ':' + (range ? range.from + '-' + range.to : 'all');
    const sum = before && before.key === key ? before :
      { key, name, columns: null, rows: new Map(), reports: 0, more: 0, next: 0 };
    since(sum.next).forEach(report => {
      if (!inside(report, range)) return;
      report.tables.forEach(table => {
        if (table.name !== name) return;
        const keys = keysOf(table), shape = shapeOf(table.columns);
        if (sum.columns && sum.shape !== shape) {
          sum.rows.clear();
          sum.reports = 0;
        }
        sum.shape = shape;
        sum.columns = table.columns;
        sum.reports++;
        sum.more = Math.max(sum.more, table.more);
        table.rows.forEach((row, at) => {
          const known = sum.rows.get(keys[at]);
          sum.rows.set(keys[at],
            known ? known.map((value, i) => merge(table.columns[i], value, row[i])) : row.slice());
        });
      });
    });
    sum.next = seen;
    return sum;
  }
  // The histogram of all rows of a sum, or of one.
  function countsOf(sum, focus) {
    if (!sum || !sum.columns) return [];
    const at = histOf(sum.columns);
    let all = [];
    sum.rows.forEach((row, key) => { if (row[at] && (!focus || key === focus)) all = addCounts(all, row[at]); });
    return all;
  }

  // --- what charts draw: for each report the values of a column, by the rows that have the most of it

  // The counts of the periods of a report, as those of hrcount.
  const periodsOf = columns => columns.findIndex(column => column.kind === 'none' && column.name === 'counts');
  // The labels of the rows that have the most of the charted column.
  function topsOf(view) {
    const key = moves + ':' + view.charted, kept = view.totals && view.totals.key === key ? view.totals :
      { key, sums: new Map(), next: 0 };
    view.totals = kept;
    since(kept.next).forEach(report => report.tables.forEach(table => {
      const at = table.columns.findIndex(column => column.name === view.charted);
      if (table.name !== view.name || at < 0) return;
      table.rows.forEach(row => {
        const label = labelOf(table.columns, row);
        if (typeof row[at] !== 'number' || kept.sums.size > KEEP && !kept.sums.has(label)) return;
        kept.sums.set(label, (kept.sums.get(label) || 0) + row[at]);
      });
    }));
    kept.next = seen;
    const list = Array.from(kept.sums).sort((a, b) => b[1] - a[1]).map(one => one[0]);
    return list.slice(0, TOPS);
  }
  function pointOf(report, view, tops) {
    const point = { report, values: new Array(tops.length + 1).fill(0), counts: new Map(), value: 0, periods: [] };
    if (view.overview) { point.values[0] = report.count; return point; }
    report.tables.forEach(table => {
      if (table.name !== view.name) return;
      const hist = histOf(table.columns), at = table.columns.findIndex(column => column.name === view.charted);
      const keys = keysOf(table), adds = at >= 0 && table.columns[at].kind === 'counter';
      const periods = adds ? periodsOf(table.columns) : -1;
      table.rows.forEach((row, i) => {
        if (view.focus && keys[i] !== view.focus) return;
        if (hist >= 0 && row[hist]) {
          row[hist].forEach(one => point.counts.set(one[0], (point.counts.get(one[0]) || 0) + one[1]));
        }
        if (at < 0 || typeof row[at] !== 'number') return;
        const top = tops.indexOf(labelOf(table.columns, row)), slot = top < 0 ? tops.length : top;
        point.values[slot] = adds ? point.values[slot] + row[at] : Math.max(point.values[slot], row[at]);
        point.value = adds ? point.value + row[at] : Math.max(point.value, row[at]);
        (row[periods] || []).forEach((count, nr) => {
          point.periods[nr] = point.periods[nr] || new Array(tops.length + 1).fill(0);
          point.periods[nr][slot] += count;
        });
      });
    });
    return point;
  }
  function series(view) {
    const tops = view.focus || view.overview ? [] : topsOf(view);
    const key = JSON.stringify([moves, view.charted, view.focus, tops]);
    if (!view.series || view.series.key !== key) view.series = { key, tops, points: [], next: 0 };
    since(view.series.next).forEach(report => view.series.points.push(pointOf(report, view, tops)));
    view.series.next = seen;
    const gone = view.series.points.length - reports.length;
    if (gone > 0) view.series.points.splice(0, gone);
    return view.series;
  }
  return { reports, add, startOf, within, secondsOf, lastFilled, frameName, isList, histOf, keysOf, labelOf, quantile,
    totalOf, addUp, periodsOf, countsOf, series, isWall: () => isWall, KEEP };
}());
