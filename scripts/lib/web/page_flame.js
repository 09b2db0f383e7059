'use strict';
/* global units, model */
/* exported flame */
// Flame graphs of tables with stacks, the roots on top. With a time before, colors show what has more (red) or less
// (blue) of its total.
const flame = (function () {
  const ROW = 18, MIN_WIDTH = 0.1; // pixels, percent

  // The width of frames: the charted column, if it is counted, else a sum of times or bytes, before counts.
  function valueColumn(columns, charted) {
    const isCounter = column => column.kind === 'counter';
    const found = [column => isCounter(column) && column.name === charted,
      column => isCounter(column) && units.of(column).kind !== 'count', isCounter,
      // Without a counter, what each stack has now, such as the bytes of kmemleak.
      column => column.kind === 'gauge'].find(test => columns.some(test));
    return found ? columns.findIndex(found) : -1;
  }
  function stackColumns(columns, charted) {
    return { stack: columns.findIndex(model.isList), value: valueColumn(columns, charted),
      comm: columns.findIndex(column => column.kind === 'label') };
  }
  const has = columns => { const at = stackColumns(columns); return at.stack >= 0 && at.value >= 0; };
  const node = name => ({ name, value: 0, before: 0, children: new Map() });
  function addTo(root, sum, charted, field, keep) {
    const at = stackColumns(sum.columns, charted);
    sum.rows.forEach(row => {
      if (!Array.isArray(row[at.stack]) || typeof row[at.value] !== 'number' || !keep(row)) return;
      const frames = row[at.stack].map(model.frameName).reverse();
      if (at.comm >= 0) frames.unshift(String(row[at.comm]));
      let place = root;
      place[field] += row[at.value];
      frames.forEach(name => {
        if (!place.children.has(name)) place.children.set(name, node(name));
        place = place.children.get(name);
        place[field] += row[at.value];
      });
    });
  }
  function warm(name) {
    let hash = 0;
    for (const letter of name) hash = (hash * 31 + letter.charCodeAt(0)) % 997;
    return 'hsl(' + (12 + hash % 42) + ',' + (74 + hash % 14) + '%,' + (64 + hash % 14) + '%)';
  }
  // By how much of the total a frame has grown.
  const growth = (one, root) => one.value / Math.max(root.value, 1) - one.before / Math.max(root.before, 1);
  function colorOf(one, root) {
    if (!root.before) return warm(one.name);
    const change = growth(one, root), pale = 93 - Math.min(Math.abs(change) * 400, 43); // 10 % are full
    return Math.abs(change) < 0.002 ? '#e4e4e4' : 'hsl(' + (change > 0 ? 4 : 218) + ',85%,' + pale + '%)';
  }
  // The share of frames that match, each place counted once.
  function matched(one, find) {
    if (find(one.name)) return one.value;
    let sum = 0;
    one.children.forEach(child => { sum += matched(child, find); });
    return sum;
  }
  function finder(view) {
    if (!view.search) return null;
    try {
      const expression = new RegExp(view.search, 'i');
      return name => expression.test(name);
    } catch (error) {
      return name => name.includes(view.search);
    }
  }
  // --- by keyboard: arrows go from frame to frame

  const isInside = (one, path) => path.every((name, i) => one.names[i] === name);
  function neighbour(view, key) {
    const now = view.frames.find(one => one.element.classList.contains('at')), level = now ? now.level : 0;
    const row = view.frames.filter(one => one.level === level + (key === 'ArrowDown' ? 1 : key === 'ArrowUp' ? -1 : 0));
    if (!now) return view.frames[0];
    if (key === 'ArrowDown') return row.find(one => isInside(one, now.names));
    if (key === 'ArrowUp') return row.find(one => isInside(now, one.names));
    return row[row.indexOf(now) + (key === 'ArrowLeft' ? -1 : 1)];
  }
  function onKey(view, event) {
    const now = view.frames.find(one => one.element.classList.contains('at'));
    if (/^Arrow/.test(event.key)) mark(view, neighbour(view, event.key));
    else if (event.key === 'Enter' && now) now.element.click();
    else if (event.key === 'Escape' && view.zoom && view.zoom.length) view.frames[0].element.click();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  function mark(view, frame) {
    if (!frame) return;
    view.frames.forEach(one => one.element.classList.toggle('at', one === frame));
    view.at = frame.names.join('\n');
    view.flameNote.textContent = frame.element.title + '; ' + view.flameText;
    if (document.activeElement === view.flame) frame.element.scrollIntoView({ block: 'nearest' });
  }
  function listen(view) {
    if (view.frames) return;
    view.flame.tabIndex = 0;
    view.flameHead.classList.add('stays');
    view.flame.setAttribute('aria-label', 'Flame graph: arrows move, Enter zooms, Escape shows all');
    view.flame.addEventListener('keydown', event => onKey(view, event));
  }

  // Draws the stacks of a sum; keep(row): of which rows.
  function draw(view, sums, keep) {
    const box = view.flame, column = sums.now.columns[stackColumns(sums.now.columns, view.charted).value];
    const root = node('all'), find = finder(view);
    addTo(root, sums.now, view.charted, 'value', keep);
    if (sums.before && sums.before.columns) addTo(root, sums.before, view.charted, 'before', keep);
    const scrolled = box.scrollTop;
    listen(view);
    box.textContent = '';
    view.frames = [];
    let top = root, depth = 0;
    const path = [];
    (view.zoom || []).every(name => {
      const child = top.children.get(name);
      if (child) { path.push(top); top = child; }
      return Boolean(child);
    });
    function put(one, start, width, level, names) {
      const frame = document.createElement('div');
      depth = Math.max(depth, level + 1);
      frame.textContent = one.name;
      frame.style.cssText = 'left:' + start + '%;width:' + width + '%;top:' + level * ROW + 'px;background:' +
        colorOf(one, root);
      const change = 100 * growth(one, root), share = (100 * one.value / root.value).toFixed(1) + ' %';
      frame.title = one.name + ': ' + units.text(column, one.value) + ' (' + share + ')' +
        (root.before ? ', ' + (change > 0 ? '+' : '') + change.toFixed(1) + ' % of the total' : '');
      if (find && find(one.name)) frame.classList.add('found');
      if (level < path.length) frame.classList.add('caller');
      frame.addEventListener('click', () => { view.zoom = names; draw(view, sums, keep); });
      box.appendChild(frame);
      view.frames.push({ element: frame, level, names });
    }
    function putAll(one, start, width, level, names) {
      if (width < MIN_WIDTH) return;
      put(one, start, width, level, names);
      let at = start;
      Array.from(one.children.values()).sort((a, b) => b.value - a.value).forEach(child => {
        const share = width * child.value / one.value;
        putAll(child, at, share, level + 1, names.concat(child.name));
        at += share;
      });
    }
    if (root.value > 0) {
      path.forEach((one, level) => put(one, 0, 100, level, (view.zoom || []).slice(0, level)));
      putAll(top, 0, 100, path.length, (view.zoom || []).slice(0, path.length));
    }
    box.style.height = depth * ROW + 'px';
    box.scrollTop = scrolled;
    const share = top === root ? '' : top.name + ': ' + (100 * top.value / root.value).toFixed(1) + ' % of all';
    view.flameNote.textContent = view.flameText = [
      root.value ? units.text(column, root.value) + ' ' + column.title : 'no stacks in this time',
      share, find ? (100 * matched(root, find) / Math.max(root.value, 1)).toFixed(1) + ' % matched' : '',
      root.before ? 'red: more of the total than before, blue: less' : ''].filter(Boolean).join(', ');
    if (document.activeElement === box) mark(view, view.frames.find(one => one.names.join('\n') === view.at));
  }
  return { has, draw, valueColumn };
}());
