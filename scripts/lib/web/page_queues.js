'use strict';
/* global model, charts, units */
/* exported runQueues */
// The panel of the run queues: how many tasks wait for each CPU, in the time that the charts show. The run computes
// that from the scheduler's events that it keeps.
const runQueues = (function () {
  const PARTS = 400, AGAIN = 1000; // ms
  const view = { overview: true, name: null, columns: [], charted: null, plain: true, strips: null };
  const byId = id => document.getElementById(id);
  let asked = '', timer = 0, on = null;

  // The time of the run, in ns, of a time of reports.
  function timeOfRun(time) {
    const all = model.reports, last = all[all.length - 1];
    return Math.round(last.to + (time - last.time) * 1e9);
  }
  function show(answer) {
    byId('unknown').textContent = answer.notes.join('; ');
    if (!answer.queues.cpus.length) return;
    byId('queues').hidden = false;
    if (!view.strips) {
      charts.create(view, byId('queues'), on);
      view.hint = byId('queued');
    }
    view.strips = answer.queues;
  }
  // Asks for the time that is shown, if it has changed; ask(question): a promise of an answer.
  function update(ask, redraw) {
    if (!on || !model.reports.length || document.hidden) return;
    const [from, to] = charts.domain().map(timeOfRun), key = from + '-' + to;
    if (key === asked || timer) return;
    asked = key;
    timer = window.setTimeout(() => { timer = 0; update(ask, redraw); }, AGAIN);
    const question = new URLSearchParams({ queues: PARTS, to, n: Date.now() });
    if (charts.zoomed()) question.set('from', from);
    ask(question).then(answer => {
      if (!answer || !answer.queues) return;
      show(answer);
      redraw();
    }, () => { asked = ''; });    // the run has ended: what is known stays
  }
  function draw(state) {
    if (!view.strips) return;
    charts.draw(view, state, { now: null });
    const scale = byId('waiting');
    scale.textContent = '';
    scale.append('0');
    const ramp = scale.appendChild(document.createElement('i'));
    ramp.className = 'ramp';
    ramp.style.background = charts.ramp();
    scale.append(units.count(view.max));
  }
  function textAt(time, y) {
    const cell = view.strips && view.cell && view.cell(time, y);
    return cell ? ', CPU ' + cell.cpu + ': ' + units.count(cell.mean) + ' tasks on average, at most ' + cell.most : '';
  }
  // The run keeps the scheduler's events; handlers: see charts.create().
  function begin(handlers) { on = handlers; }
  return { begin, update, draw, textAt, view };
}());
