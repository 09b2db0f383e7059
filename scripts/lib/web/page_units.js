'use strict';
/* exported units */
// Values for people: times, bytes, shares and counts, and times of day.
const units = (function () {
  const TIMES = [[1e9, 's'], [1e6, 'ms'], [1e3, 'us'], [1, 'ns']];
  const BYTES = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [1024, 'KiB'], [1, 'B']];
  const COUNTS = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, '']];
  // Of the units of lib.units.
  const KINDS = { ns: ['time', 1], us: ['time', 1e3], ms: ['time', 1e6], s: ['time', 1e9], bytes: ['bytes', 1],
    kb: ['bytes', 1024], percent: ['share', 1], time: ['clock', 1] };

  // What a column's numbers are: { kind, factor }.
  function of(column) {
    const found = KINDS[column.unit] || ['count', 1];
    return { kind: found[0], factor: found[1] };
  }
  // Three digits and a unit of a list.
  function scaled(value, list) {
    const size = Math.abs(value), unit = list.find(one => size >= one[0]) || list[list.length - 1];
    const n = value / unit[0], big = Math.abs(n);
    const digits = Number.isInteger(n) || big >= 100 ? 0 : big >= 10 ? 1 : 2;
    return n.toFixed(digits) + (unit[1] && (unit[1].length > 1 || list !== COUNTS) ? ' ' : '') + unit[1];
  }
  function short(value, kind) {
    if (kind === 'time') return value === 0 ? '0' : scaled(value, TIMES);
    if (kind === 'bytes') return value === 0 ? '0' : scaled(value, BYTES);
    if (kind === 'clock') return clock(value, true, 0.001);
    if (kind === 'share') return Number(value.toPrecision(3)) + ' %';
    return Math.abs(value) < 1000 ? String(Number(value.toPrecision(3))) : scaled(value, COUNTS);
  }
  function count(value) {
    return Number.isInteger(value) ? String(value) : value.toFixed(Math.abs(value) < 1 ? 4 : 2);
  }
  // A value of a column.
  function text(column, value) {
    if (value === null || value === undefined) return '';
    if (typeof value !== 'number') return String(value);
    const unit = of(column);
    if (unit.kind === 'count') return column.scale ? (value / column.scale).toFixed(3) : count(value);
    return short(value * unit.factor, unit.kind);
  }
  // A value of a column, per second.
  function rate(column, value) {
    const unit = of(column);
    return short(value * unit.factor, unit.kind) + '/s';
  }
  // A bound of a histogram, 2^exponent of the column's unit.
  function bound(column, exponent) {
    if (exponent < 0) return exponent < -1 ? 'below 0' : '0';
    const unit = of(column);
    return short(Math.pow(2, exponent) * unit.factor, unit.kind);
  }
  // The unit is in the cells.
  function title(column) {
    return of(column).kind === 'count' ? column.title :
      column.title.replace(/\s*\((ns|us|ms|s)\)$|(.)_(ns|us|ms|bytes|kb)$/, '$2');
  }
  function clock(time, isWall, step) {
    if (!isWall) return time.toFixed(step === undefined ? 6 : Math.max(0, -Math.floor(Math.log10(step)))) + ' s';
    const date = new Date(Math.round(time * 1000));
    return date.toTimeString().slice(0, step >= 60 ? 5 : 8) +
      (step >= 1 ? '' : '.' + String(date.getMilliseconds()).padStart(3, '0'));
  }
  return { of, short, text, rate, bound, title, clock, count };
}());
