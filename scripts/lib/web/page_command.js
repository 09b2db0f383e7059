'use strict';
/* exported commands */
// The command that gives what is seen on the page.
const commands = (function () {
  const quote = word => /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'";
  const sqlName = name => name.replace(/\W+/g, '_').replace(/^_+|_+$/g, '');
  // Puts words at the end of the options, before a workload.
  function addWords(words, ...more) {
    const at = words.indexOf('--');
    words.splice(at < 0 ? words.length : at, 0, ...more);
  }
  // Limits the command to the part of the recording that these reports are about.
  function addPart(words, list) {
    if (!list.length || !list[0].part) return;
    let [start, stop] = [list[0].part[0], list[list.length - 1].part[1]];
    const at = words.findIndex(word => /^--time(=|$)/.test(word));
    if (at >= 0) {
      const given = words[at] === '--time' ? words.splice(at, 2)[1] : words.splice(at, 1)[0].slice(7);
      start = start || given.split(',')[0];
      stop = stop || given.split(',')[1];
    }
    if (start || stop) addWords(words, '--time', start + ',' + stop);
  }
  // given: the words of the run's command; list: the selected reports; labels: names and values of the view's row.
  function text(given, list, view, labels) {
    const words = given.map(quote);
    addPart(words, list);
    if (view && (view.focus || view.sort) && !given.some(word => /^--query/.test(word))) {
      const where = labels.map(one => sqlName(one[0]) + (one[1] === null ? ' IS NULL' :
        ' = ' + (typeof one[1] === 'number' ? one[1] : "'" + String(one[1]).replace(/'/g, "''") + "'"))).join(' AND ');
      addWords(words, '--query', quote('SELECT * FROM ' + sqlName(view.name) +
        (view.focus && where ? ' WHERE ' + where : '') +
        (view.sort ? ' ORDER BY ' + sqlName(view.sort) + (view.down ? ' DESC' : '') : '')));
    }
    return words.join(' ');
  }
  return { text };
}());
