'use strict';
/* global d3, units, model */
/* exported charts */
// Charts over one time axis: bars by row, lines, or a heat map; beside each a legend, or the distribution of the
// selected time. A brush over any of them selects a time for all.
const charts = (function () {
  const TOP = 6, AXIS = 20, RIGHT = 10, CLICK = 3; // pixels
  const LINES = {
    light: ['#3b78d8', '#e08a1e', '#2f9e62', '#c4428a', '#7d5cc6', '#1899a8', '#a3acba'],
    dark: ['#6ea3ff', '#f0a74c', '#58c98c', '#ea7fb8', '#a98df0', '#4cc6d4', '#5b6475']
  };
  const RAMPS = {
    light: ['#ffefc9', '#fdc765', '#f4813a', '#d0342c', '#7a0f33', '#3d0a2b'],
    dark: ['#2c2145', '#6a2a72', '#b53d72', '#ee6a55', '#fbb168', '#fdf3bf']
  };
  const list = [];                // of all charts
  let zoomed = null, scale = null, isMoved = false; // isMoved: a brush, by the page itself

  const style = () => document.documentElement.classList.contains('dark') ? 'dark' : 'light';
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const shade = (count, max) => d3.interpolateRgbBasis(RAMPS[style()])(max <= 1 ? 1 : Math.log(count) / Math.log(max));
  const ramp = () => 'linear-gradient(90deg,' + RAMPS[style()].join(',') + ')';
  const columnOf = view => view.columns.find(column => column.name === view.charted);
  const isOfCounters = view => model.periodsOf(view.columns) >= 0;
  const isHeat = view => !view.overview && !view.plain && model.histOf(view.columns) >= 0;

  // --- the time axis

  const whole = () => {
    const all = model.reports;
    return all.length ? [model.startOf(all[0]), all[all.length - 1].time] : [0, 1];
  };
  // The reports of a part that is in the address come later.
  function domain() {
    const [from, to] = whole();
    const isSeen = zoomed && zoomed[0] < to && zoomed[1] > from;
    return isSeen ? [Math.max(zoomed[0], from), Math.min(zoomed[1], to)] : [from, to];
  }
  // Draws a part of the time; null: all.
  function zoom(part) {
    const [from, to] = whole();
    zoomed = !part || model.reports.length && part[0] <= from && part[1] >= to ? null : part;
  }
  // Moves the part that is drawn so that it contains a range.
  function follow(range) {
    const [a, b] = domain(), by = range.start < a ? range.start - a : range.to > b ? range.to - b : 0;
    if (zoomed && by) zoom([a + by, b + by]);
  }
  function zoomBy(factor, at) {
    const [a, b] = domain(), middle = at === undefined ? (a + b) / 2 : at;
    if ((b - a) * factor > 1e-4 || factor > 1) zoom([middle - (middle - a) * factor, middle + (b - middle) * factor]);
  }
  const left = () => window.innerWidth < 600 ? 56 : 72;
  const xOf = time => scale(model.isWall() ? time * 1000 : time);
  const timeAt = x => Number(scale.invert(x)) / (model.isWall() ? 1000 : 1);
  function setScale(width) {
    const times = domain(), ends = [left(), Math.max(width - RIGHT, left() + 10)];
    scale = model.isWall() ? d3.scaleTime().domain(times.map(time => time * 1000)) : d3.scaleLinear().domain(times);
    scale.range(ends);
  }
  function timeAxis(width) {
    const factor = model.isWall() ? 1000 : 1;
    let n = Math.max(2, Math.floor(width / 110)), ticks = scale.ticks(n);
    // There may be more than asked for: labels have up to 80 pixels.
    while (n > 2 && ticks.length * 80 > width) ticks = scale.ticks(--n);
    const step = ticks.length > 1 ? (ticks[1] - ticks[0]) / factor : 1;
    return d3.axisBottom(scale).tickValues(ticks).tickSizeOuter(0)
      .tickFormat(tick => units.clock(Number(tick) / factor, model.isWall(), step));
  }

  // --- what is drawn: reports that are narrower than two pixels are added up

  function bins(view) {
    const bin = [], data = model.series(view), ends = scale.range();
    const add = (from, to, values, counts) => {
      const x = xOf(from), end = xOf(to), last = bin[bin.length - 1];
      if (end < ends[0] || x > ends[1]) return;
      if (!last || end - last.x > 2) {
        bin.push({ x, end, seconds: to - from, values: values.slice(), counts: new Map(counts) });
        return;
      }
      last.end = end;
      last.seconds += to - from;
      values.forEach((value, i) => {
        last.values[i] = view.adds ? last.values[i] + value : Math.max(last.values[i], value);
      });
      counts.forEach((count, e) => last.counts.set(e, (last.counts.get(e) || 0) + count));
    };
    data.points.forEach(point => {
      const from = model.startOf(point.report), n = point.periods.length, step = (point.report.time - from) / n;
      if (!n) add(from, point.report.time, point.values, point.counts);
      point.periods.forEach((values, i) => add(from + i * step, from + (i + 1) * step, values, point.counts));
    });
    return bin;
  }
  // A column's steps on an axis: those of bytes are powers of two.
  function steps(max, unit) {
    if (unit.kind !== 'bytes') return d3.scaleLinear().domain([0, max]).ticks(4);
    const step = Math.pow(2, Math.ceil(Math.log2(max * unit.factor / 4))) / unit.factor;
    return [0, 1, 2, 3, 4].map(n => n * step).filter(value => value <= max);
  }
  function yAxis(view, y, values, format) {
    view.svg.select('.y').attr('transform', 'translate(' + left() + ',0)')
      .call(d3.axisLeft(y).tickValues(values).tickFormat(format).tickSizeOuter(0)
        .tickSizeInner(isHeat(view) ? 4 : left() + RIGHT - view.width));
  }
  // The buckets of the median and of p99.
  function drawQuantiles(paint, bin, y) {
    [[0.5, []], [0.99, [4, 3]]].forEach(([fraction, dash]) => {
      paint.setLineDash(dash);
      paint.beginPath();
      bin.forEach(one => {
        const counts = Array.from(one.counts).sort((a, b) => a[0] - b[0]);
        if (!counts.length) return;
        const at = y(model.quantile(counts, fraction) - 0.5);
        paint.lineTo(one.x, at);
        paint.lineTo(one.end, at);
      });
      [['--card', 4], ['--accent', 1.5]].forEach(([color, wide]) => {
        paint.strokeStyle = css(color);
        paint.lineWidth = wide;
        paint.stroke();
      });
    });
    paint.setLineDash([]);
  }
  function drawHeat(view, paint, height) {
    const bin = bins(view), hist = view.columns[model.histOf(view.columns)], unit = units.of(hist);
    let low = 64, high = -2, max = 1;
    bin.forEach(one => one.counts.forEach((count, e) => {
      low = Math.min(low, e);
      high = Math.max(high, e);
      max = Math.max(max, count);
    }));
    if (high < low) { low = 0; high = 0; }
    const y = d3.scaleLinear().domain([low, high + 1]).range([height - AXIS, TOP]);
    const tall = Math.abs(y(1) - y(0));
    view.low = low;
    view.high = high;
    view.y = y;
    view.exponent = at => Math.min(high, Math.max(low, Math.floor(y.invert(at))));
    bin.forEach(one => one.counts.forEach((count, e) => {
      paint.fillStyle = shade(count, max);
      paint.fillRect(one.x, y(e + 1), Math.max(one.end - one.x - (one.end - one.x > 6 ? 1 : 0), 1),
        Math.max(tall - (tall > 6 ? 1 : 0), 1));
    }));
    drawQuantiles(paint, bin, y);
    // Powers of ten where they are far enough from each other, else the bounds of buckets.
    let marks = [];
    if (unit.kind !== 'bytes') for (let k = 0; k < 20; k++) marks.push(Math.log2(Math.pow(10, k) / unit.factor));
    marks = marks.filter(mark => mark >= Math.max(low, 0) && mark <= high + 1);
    if (marks.length < 3) marks = d3.range(Math.max(low, 0), high + 2, Math.ceil((high - low + 2) / 8));
    if (low < 0) marks = [-0.5].concat(marks.filter(mark => mark > 0));
    yAxis(view, y, marks,
      mark => mark < 0 ? '≤ 0' : units.short(Math.round(Math.pow(2, mark) * unit.factor), unit.kind));
    view.max = max;
  }
  // The rates of several counters, each a line: their sum has no meaning.
  function drawRates(paint, bin, y, value, color, n) {
    paint.lineWidth = 1.5;
    for (let i = n; i >= 0; i--) {
      paint.strokeStyle = color(i);
      paint.beginPath();
      if (bin.some(one => one.values[i] > 0)) {
        bin.forEach(one => {
          paint.lineTo(one.x, y(value(one, i)));
          paint.lineTo(one.end, y(value(one, i)));
        });
      }
      paint.stroke();
    }
  }
  // Bars of what is counted, per second and by row; lines of other values.
  function drawValues(view, paint, height) {
    const bin = bins(view), column = columnOf(view), unit = column ? units.of(column) : { kind: 'count', factor: 1 };
    const colors = LINES[style()], tops = view.series.tops.length, isRates = view.adds && isOfCounters(view);
    const color = i => colors[tops || i ? i < tops ? i : colors.length - 1 : 0];
    const value = (one, i) => view.adds ? Math.max(one.values[i], 0) / Math.max(one.seconds, 1e-9) : one.values[i];
    const sum = one => one.values.reduce((all, _, i) =>
      view.adds && !isRates ? all + value(one, i) : Math.max(all, value(one, i)), 0);
    const max = bin.reduce((most, one) => Math.max(most, sum(one)), 0) || 1;
    const y = d3.scaleLinear().domain([0, max * 1.05]).range([height - AXIS, TOP]);
    view.exponent = null;
    yAxis(view, y, steps(max, unit),
      tick => units.short(tick * unit.factor, unit.kind) + (view.adds && tick ? '/s' : ''));
    if (isRates) drawRates(paint, bin, y, value, color, tops);
    else if (view.adds) {
      bin.forEach(one => {
        let under = 0;
        one.values.forEach((_, i) => {
          const part = value(one, i), wide = one.end - one.x;
          if (part <= 0) return;
          paint.fillStyle = color(i);
          paint.fillRect(one.x, y(under + part), Math.max(wide - (wide > 4 ? 1 : 0), 1), y(under) - y(under + part));
          under += part;
        });
      });
    }
    for (let i = tops; i >= 0 && !view.adds; i--) {
      paint.fillStyle = color(i);
      bin.forEach(one => {
        if (value(one, i) > 0) paint.fillRect(one.x, y(value(one, i)) - 1, Math.max(one.end - one.x, 2), 2);
      });
    }
  }

  // How many tasks wait for each CPU, a strip for each.
  function drawStrips(view, paint, height) {
    const { from, to, cpus } = view.strips, colors = d3.interpolateRgbBasis(RAMPS[style()]);
    const tall = (height - AXIS - TOP) / Math.max(cpus.length, 1), every = Math.ceil(13 / tall);
    const top = i => TOP + i * tall, x = part => xOf(from + (to - from) * part);
    const max = cpus.reduce((most, [, means]) => Math.max(most, ...means), 0) || 1;
    cpus.forEach(([, means], i) => means.forEach((mean, at) => {
      if (!mean) return;
      const a = Math.round(x(at / means.length)), b = Math.round(x((at + 1) / means.length));
      paint.fillStyle = colors(mean / max);
      paint.fillRect(a, top(i), Math.max(b - a, 1), Math.max(tall - (tall > 6 ? 1 : 0), 1));
    }));
    view.max = max;
    view.exponent = null;
    view.cell = (time, y) => {
      const one = cpus[Math.floor((y - TOP) / tall)];
      const at = one ? Math.floor((time - from) / (to - from || 1) * one[1].length) : -1;
      return at >= 0 && at < one[1].length ? { cpu: one[0], mean: one[1][at], most: one[2][at] } : null;
    };
    const shown = cpus.filter((_, i) => i % every === 0);
    const y = d3.scalePoint().domain(cpus.map(one => one[0])).range([top(0.5), top(Math.max(cpus.length, 1) - 0.5)]);
    view.svg.select('.y').attr('transform', 'translate(' + left() + ',0)')
      .call(d3.axisLeft(y).tickValues(shown.map(one => one[0])).tickFormat(cpu => 'CPU ' + cpu).tickSizeOuter(0)
        .tickSizeInner(4));
  }

  // --- beside the chart

  function drawDistribution(view, now, before) {
    const height = view.height, canvas = view.sideCanvas, width = view.side.clientWidth, ink = css('--accent');
    canvas.hidden = !width;
    if (!width) return;
    fit(canvas, width, height);
    const paint = canvas.getContext('2d'), y = view.y, share = counts => {
      const total = model.totalOf(counts) || 1;
      return counts.map(one => [one[0], one[1] / total]);
    };
    const lists = [share(now), share(before || [])];
    const max = Math.max(...lists[0].concat(lists[1]).map(one => one[1]), 1e-9), room = width - 54;
    paint.font = '11px system-ui, sans-serif';
    lists.forEach((counts, second) => counts.forEach(([e, part]) => {
      const top = y(e + 1), tall = Math.max(y(e) - y(e + 1) - 1, 1), wide = Math.max(part / max * room, 1);
      if (top < 0 || top > height - AXIS) return;
      paint.fillStyle = ink;
      paint.globalAlpha = second ? 1 : 0.55;
      paint.strokeStyle = css('--dim');
      if (second) paint.strokeRect(0.5, top + 0.5, wide, tall - 1);
      else paint.fillRect(0, top, wide, tall);
      paint.globalAlpha = 1;
      paint.fillStyle = css('--dim');
      if (!second && tall >= 9) {
        paint.fillText((100 * part).toFixed(part < 0.1 ? 1 : 0) + ' %', wide + 4, top + tall / 2 + 4);
      }
    }));
  }
  function legend(view, sum) {
    const box = view.legend, colors = LINES[style()], data = view.series, column = columnOf(view);
    box.textContent = '';
    if (isHeat(view) || view.overview || !data.tops.length) return;
    const values = new Map();
    if (sum && sum.columns) {
      const at = sum.columns.findIndex(one => one.name === view.charted);
      sum.rows.forEach(row => {
        const label = model.labelOf(sum.columns, row);
        if (at >= 0 && typeof row[at] === 'number') {
          values.set(label, view.adds ? (values.get(label) || 0) + row[at] : Math.max(values.get(label) || 0, row[at]));
        }
      });
    }
    let rest = 0;
    values.forEach((value, label) => {
      if (!data.tops.includes(label)) rest = view.adds ? rest + value : Math.max(rest, value);
    });
    const put = (color, label, value) => {
      const [mark, name, number] = ['i', 'span', 'b'].map(type => document.createElement(type));
      mark.style.background = color;
      name.textContent = name.title = label;
      number.textContent = value === undefined ? '–' : units.text(column, value);
      box.append(mark, name, number);
    };
    data.tops.forEach((label, i) => put(colors[i], label, values.get(label)));
    if (rest) put(colors[colors.length - 1], 'others', rest);
  }

  // --- drawing

  function fit(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = height + 'px';
    canvas.getContext('2d').scale(ratio, ratio);
  }
  function drawMarks(view, state) {
    const place = (node, range) => {
      const wide = range && xOf(range.to) - xOf(range.start);
      node.attr('visibility', range ? 'visible' : 'hidden');
      if (range) {
        const a = Math.max(xOf(range.start), scale.range()[0]), b = Math.min(a + wide, scale.range()[1]);
        node.attr('x', a).attr('width', Math.max(b - a, 0)).attr('y', TOP).attr('height', view.height - AXIS - TOP);
      }
    };
    place(view.svg.select('.before'), state.before);
    const bucket = state.bucket && state.bucket.view === view && isHeat(view) && view.y ? state.bucket : null;
    place(view.svg.select('.cell'), bucket && (state.range || { start: domain()[0], to: domain()[1] }));
    if (bucket) {
      const top = view.y(bucket.exponent + 1);
      view.svg.select('.cell').attr('y', top).attr('height', view.y(bucket.exponent) - top);
    }
    if (state.dragging !== view) {
      const range = state.range && scale.range().map((end, i) => {
        const x = xOf(i ? state.range.to : state.range.start);
        return i ? Math.min(x, end) : Math.max(x, end);
      });
      isMoved = true;
      view.brush.move(view.svg.select('.brush'), range && range[1] > range[0] ? range : null);
      isMoved = false;
    }
  }
  const stripsHeight = ({ cpus }) =>
    TOP + AXIS + cpus.length * Math.min(Math.max(Math.floor(260 / cpus.length), 4), 22);
  // Draws the chart of a view: { columns, charted, focus, plain }; sums: { now, before }.
  function draw(view, state, sums) {
    const width = view.box.clientWidth || 900, column = columnOf(view);
    view.width = width;
    view.height = view.strips ? stripsHeight(view.strips) : view.overview ? 100 : isHeat(view) ? 210 : 150;
    view.adds = view.overview || Boolean(column) && column.kind === 'counter';
    view.box.style.height = view.height + 'px';
    setScale(width);
    fit(view.canvas, width, view.height);
    const paint = view.canvas.getContext('2d');
    paint.beginPath();
    paint.rect(left(), 0, width - left() - RIGHT, view.height);
    paint.clip();
    model.series(view);
    if (view.strips) drawStrips(view, paint, view.height);
    else if (isHeat(view)) drawHeat(view, paint, view.height);
    else drawValues(view, paint, view.height);
    view.svg.select('.x').attr('transform', 'translate(0,' + (view.height - AXIS) + ')').call(timeAxis(width));
    const size = width + 'x' + view.height;
    if (view.size !== size) {
      view.size = size;
      view.brush.extent([[left(), TOP], [width - RIGHT, view.height - AXIS]]);
      view.svg.select('.brush').call(view.brush);
    }
    drawMarks(view, state);
    view.sideCanvas.hidden = !isHeat(view);
    if (isHeat(view)) {
      drawDistribution(view, model.countsOf(sums.now, view.focus),
        sums.before && model.countsOf(sums.before, view.focus));
    }
    legend(view, sums.now);
  }

  // The report under the pointer, and the height in the chart.
  function pointAt(view, event) {
    const area = view.box.getBoundingClientRect(), time = timeAt(event.clientX - area.left);
    const all = model.reports, at = all.findIndex(report => report.time >= time);
    return { nr: at < 0 ? all.length - 1 : at, time, y: event.clientY - area.top };
  }
  function showCross(time) {
    list.forEach(view => {
      const x = time === null ? -1 : xOf(time);
      view.svg.select('.cross').attr('visibility', x < left() ? 'hidden' : 'visible').attr('x1', x).attr('x2', x)
        .attr('y1', TOP).attr('y2', view.height - AXIS);
    });
  }
  // Makes the elements of a view's chart; on: { select(view, a, b, isEnd), click(view, point), hover(view, point),
  // redraw() }.
  function create(view, parent, on) {
    const make = (name, type, inside) => {
      const one = document.createElement(name);
      one.className = type;
      return inside.appendChild(one);
    };
    const plot = make('div', 'plot', parent);
    view.box = make('div', 'chart', plot);
    view.canvas = make('canvas', '', view.box);
    view.side = make('div', 'side', plot);
    view.sideCanvas = make('canvas', '', view.side);
    view.legend = make('div', 'legend', view.side);
    view.svg = d3.select(view.box).append('svg');
    view.svg.append('g').attr('class', 'axis y');
    view.svg.append('g').attr('class', 'axis x');
    view.svg.append('rect').attr('class', 'before').attr('visibility', 'hidden');
    view.svg.append('g').attr('class', 'brush');
    view.svg.append('rect').attr('class', 'cell').attr('visibility', 'hidden');
    view.svg.append('line').attr('class', 'cross').attr('visibility', 'hidden');
    let pressed = null;
    const point = () => {
      const source = d3.event.sourceEvent;
      return source.changedTouches && source.changedTouches[0] || source;
    };
    view.brush = d3.brushX().on('start', () => {
      if (!isMoved) pressed = { x: point().clientX, at: pointAt(view, point()) };
    }).on('brush', () => {
      if (!isMoved && pressed && d3.event.selection && Math.abs(point().clientX - pressed.x) > CLICK) {
        on.select(view, ...d3.event.selection.map(timeAt), false);
      }
    }).on('end', () => {
      if (isMoved || !pressed) return;
      const at = pressed.at, moved = Math.abs(point().clientX - pressed.x) > CLICK;
      pressed = null;
      if (moved && d3.event.selection) on.select(view, ...d3.event.selection.map(timeAt), true);
      else on.click(view, at);
    });
    view.box.addEventListener('mousemove', event => {
      if (!model.reports.length || !scale) return;
      showCross(timeAt(event.clientX - view.box.getBoundingClientRect().left));
      on.hover(view, pointAt(view, event));
    });
    view.box.addEventListener('mouseleave', () => showCross(null));
    view.box.addEventListener('wheel', event => {
      if (!model.reports.length || Math.abs(event.deltaY) < Math.abs(event.deltaX)) return;
      if (!event.ctrlKey && !zoomed && event.deltaY > 0) return; // the page scrolls
      event.preventDefault();
      zoomBy(event.deltaY > 0 ? 1.25 : 0.8, pointAt(view, event).time);
      on.redraw();
    }, { passive: false });
    list.push(view);
  }
  function remove(view) { list.splice(list.indexOf(view), 1); }
  return { create, remove, follow, draw, drawMarks, ramp, isHeat, columnOf, zoom, zoomBy, xOf, domain,
    zoomed: () => zoomed, list };
}());
