'use strict';
/* global units, model, charts, flame, tables, runQueues, commands */
const page = (function () {
  const token = new URLSearchParams(location.search).get('token') || '';
  const views = new Map();        // of tables by name: elements, sorting, the row whose chart is shown
  // mode: last, all or range; range: of the selection { start, from, to }: from and to are the times of its first and
  // last report, start is when the first one began. before: the same, to compare with.
  const state = { mode: 'last', range: null, before: null, dragging: null, paused: false, filter: '', chosen: false,
    closed: false };
  const COUNTS = 'events by name'; // of a profiler without tables
  const hasTables = () => Array.from(views.keys()).some(name => name !== COUNTS);
  const element = tables.element, byId = id => document.getElementById(id);
  let next = 0, nrAsked = 0, asking = 0, about = { command: [] }, late = [], focus = null, follows = false;
  const overview = { overview: true, name: null, columns: [{ name: 'events', title: 'events', kind: 'counter' }],
    charted: 'events', plain: true, adds: true };
  const clock = time => units.clock(time, model.isWall());

  // --- what is selected

  const rangeOf = (from, to) => {
    const list = model.within({ from, to });
    return { from, to, start: list.length ? model.startOf(list[0]) : from };
  };
  // The range that tables add up; null: everything; undefined: no report.
  function selected() {
    if (state.mode === 'all') return model.reports.length ? null : undefined;
    if (state.mode === 'range') return state.range;
    const last = model.lastFilled() || model.reports[model.reports.length - 1];
    return last && { from: last.time, to: last.time, start: model.startOf(last) };
  }
  function select(mode, from, to) {
    const shown = state.asked;    // the events of a time follow; those of a bucket were of its time
    hideEvents();
    state.mode = mode;
    state.bucket = null;
    state.chosen = true;
    state.range = mode === 'range' ? rangeOf(from, to) : null;
    writeAddress();
    draw();
    if (!shown) return;
    state.asked = shown;
    byId('events').hidden = false;
    byId('notes').textContent = 'asking';
    asking = window.setTimeout(() => askEvents(null, shown.view), 200); // a key that is held asks once
  }
  // Selects the reports from one time until another one.
  function selectTimes(a, b) {
    const list = model.reports.filter(one => one.time > a && model.startOf(one) < b);
    if (list.length) select('range', list[0].time, list[list.length - 1].time);
  }
  function compare() {
    const range = selected();
    state.before = state.before || !range ? null : range;
    writeAddress();
    draw();
  }
  // Moves the selection, or its end, by a report.
  function step(by, extends_) {
    const list = model.reports, range = selected();
    if (!list.length) return;
    const at = time => list.findIndex(one => one.time >= time);
    let a = range ? at(range.from) : list.length - 1, b = range ? at(range.to) : list.length - 1;
    b = Math.min(Math.max(b + by, extends_ ? a : b - a), list.length - 1);
    a = extends_ ? a : Math.max(b - (range ? at(range.to) - at(range.from) : 0), 0);
    charts.follow(rangeOf(list[a].time, list[b].time));
    select('range', list[a].time, list[b].time);
  }
  // Goes to the next bucket of the selected time in a heat map; at first to the slowest one.
  function stepBucket(by) {
    const view = [focus].concat(Array.from(views.values())).find(one => one && charts.isHeat(one)), range = selected();
    const counts = view ? model.countsOf(view.sum, view.focus) : [];
    if (!counts.length) return;
    const known = state.bucket && state.bucket.view === view ? state.bucket.exponent : Infinity;
    const at = counts.findIndex(one => one[0] === known);
    const [exponent, count] = counts[at < 0 ? counts.length - 1 : Math.min(Math.max(at + by, 0), counts.length - 1)];
    if (state.mode === 'last') select('range', range.from, range.to); // which stays
    state.bucket = { view, exponent, count };
    view.hint.textContent = bucketText(view, exponent, count) + ' (e: its events)';
    charts.list.forEach(one => { if (one === view) charts.drawMarks(one, state); });
  }
  function bucketText(view, exponent, count) {
    const hist = view.columns[model.histOf(view.columns)];
    return units.bound(hist, exponent) + ' to ' + units.bound(hist, exponent + 1) + ': ' + count;
  }

  // --- the address: #all or #FROM-TO in seconds since the epoch, &before=FROM-TO&q=FILTER&row=TABLE,KEY and so on

  function writeAddress() {
    const more = new URLSearchParams();
    if (state.before) more.set('before', state.before.from + '-' + state.before.to);
    if (charts.zoomed()) more.set('zoom', charts.zoomed().map(time => time.toFixed(6)).join('-'));
    if (state.filter) more.set('q', state.filter);
    views.forEach(view => {
      if (view.focus) more.append('row', view.name + ',' + view.focus);
      if (view.sort) more.append('sort', view.name + ',' + (view.down ? '-' : '') + view.sort);
      if (view.search) more.append('find', view.name + ',' + view.search);
      if (view.plain && model.histOf(view.columns) >= 0) more.append('bars', view.name + ',');
    });
    const theme = document.documentElement.dataset.theme;
    if (theme) more.set('theme', theme);
    const time = state.mode === 'last' ? state.chosen ? 'last' : '' :
      state.mode === 'all' ? 'all' : state.range.from + '-' + state.range.to;
    history.replaceState(null, '', '#' + [time, more.toString()].filter(Boolean).join('&'));
  }
  let written = 0;
  function later() {
    window.clearTimeout(written);
    written = window.setTimeout(writeAddress, 300);
  }
  function readAddress() {
    const given = location.hash.slice(1), time = given.split('&')[0], more = new URLSearchParams(given);
    const times = text => (text.match(/^([\d.]+)-([\d.]+)$/) || []).slice(1).map(Number);
    const [from, to] = times(time), [a, b] = times(more.get('before') || '');
    state.chosen = Boolean(to) || time === 'all' || time === 'last';
    state.mode = to ? 'range' : time === 'all' ? 'all' : 'last';
    state.range = to ? rangeOf(from, to) : null;
    state.before = b ? rangeOf(a, b) : null;
    state.filter = more.get('q') || '';
    byId('filter').value = state.filter;
    setTheme(more.get('theme'));
    const part = times(more.get('zoom') || '');
    charts.zoom(part.length ? part : null);
    state.wanted = new Map();
    ['row', 'sort', 'find', 'bars'].forEach(name => more.getAll(name).forEach(text => {
      const at = text.indexOf(','), table = text.slice(0, at);
      state.wanted.set(table, Object.assign(state.wanted.get(table) || {}, { [name]: text.slice(at + 1) }));
    }));
    views.forEach(setWanted);
  }
  // A row as it is in the address; null: somebody has changed that.
  function rowOf(text) {
    try {
      return Array.isArray(JSON.parse(text)) ? text : null;
    } catch (error) {
      return null;
    }
  }
  // Sets what the address says of a view.
  function setWanted(view) {
    const wanted = state.wanted.get(view.name) || {}, sort = wanted.sort || '';
    Object.assign(view, { sort: sort.replace(/^-/, '') || null, down: sort[0] === '-',
      focus: rowOf(wanted.row || 'null'), plain: 'bars' in wanted, search: wanted.find || '' });
    if (view.find) view.find.value = view.search;
  }
  // Light and dark: as the system has it, or as it was chosen.
  const system = window.matchMedia('(prefers-color-scheme: dark)');
  function setTheme(name) {
    if (name) document.documentElement.dataset.theme = name;
    else delete document.documentElement.dataset.theme;
    document.documentElement.classList.toggle('dark', name ? name === 'dark' : system.matches);
  }
  function switchTheme() {
    setTheme(document.documentElement.classList.contains('dark') ? 'light' : 'dark');
    writeAddress();
    draw();
  }

  // --- the events behind the selected time, or behind a bucket { view, exponent, count } of one report

  // The values of the labels of a row by the names of their columns.
  function labelsOf(view) {
    const names = view.columns.filter(column => column.kind === 'label' || model.isList(column));
    const values = view.focus ? JSON.parse(view.focus) : [];
    return names.map((column, i) => [column.name, values[i]])
      .filter(one => one[1] !== undefined && !Array.isArray(one[1]));
  }
  function questionOf(list, bucket, view) {
    const last = list[list.length - 1];
    const question = new URLSearchParams({ n: Date.now() + '.' + ++nrAsked, to: last.to });
    let title = 'Events until ' + clock(last.time);
    if (list[0].from !== null) {
      question.set('from', list[0].from);
      title = 'Events from ' + clock(model.startOf(list[0])) + ' to ' + clock(last.time);
    }
    if (bucket) {
      const hist = view.columns[model.histOf(view.columns)];
      title += ', ' + view.name + ' of ' + units.bound(hist, bucket.exponent) + ' to ' +
        units.bound(hist, bucket.exponent + 1);
      // Pairs are known by how long they took.
      question.set('bucket', /_ns$/.test(hist.name) ? bucket.exponent : 'other');
    }
    if (view) {
      const pair = labelsOf(view).filter(one => one[0] === 'start' || one[0] === 'stop');
      pair.forEach(one => question.set(one[0], one[1]));
      if (!pair.length) labelsOf(view).forEach(one => { question.append('has', one[1]); title += ', ' + one[1]; });
    }
    if (follows) question.set('last', 1);
    return { question, title };
  }
  // Asks the run until it answers, or until the answer is not wanted any more: then there is none.
  function ask(question, isWanted) {
    let interval = 100;           // ms
    const request = () => get('ask?q=' + encodeURIComponent(question)).then(answer => {
      if (!isWanted()) return null;
      if (answer) return answer;
      // Many pages that ask at once must not do so in step, nor all the time.
      const wait = interval * (0.5 + Math.random());
      interval = Math.min(interval * 1.5, 2000);
      return new Promise(done => window.setTimeout(done, wait)).then(request);
    });
    return request();
  }
  function askEvents(bucket, view) {
    const range = selected(), list = range === undefined ? [] : model.within(range);
    if (!list.length) return;
    const { question, title } = questionOf(list, bucket, view);
    window.clearTimeout(asking);
    // Below the chart that was clicked, which stays where it is.
    if (view) view.hint.after(byId('events'));
    else byId('tables')[hasTables() ? 'before' : 'after'](byId('events'));
    if (!follows || byId('events').hidden) {
      byId('notes').textContent = 'asking';
      byId('lines').textContent = '';
    }
    byId('events').hidden = false;
    state.asked = bucket || follows ? null : { view };
    byId('asked').textContent = title;
    const asked = nrAsked;
    ask(question, () => asked === nrAsked).then(answer => {
      if (answer) showEvents(answer, bucket);
    }).catch(error => {
      if (asked !== nrAsked) return;
      byId('notes').textContent = error instanceof TypeError ? 'the run has ended: nobody can be asked' : error.message;
    });
  }
  function showEvents(answer, bucket) {
    const notes = answer.notes.slice(), n = answer.items.length + answer.more, lines = byId('lines');
    if (answer.gone !== null) notes.unshift('events until ' + clock(answer.gone) + ' are not kept any more');
    if (answer.more) notes.unshift('the ' + (follows ? 'last ' : 'first ') + answer.items.length + ' of ' + n);
    if (bucket && answer.items.some(item => item.title !== null)) {
      notes.unshift(n + ' kept, ' + bucket.count + ' in the bucket');
    }
    if (!n) notes.unshift('none is kept');
    byId('notes').textContent = notes.join('; ');
    lines.textContent = '';
    answer.items.forEach(item => {
      if (item.title !== null) element('b', lines, item.title);
      lines.appendChild(document.createTextNode(item.text));
    });
  }
  function hideEvents() {
    nrAsked++;                    // what is being asked is not shown any more
    window.clearTimeout(asking);
    follows = false;
    state.asked = null;
    byId('events').hidden = true;
  }

  // Those of the bucket or of the row that is selected, else all of the time.
  function askSelected() {
    const bucket = state.bucket;
    askEvents(bucket, bucket ? bucket.view : focus && focus.focus ? focus : null);
  }
  function close() {
    state.closed = true;
    hideEvents();
  }

  // --- drawing

  const onChart = {
    select(view, a, b, isEnd) {
      state.dragging = isEnd ? null : view;
      if (isEnd) { selectTimes(Math.min(a, b), Math.max(a, b)); return; }
      const list = model.reports.filter(one => one.time > a && model.startOf(one) < b);
      if (!list.length) return;
      state.range = { from: list[0].time, to: list[list.length - 1].time, start: a };
      charts.list.forEach(one => { if (one !== view && !one.unused) charts.drawMarks(one, state); });
    },
    click(view, at) {
      state.dragging = null;
      const report = model.reports[at.nr];
      if (!report) return;
      const exponent = view.exponent ? view.exponent(at.y) : null;
      const point = view.series.points[at.nr]; // none yet, of a report that came while the button was pressed
      const count = exponent !== null && point && point.counts.get(exponent);
      select('range', report.time, report.time);
      if (count) askEvents({ exponent, count }, view);
    },
    hover(view, at) {
      const point = view.series.points[at.nr], report = model.reports[at.nr];
      if (!point) return;
      let text = clock(report.time);
      if (view === runQueues.view) text = clock(at.time) + runQueues.textAt(at.time, at.y);
      else if (view.overview) text += ', ' + report.count + ' events';
      else if (view.exponent) {
        const e = view.exponent(at.y);
        text += ', ' + bucketText(view, e, point.counts.get(e) || 0);
      } else {
        const column = charts.columnOf(view);
        text += column ? ', ' + units.title(column) + ' ' + units.text(column, point.value) : '';
      }
      view.hint.textContent = text;
    },
    redraw: () => { later(); draw(); },
  };
  const onTable = {
    sort(view, column) {
      view.down = view.sort === column.name ? !view.down : column.kind !== 'label';
      view.sort = column.name;
      const numeric = column.kind === 'counter' || column.kind === 'gauge';
      if (numeric) view.charted = column.name;
      view.plain = numeric;
      writeAddress();
      draw();
    },
    focus(view, key) {
      view.focus = view.focus === key ? null : key;
      if (model.histOf(view.columns) >= 0) view.plain = false;
      focus = view;
      writeAddress();
      draw();
    },
  };
  function makeView(name, columns) {
    const view = { name, zoom: null, columns, charted: null };
    setWanted(view);
    const box = view.section = element('section', byId('tables')), head = element('div', box, undefined, 'head');
    element('h2', head, name);
    view.about = element('span', head, '', 'hint');
    element('span', head, undefined, 'fill');
    view.row = element('button', head, '', 'small on');
    view.row.addEventListener('click', () => onTable.focus(view, view.focus));
    view.ask = element('button', head, 'Events of this row', 'small');
    view.ask.addEventListener('click', () => askEvents(null, view));
    view.scale = element('span', head, undefined, 'hint');
    view.draw = element('button', head, '', 'small');
    view.draw.addEventListener('click', () => { view.plain = !view.plain; writeAddress(); draw(); });
    charts.create(view, box, onChart);
    view.hint = element('div', box, '', 'hint');
    view.flameHead = element('div', box, undefined, 'head');
    view.find = element('input', view.flameHead);
    Object.assign(view.find, { type: 'search', placeholder: 'Search stacks', value: view.search });
    view.find.setAttribute('aria-label', 'Search stacks');
    view.find.addEventListener('input', () => { view.search = view.find.value; writeAddress(); draw(); });
    view.flameNote = element('span', view.flameHead, '', 'hint');
    view.flame = element('div', box, undefined, 'flame');
    view.table = element('table', element('div', box, undefined, 'scroll'));
    view.table.dataset.name = name;
    view.rest = element('div', box, '', 'hint');
    views.set(name, view);
    return view;
  }
  function viewOf(name, columns) {
    const view = views.get(name) || makeView(name, columns);
    view.columns = columns;
    if (!charts.columnOf(view)) {
      const sorted = columns.find(column => column.name === view.sort && /counter|gauge/.test(column.kind));
      const first = sorted || flame.has(columns) && columns[flame.valueColumn(columns)] ||
        columns.find(column => column.kind === 'counter') || columns.find(column => column.kind === 'gauge');
      view.charted = first ? first.name : null;
    }
    return view;
  }
  function drawHead(view, sums) {
    const counts = model.countsOf(sums.now, view.focus), hist = view.columns[model.histOf(view.columns)];
    const column = charts.columnOf(view), heat = charts.isHeat(view);
    const bound = q => '≤ ' + units.bound(hist, model.quantile(counts, q));
    view.about.textContent = !heat ? column ? units.title(column) + (view.adds ? ' per second' : '') : '' :
      counts.length ? model.totalOf(counts) + ' values, p50 ' + bound(0.5) + ', p90 ' + bound(0.9) +
        ', p99 ' + bound(0.99) + ', max ' + bound(1) : 'no values in this time';
    view.row.hidden = view.ask.hidden = !view.focus;
    view.row.textContent = (labelsOf(view).map(one => one[1]).join(' ') || 'this row') + ' ✕';
    view.row.title = 'Show all rows';
    view.draw.hidden = !hist || !column;
    view.draw.textContent = heat ? 'Bars' : 'Heat map';
    view.scale.textContent = '';
    if (heat) {
      view.scale.append('— p50  ┄ p99   1');
      element('i', view.scale, undefined, 'ramp').style.background = charts.ramp();
      view.scale.append(String(view.max || 1));
    }
  }
  function drawView(view, range, seconds) {
    const sums = { now: model.addUp(view.name, range, view.sum), before: null };
    view.sum = sums.now;
    if (state.before) sums.before = view.sumBefore = model.addUp(view.name, state.before, view.sumBefore);
    const { now, before } = sums;
    // Rows of other columns cannot be compared.
    if (before && (!before.columns || now.columns && before.shape !== now.shape)) {
      sums.before = Object.assign({}, before, { columns: now.columns || view.columns, rows: new Map() });
    }
    charts.draw(view, state, sums);
    drawHead(view, sums);
    const isFlame = Boolean(sums.now.columns) && flame.has(sums.now.columns);
    view.flame.hidden = view.flameHead.hidden = !isFlame;
    if (!sums.now.columns) {
      view.table.textContent = '';
      view.rest.textContent = 'no rows in this time: the profiler reported none, ' +
        model.within(range).reduce((sum, one) => sum + one.count, 0) + ' events were seen';
      return;
    }
    tables.draw(view, sums, seconds, state.filter, onTable);
    const keep = tables.matcher(state.filter), stack = view.columns.findIndex(model.isList);
    const focused = view.focus && labelsOf(view)[0];
    if (isFlame) {
      flame.draw(view, sums, row => keep(row) && (!focused || row.includes(focused[1])) && row[stack] !== null);
    }
  }
  function emptyState() {
    if (!model.reports.length) return 'No report yet: the first one comes at the end of the interval.';
    if (hasTables()) {
      return model.reports.some(report => report.events) ? '' :
        'No event comes here: the tables are counts and sums of the kernel.';
    }
    return model.reports[model.reports.length - 1].events ? 'This profiler prints events, no tables: ' +
      'the newest ones are at the end of the page.' : 'No event yet, nothing to report.';
  }
  // What stands in for tables until the first one comes.
  function removeCounts() {
    const view = views.get(COUNTS);
    if (follows) hideEvents();
    byId('tables').after(byId('events'));
    charts.remove(view);
    view.section.remove();
    views.delete(COUNTS);
    if (focus === view) focus = null;
  }
  function rangeText(range) {
    if (range === undefined) return 'no report yet';
    const list = model.within(range), last = list[list.length - 1];
    if (!list.length) return 'no report in this time';
    const span = list.length === 1 ? (state.mode === 'last' ? 'until ' : '') : clock(list[0].time) + ' to ';
    return span + clock(last.time) + ', ' + list.length + (list.length === 1 ? ' report' : ' reports') +
      (state.before ? '; before: ' + clock(state.before.start) + ' to ' + clock(state.before.to) : '');
  }
  function draw() {
    if (document.hidden && views.size) return;
    const wide = document.body.clientWidth;
    drawAll();
    if (document.body.clientWidth !== wide) drawAll(); // a scroll bar has come or gone
  }
  function drawAll() {
    model.reports.slice(-1).concat(model.lastFilled() || []).forEach(report =>
      report.tables.forEach(table => viewOf(table.name, table.columns)));
    if (views.has(COUNTS) && hasTables()) removeCounts();
    if (!state.chosen && Array.from(views.values()).some(view => flame.has(view.columns))) state.mode = 'all';
    // Until the reports of a range from the address have come, their beginning is not known.
    if (state.mode === 'range') state.range = rangeOf(state.range.from, state.range.to);
    if (state.before) state.before = rangeOf(state.before.from, state.before.to);
    const range = selected();
    byId('newest').className = state.mode === 'last' ? 'on' : '';
    byId('everything').className = state.mode === 'all' ? 'on' : '';
    byId('compare').className = state.before ? 'on' : '';
    byId('pause').className = state.paused ? 'on' : '';
    byId('range').textContent = rangeText(range);
    byId('empty').textContent = emptyState();
    const seconds = range === undefined ? {} :
      { now: model.secondsOf(range) || 1, before: state.before ? model.secondsOf(state.before) || 1 : 1 };
    charts.draw(overview, state, { now: null });
    runQueues.draw(state);
    views.forEach(view => drawView(view, range === undefined ? null : range, seconds));
    runQueues.update(question => ask(question, () => true), draw);
    const newest = model.reports[model.reports.length - 1];
    if (newest) {
      byId('totals').textContent = newest.events + ' events' + (newest.lost ? ', ' + newest.lost + ' lost' : '');
      byId('totals').className = newest.lost ? 'lost' : '';
    }
    if (!hasTables() && newest && newest.events && !state.closed && (byId('events').hidden || follows)) {
      follows = true;
      askEvents(null, null);
    }
  }

  // --- the command that gives what is seen

  function command() {
    const range = selected(), view = focus || views.values().next().value;
    return commands.text(about.command, range ? model.within(range) : [], view, view ? labelsOf(view) : []);
  }
  function copy() {
    const text = command(), done = () => { byId('copy').textContent = 'Copied'; };
    byId('copy').title = text;
    const shown = () => window.prompt('The command:', text);
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, shown);
    else shown();
    window.setTimeout(() => { byId('copy').textContent = 'Copy command'; }, 2000);
  }

  // --- the user

  function pause() {
    state.paused = !state.paused;
    const items = late;
    late = [];
    if (!state.paused) add(items);
    showState('running', false);
    draw();
  }
  const zoom = factor => {
    charts.zoomBy(factor, state.range ? (state.range.start + state.range.to) / 2 : undefined);
    later();
    draw();
  };
  const keys = {
    ArrowLeft: event => step(-1, event.shiftKey), ArrowRight: event => step(1, event.shiftKey),
    a: () => select('all'), l: () => select('last'), c: compare, e: askSelected, t: switchTheme,
    j: () => stepBucket(-1), k: () => stepBucket(1),
    ' ': pause, '/': () => byId('filter').focus(), '+': () => zoom(0.5), '-': () => zoom(2),
    Escape: () => {
      if (!byId('events').hidden) close();
      else if (charts.zoomed()) charts.zoom(null);
      else if (state.before) state.before = null;
      else return select('all');
      writeAddress();
      return draw();
    },
  };
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches('input')) {
      if (event.key === 'Escape') event.target.blur();
      return;
    }
    if (event.key === 'Enter' && event.target.matches('tr, th')) { event.target.click(); return; }
    if (!keys[event.key] || event.key === ' ' && event.target.matches('button')) return;
    event.preventDefault();
    keys[event.key](event);
  });
  const listen = (id, type, call) => byId(id).addEventListener(type, call);
  listen('newest', 'click', () => select('last'));
  listen('everything', 'click', () => select('all'));
  listen('pause', 'click', pause);
  listen('compare', 'click', compare);
  listen('ask', 'click', () => askEvents(null, null));
  listen('close', 'click', close);
  listen('copy', 'click', copy);
  listen('theme', 'click', switchTheme);
  listen('filter', 'input', () => { state.filter = byId('filter').value; writeAddress(); draw(); });
  window.addEventListener('hashchange', () => { readAddress(); draw(); });
  window.addEventListener('resize', () => draw());
  document.addEventListener('visibilitychange', () => draw());
  system.addEventListener('change', () => { setTheme(document.documentElement.dataset.theme); draw(); });

  // --- reports arrive

  function add(items) {
    if (state.paused) {
      late = late.concat(items).slice(-model.KEEP);
      showState('running', false);
      return;
    }
    model.add(items);
    if (items.length && !state.dragging) draw();
  }
  function showState(text, isOver) {
    byId('state').textContent = state.paused && !isOver ? 'paused, ' + late.length + ' new reports' : text;
    byId('state').className = isOver ? 'ended' : state.paused ? 'paused' : '';
  }
  // Returns null where the same is to be asked again: the answer is not ready (202), or too many ask (503).
  function get(path) {
    return fetch(path + (path.includes('?') ? '&' : '?') + 'token=' + encodeURIComponent(token), { cache: 'no-store' })
      .then(answer => {
        if (answer.status === 202 || answer.status === 503) return null;
        if (!answer.ok) throw new Error('the server answered ' + answer.status);
        return answer.json();
      });
  }
  // What a request that failed says: without an answer nobody is there.
  function failed(error) {
    showState(error instanceof TypeError ? 'the run has ended' : error.message, true);
  }
  function poll() {
    get('log?after=' + next).then(answer => {
      next = answer.next;
      showState('running', false);
      window.setTimeout(poll, 1000);
      add(answer.items);
    }, error => {
      failed(error);
      window.setTimeout(poll, 5000);
    });
  }
  charts.create(overview, byId('overview'), onChart);
  overview.hint = byId('seen');
  overview.sideCanvas.hidden = true;
  readAddress();
  draw();
  get('about').then(answer => {
    about = answer;
    byId('profiler').textContent = about.profiler;
    byId('host').textContent = about.host;
    document.title = about.profiler + ' - profscript';
    if (about.queues) runQueues.begin(onChart);
    poll();
  }, failed);
  return { state, views, add, draw, command, showEvents, overview };
}());
