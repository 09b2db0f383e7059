'use strict';
/* exported timeline */
const timeline = (function () {
  const LABEL = 170, AXIS = 22, ROW = 18, QUEUE = 16, GAP = 4, WAIT = '#e8a33d', LOST = '#d0000040';
  const STACK = 8;                // frames of a stack beside the mouse
  const part = id => document.getElementById(id);
  const data = JSON.parse(part('data').textContent);

  function decoded(text, Type) {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Type(bytes.buffer);
  }
  for (const kind of ['runs', 'waits', 'pairs', 'events', 'counts']) {
    const items = data[kind];
    items.from = decoded(items.from, Float64Array);
    items.to = decoded(items.to, Float64Array);
    items.what = decoded(items.what, Int32Array);
    items.row = decoded(items.row, Int32Array);
  }
  data.events.stack = data.events.to; // the number of a stack's innermost frame; 0: none
  data.events.to = data.events.from;
  const threads = data.threads.map(([name, pid, tid]) =>
    ({ name, pid, tid, isCpu: pid < 0, label: pid < 0 ? name : name + ' ' + tid, busy: 0 }));
  const view = { from: 0, to: Math.max(data.end, 1) };
  let rows = [], shown = [], query = '', matches = null, selection = null;

  // step: between labels that have to differ
  function time(ns, step) {
    const size = Math.abs(ns);
    const unit = [[1e9, ' s'], [1e6, ' ms'], [1e3, ' us'], [1, ' ns']].find(one => size >= one[0]);
    const digits = step && unit && Math.max(0, Math.ceil(Math.log10(unit[0] / step) - 1e-9));
    if (step && unit) return (ns / unit[0]).toFixed(digits) + unit[1];
    return size >= 1e9 ? (ns / 1e9).toFixed(6) + ' s' : size >= 1e6 ? (ns / 1e6).toFixed(3) + ' ms'
      : size >= 1e3 ? (ns / 1e3).toFixed(3) + ' us' : ns + ' ns';
  }

  // The frames of a stack, the innermost first.
  function frames(node) {
    const list = [], { parent, frame, names } = data.stacks;
    for (; node > 0; node = parent[node - 1]) list.push(names[frame[node - 1]]);
    return list;
  }

  const styles = getComputedStyle(document.documentElement), style = name => styles.getPropertyValue(name);
  const colors = new Map();
  function color(name) {
    let found = colors.get(name);
    if (!found) {
      let hash = 5381;
      for (let i = 0; i < name.length; i++) hash = (hash * 33 + name.charCodeAt(i)) >>> 0;
      found = 'hsl(' + hash % 360 + ' ' + (45 + hash % 4 * 8) + '% ' + (60 + hash % 3 * 6) + '%)';
      colors.set(name, found);
    }
    return found;
  }

  // The numbers of a kind's items by row (or by another column), each list in the order of time.
  function group(items, by) {
    const lists = new Map();
    for (let i = 0; i < items.n; i++) {
      let list = lists.get(by[i]);
      if (!list) lists.set(by[i], list = []);
      list.push(i);
    }
    for (const list of lists.values()) {
      list.sort((a, b) => items.from[a] - items.from[b] || a - b);
    }
    return lists;
  }

  // The length of a queue after each change: waits begin and end.
  function lengths(list) {
    const items = data.waits, ends = [];
    for (const i of list) ends.push([items.from[i], 1], [items.to[i], -1]);
    ends.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const graph = { time: [], value: [], max: 0 };
    let length = 0;
    for (const [at, by] of ends) {
      length += by;
      if (graph.time[graph.time.length - 1] === at) graph.value[graph.value.length - 1] = length;
      else { graph.time.push(at); graph.value.push(length); }
    }
    for (const value of graph.value) graph.max = Math.max(graph.max, value);
    return graph;
  }

  // A layer of a row: slices, ticks or a graph, drawn between two heights of the row.
  const slices = (items, list, name, fill, top, height) => ({ kind: 'slices', items, list, name, fill, top, height });
  const ticks = (list, top, height) => ({ kind: 'ticks', items: data.events, list,
    name: i => data.names[data.events.what[i]], fill: () => style('--tick'), top, height });
  const threadOf = items => i => threads[items.what[i]].label;
  const colorOf = items => i => color(threads[items.what[i]].name);

  function build() {
    const { runs, waits, pairs, events, counts } = data;
    const runsOf = group(runs, runs.row), ranBy = group(runs, runs.what);
    const waitsFor = group(waits, waits.row), waitedBy = group(waits, waits.what);
    const ticksOf = group(events, events.row), pairsOf = group(pairs, pairs.row), countsOf = group(counts, counts.row);
    const none = [], add = row => rows.push(row);
    if (waits.n) {
      const all = Array.from({ length: waits.n }, (_, i) => i);
      add({ label: 'waiting tasks', height: 2 * QUEUE, layers: [
        { kind: 'graph', graph: lengths(all), fill: WAIT, top: 0, height: 2 * QUEUE, unit: 'waiting' }] });
    }
    threads.forEach((thread, t) => { if (thread.isCpu) thread.order = t; });
    const cpus = threads.filter(thread => thread.isCpu).sort((a, b) => a.tid - b.tid);
    for (const cpu of cpus) {
      const t = cpu.order, layers = [], waiting = waitsFor.get(t);
      layers.push(slices(runs, runsOf.get(t) || none, threadOf(runs), colorOf(runs), 0, ROW));
      if (ticksOf.has(t)) layers.push(ticks(ticksOf.get(t), 0, 5));
      if (waiting) layers.push({ kind: 'graph', graph: lengths(waiting), fill: WAIT, top: ROW + 2, height: QUEUE,
        unit: 'waiting', waiting });
      add({ label: cpu.name, cpu: t, height: waiting ? ROW + 2 + QUEUE : ROW, layers });
    }
    data.series.forEach((name, s) => {
      const list = countsOf.get(s) || none, graph = { time: [], value: [], max: 0 };
      for (const i of list) {
        graph.time.push(counts.from[i]);
        graph.value.push(counts.to[i]);
        graph.max = Math.max(graph.max, counts.to[i]);
      }
      add({ label: name, height: 2 * QUEUE, layers: [
        { kind: 'graph', graph, fill: '#6a9fd4', top: 0, height: 2 * QUEUE, unit: 'in the interval', isPast: true }] });
    });
    const lanesOf = new Map();
    data.lanes.forEach(([, thread], l) => {
      if (!lanesOf.has(thread)) lanesOf.set(thread, []);
      lanesOf.get(thread).push(l);
    });
    const lane = l => ({ list: pairsOf.get(l) || none, name: i => data.names[pairs.what[i]], label: data.lanes[l][0] });
    const length = (items, list) => (list || none).reduce((sum, i) => sum + items.to[i] - items.from[i], 0);
    const tasks = [];
    threads.forEach((thread, t) => {
      if (!thread.isCpu && (ranBy.has(t) || waitedBy.has(t) || ticksOf.has(t) || lanesOf.has(t))) tasks.push(t);
      thread.busy = length(runs, ranBy.get(t)) + length(waits, waitedBy.get(t)) + (ticksOf.get(t) || none).length
        + (lanesOf.get(t) || none).reduce((sum, l) => sum + length(pairs, pairsOf.get(l)), 0);
    });
    const busy = new Map();
    for (const t of tasks) busy.set(threads[t].pid, (busy.get(threads[t].pid) || 0) + threads[t].busy);
    tasks.sort((a, b) => busy.get(threads[b].pid) - busy.get(threads[a].pid) || threads[a].pid - threads[b].pid
      || threads[b].busy - threads[a].busy || threads[a].tid - threads[b].tid);
    for (const t of tasks) {
      const thread = threads[t], layers = [], lanes = lanesOf.get(t) || none;
      layers.push(slices(runs, ranBy.get(t) || none, () => 'runs on ', () => color(thread.name), 0, ROW));
      layers.push(slices(waits, waitedBy.get(t) || none, () => 'waits for ', () => WAIT, 5, ROW - 10));
      if (ticksOf.has(t)) layers.push(ticks(ticksOf.get(t), 0, 5));
      lanes.forEach((l, n) => layers.push(
        slices(pairs, lane(l).list, lane(l).name, i => color(lane(l).name(i)), (n + 1) * (ROW + 1), ROW - 2)));
      add({ label: thread.label, thread: t, height: ROW + lanes.length * (ROW + 1), layers });
    }
    for (const l of lanesOf.get(-1) || none) {
      const { list, name, label } = lane(l);
      add({ label, height: ROW, layers: [slices(pairs, list, name, i => color(name(i)), 0, ROW)] });
    }
    // Pairs of CPUs
    for (const cpu of cpus) {
      for (const l of lanesOf.get(cpu.order) || none) {
        const { list, name } = lane(l);
        add({ label: cpu.name + ' pairs', height: ROW,
          layers: [slices(pairs, list, name, i => color(name(i)), 0, ROW)] });
      }
    }
  }

  function place() {
    let y = 0;
    shown = rows.filter(row => !matches || row.thread === undefined || matches.rows.has(row));
    for (const row of shown) {
      row.y = y;
      y += row.height + GAP;
    }
    part('space').style.height = Math.max(0, y + AXIS - canvas.clientHeight) + 'px';
  }

  const canvas = part('canvas'), context = canvas.getContext('2d'), box = part('rows');
  const width = () => Math.max(50, canvas.clientWidth - LABEL);
  const x = at => LABEL + (at - view.from) / (view.to - view.from) * width();
  const at = px => view.from + (px - LABEL) / width() * (view.to - view.from);

  // The place of the first element of a sorted list that is not before a time.
  function search(list, value, of) {
    let low = 0, high = list.length;
    while (low < high) {
      const mid = low + high >> 1;
      if (of(list[mid]) < value) low = mid + 1; else high = mid;
    }
    return low;
  }

  function drawSlices(layer, y) {
    const { items, list } = layer, right = LABEL + width();
    let drawn = -1;
    for (let n = Math.max(0, search(list, view.from, i => items.from[i]) - 1); n < list.length; n++) {
      const i = list[n];
      if (items.from[i] > view.to) break;
      if (items.to[i] < view.from) continue;
      const left = Math.max(LABEL, x(items.from[i])), end = Math.min(right, Math.max(x(items.to[i]), left + 1));
      if (end <= drawn || end < LABEL) continue; // a pixel is drawn once
      drawn = Math.ceil(end);
      const isFound = !matches || matches.has(layer, i);
      context.globalAlpha = isFound ? 1 : 0.15;
      context.fillStyle = layer.fill(i);
      context.fillRect(left, y + layer.top, end - left, layer.height);
      if (end - left > 30 && layer.height > 12 && isFound) {
        context.save();
        context.beginPath();
        context.rect(left, y, end - left - 2, layer.top + layer.height);
        context.clip();
        context.fillStyle = '#222';
        context.fillText(title(layer, i), left + 3, y + layer.top + layer.height / 2);
        context.restore();
      }
    }
    context.globalAlpha = 1;
  }

  function drawTicks(layer, y) {
    const { items, list } = layer;
    let drawn = -1;
    for (let n = search(list, view.from, i => items.from[i]); n < list.length; n++) {
      const i = list[n];
      if (items.from[i] > view.to) break;
      const px = Math.round(x(items.from[i]));
      if (px === drawn) continue;
      drawn = px;
      context.globalAlpha = !matches || matches.has(layer, i) ? 1 : 0.15;
      context.fillStyle = layer.fill(i);
      context.fillRect(px, y + layer.top, 1, layer.height);
    }
    context.globalAlpha = 1;
  }

  function drawGraph(layer, y) {
    const { graph, top, height, isPast } = layer, bottom = y + top + height, right = LABEL + width();
    context.fillStyle = layer.fill;
    let column = -1, most = 0;
    const flush = () => {
      if (most > 0) {
        const size = Math.max(1, most / graph.max * height);
        context.fillRect(column, bottom - size, 1, size);
      }
    };
    for (let n = Math.max(0, search(graph.time, view.from, t => t) - 1); n < graph.time.length; n++) {
      const from = isPast ? graph.time[n - 1] || 0 : graph.time[n];
      const to = isPast ? graph.time[n] : n + 1 < graph.time.length ? graph.time[n + 1] : data.end;
      if (from > view.to) break;
      const left = Math.max(LABEL, Math.floor(x(from))), end = Math.min(right, x(to)), value = graph.value[n];
      if (end < LABEL) continue;
      if (left !== column) { flush(); column = left; most = 0; }
      most = Math.max(most, value);
      if (Math.floor(end) > left) {
        flush();
        const size = value > 0 ? Math.max(1, value / graph.max * height) : 0;
        context.fillRect(left + 1, bottom - size, Math.floor(end) - left - 1, size);
        column = Math.floor(end);
        most = value;
      }
    }
    if (column < right) flush();
  }

  function drawAxis() {
    const wanted = (view.to - view.from) / (width() / 110), unit = Math.pow(10, Math.floor(Math.log10(wanted)));
    const step = [1, 2, 5, 10].map(n => n * unit).find(n => n >= wanted);
    context.fillStyle = style('--back');
    context.fillRect(0, 0, canvas.clientWidth, AXIS);
    for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
      context.fillStyle = style('--line');
      context.fillRect(Math.round(x(t)), AXIS - 5, 1, canvas.clientHeight);
      context.fillStyle = style('--dim');
      context.fillText(time(t, step), x(t) + 3, AXIS / 2);
    }
  }

  function drawLosses(row, y) {
    for (const [from, to, cpu] of data.losses) {
      if (to < view.from || from > view.to || (row.cpu !== cpu && cpu >= 0) || row.cpu === undefined) continue;
      const left = Math.max(LABEL, x(from));
      context.fillStyle = LOST;
      context.fillRect(left, y, Math.max(2, Math.min(x(to), LABEL + width()) - left), row.height);
    }
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1, w = box.clientWidth, h = box.clientHeight;
    if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
      canvas.style.width = w + 'px';
      canvas.style.height = h + 'px';
      place();
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, w, h);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    drawAxis();
    context.save();
    context.beginPath();
    context.rect(0, AXIS, w, h);
    context.clip();
    for (const row of shown) {
      const y = AXIS + row.y - box.scrollTop;
      if (y + row.height < AXIS || y > h) continue;
      for (const layer of row.layers) {
        if (layer.kind === 'graph') drawGraph(layer, y);
        else if (layer.kind === 'ticks') drawTicks(layer, y);
        else drawSlices(layer, y);
      }
      drawLosses(row, y);
      context.fillStyle = style('--back');
      context.fillRect(0, y, LABEL, row.height);
      context.save();
      context.beginPath();
      context.rect(0, y, LABEL - 6, row.height);
      context.clip();
      context.fillStyle = style('--text');
      context.fillText(row.label, 8, y + Math.min(row.height, ROW) / 2);
      context.restore();
    }
    context.restore();
    if (selection) {
      context.fillStyle = '#3070d040';
      context.fillRect(Math.min(selection.x, selection.to), 0, Math.abs(selection.to - selection.x), h);
    }
    part('range').textContent = time(view.from) + ' + ' + time(view.to - view.from);
  }

  let wanted = false;
  function redraw() {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(() => { wanted = false; draw(); });
  }

  function show(from, to) {
    const end = Math.max(data.end, 1), span = Math.min(end, Math.max(100, to - from));
    view.from = Math.max(0, Math.min(from, end - span));
    view.to = view.from + span;
    redraw();
  }
  function zoom(factor, px) {
    const t = at(px === undefined ? LABEL + width() / 2 : px);
    show(t - (t - view.from) * factor, t + (view.to - t) * factor);
  }
  const move = by => show(view.from + by * (view.to - view.from), view.to + by * (view.to - view.from));

  function title(layer, i) {
    return layer.name(i) + (layer.name(i).endsWith(' ') ? threads[layer.items.row[i]].name : '');
  }

  // What is at a place: the lines of its description; null: nothing. isWhole: with all of a stack.
  function describe(px, py, isWhole) {
    const y = py - AXIS + box.scrollTop, row = shown.find(one => y >= one.y && y < one.y + one.height + GAP);
    if (!row || py < AXIS) return null;
    if (px < LABEL) return [row.label];
    const t = at(px), near = 3 * (view.to - view.from) / width();
    const lost = data.losses.find(([from, to, cpu]) => row.cpu !== undefined && (cpu < 0 || cpu === row.cpu)
      && t >= from - near && t <= to + near);
    const lines = lost ? [lost[3] + ' events lost, ' + time(lost[0]) + ' + ' + time(lost[1] - lost[0])] : [];
    for (const layer of row.layers.slice().reverse()) {
      if (y - row.y < layer.top || y - row.y >= layer.top + layer.height) continue;
      if (layer.kind === 'graph') {
        const { graph, isPast } = layer, n = search(graph.time, isPast ? t : t + 0.5, one => one) - (isPast ? 0 : 1);
        lines.push((n < 0 ? 0 : graph.value[n] || 0) + ' ' + layer.unit + ', ' + time(t));
        const { from, to, what } = data.waits, waiting = (layer.waiting || []).filter(i => from[i] <= t && to[i] > t);
        for (const i of waiting.slice(0, 20)) lines.push(threads[what[i]].label + ' since ' + time(t - from[i]));
        return lines;
      }
      const { items, list } = layer;
      let best = null, distance = near;
      const first = Math.max(0, search(list, t - near, i => items.from[i]) - 1);
      for (let n = first; n < list.length && items.from[list[n]] <= t + near; n++) {
        const i = list[n], away = Math.max(items.from[i] - t, t - items.to[i], 0);
        if (away <= distance) { best = i; distance = away; }
      }
      if (best !== null) {
        lines.push(title(layer, best), time(items.from[best])
          + (layer.kind === 'slices' ? ', for ' + time(items.to[best] - items.from[best]) : ''));
        if (layer.items === data.runs && row.cpu !== undefined) lines.push('runs on ' + row.label);
        const stack = layer.items === data.events ? frames(items.stack[best]) : [];
        lines.push(...stack.slice(0, isWhole ? stack.length : STACK).map(name => '  ' + name));
        if (!isWhole && stack.length > STACK) lines.push('  ...');
        return lines;
      }
    }
    return lines.length ? lines : null;
  }

  function find(text) {
    query = text.toLowerCase();
    matches = null;
    if (query) {
      const ofThread = threads.map(one => one.label.toLowerCase().includes(query));
      const ofName = data.names.map(name => name.toLowerCase().includes(query));
      matches = { rows: new Set(), items: [], time: 0, at: -1, has: (layer, i) => layer.items === data.runs
        || layer.items === data.waits ? ofThread[layer.items.what[i]]
        : ofName[layer.items.what[i]] || layer.thread !== undefined && ofThread[layer.thread] };
      for (const row of rows) {
        for (const layer of row.layers) {
          if (layer.kind === 'graph') continue;
          layer.thread = row.thread;
          for (const i of layer.list) {
            if (!matches.has(layer, i)) continue;
            matches.rows.add(row);
            if (row.thread === undefined && layer.items === data.runs) continue; // also on the row of its thread
            matches.items.push([layer.items.from[i], layer.items.to[i], row]);
            if (layer.items === data.runs) matches.time += layer.items.to[i] - layer.items.from[i];
          }
        }
      }
      matches.items.sort((a, b) => a[0] - b[0]);
    }
    part('found').textContent = matches ? matches.items.length + ' found, ' + time(matches.time) + ' on CPUs' : '';
    place();
    redraw();
  }

  function next(by) {
    if (!matches || !matches.items.length) return;
    matches.at = (matches.at + by + matches.items.length) % matches.items.length;
    const [from, to, row] = matches.items[matches.at], half = Math.max((view.to - view.from) / 2, (to - from) * 2);
    show((from + to) / 2 - half, (from + to) / 2 + half);
    if (row.y < box.scrollTop || row.y + row.height > box.scrollTop + box.clientHeight - AXIS) box.scrollTop = row.y;
    part('found').textContent = (matches.at + 1) + ' of ' + matches.items.length;
  }

  function note() {
    const lines = [];
    for (const kind of ['runs', 'waits', 'pairs', 'events', 'counts']) {
      const { leftOut, minimum } = data[kind], isTick = kind === 'events' || kind === 'counts';
      if (leftOut) {
        lines.push(leftOut + ' ' + kind + (isTick ? ' less than ' + time(minimum) + ' after another one'
          : ' shorter than ' + time(minimum)) + ' are left out');
      }
    }
    if (data.lostEvents) lines.push(data.lostEvents + ' events were lost');
    if (data.isPartial) lines.push('only the switches of some tasks were seen, so there are no run queues');
    part('note').textContent = lines.join('; ');
  }

  function showDetails(lines) {
    part('details').hidden = !lines;
    part('details').textContent = lines ? lines.join('\n') : '';
    redraw();
  }

  let drag = null;
  canvas.addEventListener('mousedown', event => {
    drag = { x: event.offsetX, y: event.offsetY, from: view.from, to: view.to };
    if (event.shiftKey) selection = { x: event.offsetX, to: event.offsetX };
    box.focus();
    event.preventDefault();
  });
  window.addEventListener('mousemove', event => {
    const px = event.clientX - canvas.getBoundingClientRect().left;
    if (drag && selection) selection.to = px;
    else if (drag) {
      const by = (drag.x - px) / width() * (drag.to - drag.from);
      show(drag.from + by, drag.to + by);
    }
    if (drag) redraw();
  });
  window.addEventListener('mouseup', event => {
    const px = event.clientX - canvas.getBoundingClientRect().left;
    if (drag && !selection && Math.abs(px - drag.x) < 3) showDetails(describe(drag.x, drag.y, true));
    if (selection && Math.abs(selection.to - selection.x) > 3) {
      const from = Math.min(selection.x, selection.to), to = Math.max(selection.x, selection.to);
      show(at(from), at(to));
    }
    drag = selection = null;
    redraw();
  });
  canvas.addEventListener('mousemove', event => {
    const lines = drag ? null : describe(event.offsetX, event.offsetY), tip = part('tip');
    tip.style.display = lines ? 'block' : 'none';
    if (!lines) return;
    tip.textContent = lines.join('\n');
    tip.style.left = Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 4) + 'px';
    tip.style.top = Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 4) + 'px';
  });
  canvas.addEventListener('mouseleave', () => { part('tip').style.display = 'none'; });
  box.addEventListener('wheel', event => {
    if (event.ctrlKey) zoom(Math.pow(1.002, event.deltaY), event.offsetX);
    else if (event.shiftKey || event.deltaX) move((event.deltaX || event.deltaY) / 1000);
    else return;
    event.preventDefault();
  }, { passive: false });
  box.addEventListener('scroll', redraw);
  window.addEventListener('resize', () => { place(); redraw(); });
  const keys = { w: () => zoom(0.7), s: () => zoom(1 / 0.7), a: () => move(-0.2), d: () => move(0.2),
    ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), '+': () => zoom(0.7), '-': () => zoom(1 / 0.7),
    0: () => show(0, data.end) };
  box.addEventListener('keydown', event => {
    if (event.key === 'Enter') next(event.shiftKey ? -1 : 1);
    else if (event.key === '/') part('search').focus();
    else if (event.key === 'Escape') showDetails(null);
    else if (keys[event.key] && !event.ctrlKey && !event.metaKey) keys[event.key]();
    else return;
    event.preventDefault();
  });
  part('search').addEventListener('input', event => find(event.target.value));
  part('search').addEventListener('keydown', event => { if (event.key === 'Enter') next(event.shiftKey ? -1 : 1); });
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  part('in').addEventListener('click', () => zoom(0.5));
  part('out').addEventListener('click', () => zoom(2));
  part('all').addEventListener('click', () => show(0, data.end));

  document.title = data.title + ' timeline';
  part('title').textContent = data.title;
  build();
  note();
  place();
  draw();
  return { data, threads, rows, view, describe, show, find, draw };
})();
