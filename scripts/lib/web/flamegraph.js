(function () {
  'use strict';
  var CHAR = 6.9, PAD = 10, FOUND = 'rgb(230,0,230)';
  var root = document.currentScript.parentNode;
  function part(id) { return root.querySelector('#' + id); }
  var inner = part('frames'), details = part('details'), matched = part('matched');
  var width = 0, expression = null, ignoreCase = false;
  var frames = Array.prototype.map.call(inner.querySelectorAll('g'), function (g) {
    var title = g.querySelector('title').textContent, rect = g.querySelector('rect');
    return {
      g: g, rect: rect, text: g.querySelector('text'), title: title, name: title.replace(/ \([^(]*\)$/, ''),
      start: +g.getAttribute('data-s'), size: +g.getAttribute('data-n'), y: +rect.getAttribute('y'),
      fill: rect.getAttribute('fill')
    };
  });
  var zoomed = frames[0], of_element = new Map();
  frames.forEach(function (frame) { of_element.set(frame.g, frame); });

  function show(element, visible) { element.classList.toggle('hidden', !visible); }

  function label(frame, pixels) {
    var room = Math.floor((pixels - 6) / CHAR), name = frame.name;
    frame.text.textContent = room < 3 ? '' : name.length <= room ? name : name.slice(0, room - 2) + '..';
  }

  // Draws the frames in the range of the zoomed frame. Its callers get the whole width.
  function layout() {
    var from = zoomed.start, size = zoomed.size, to = from + size;
    var down = frames.length > 1 && frames[1].y > frames[0].y ? -1 : 1; // -1: icicle graph
    frames.forEach(function (frame) {
      var caller = (frame.y - zoomed.y) * down > 0, end = frame.start + frame.size;
      var visible = caller ? frame.start <= from && end >= to : frame.start >= from && end <= to;
      var x = caller ? 0 : (frame.start - from) / size, w = caller ? 1 : frame.size / size;
      visible = visible && w * width >= 0.1;
      show(frame.g, visible);
      frame.g.classList.toggle('parent', caller);
      if (!visible) return;
      frame.rect.setAttribute('x', (x * 100).toFixed(4) + '%');
      frame.rect.setAttribute('width', (w * 100).toFixed(4) + '%');
      frame.text.setAttribute('x', (x * 100).toFixed(4) + '%');
      label(frame, w * width);
    });
    show(part('unzoom'), zoomed !== frames[0]);
    countMatches();
  }

  function fit() {
    var window_width = root.parentNode && root.parentNode.clientWidth || window.innerWidth || 1200;
    if (window_width - 2 * PAD === width) return;
    width = Math.max(window_width - 2 * PAD, 1);
    inner.setAttribute('width', width);
    layout();
  }

  function zoom(frame) {
    zoomed = frame;
    layout();
  }

  // Sums up the matching frames. Those within other matching frames are not counted again.
  function countMatches() {
    if (!expression) {
      matched.textContent = ' ';
      return;
    }
    var from = zoomed.start, to = from + zoomed.size, sum = 0, reached = from;
    frames.filter(function (frame) { return frame.found && frame.start < to && frame.start + frame.size > from; })
      .sort(function (a, b) { return a.start - b.start || b.size - a.size; })
      .forEach(function (frame) {
        var start = Math.max(frame.start, reached), end = Math.min(frame.start + frame.size, to);
        if (end > start) {
          sum += end - start;
          reached = end;
        }
      });
    matched.textContent = 'Matched: ' + (sum * 100 / (to - from)).toFixed(1) + '%';
  }

  function search(term) {
    try {
      expression = term ? new RegExp(term, ignoreCase ? 'i' : '') : null;
    } catch (error) {
      details.textContent = error.message;
      return;
    }
    frames.forEach(function (frame) {
      frame.found = expression !== null && expression.test(frame.name);
      frame.rect.setAttribute('fill', frame.found ? FOUND : frame.fill);
    });
    part('search').textContent = expression ? 'Reset Search' : 'Search';
    countMatches();
  }

  function ask() {
    var term = window.prompt('Search for (a regular expression):', '');
    if (term !== null) search(term);
  }

  function frameOf(target) {
    return of_element.get(target.closest && target.closest('#frames g'));
  }

  root.addEventListener('click', function (event) {
    var frame = frameOf(event.target), id = event.target.id;
    if (frame) zoom(frame);
    else if (id === 'unzoom') zoom(frames[0]);
    else if (id === 'search') expression ? search('') : ask();
    else if (id === 'ignorecase') {
      ignoreCase = !ignoreCase;
      event.target.style.opacity = ignoreCase ? 1 : '';
      if (expression) search(expression.source);
    }
  });
  root.addEventListener('mouseover', function (event) {
    var frame = frameOf(event.target);
    details.textContent = frame ? 'Function: ' + frame.title : ' ';
  });
  window.addEventListener('keydown', function (event) {
    if (event.key === 'F3' || (event.ctrlKey || event.metaKey) && event.key === 'f') {
      event.preventDefault();
      expression ? search('') : ask();
    } else if (event.key === 'Escape') {
      zoom(frames[0]);
    }
  });
  window.addEventListener('resize', fit);

  root.removeAttribute('viewBox');
  root.setAttribute('width', '100%');
  ['search', 'ignorecase'].forEach(function (id) { show(part(id), true); });
  fit();
  // Deep stacks: the roots first.
  var down = frames.length > 1 && frames[1].y > frames[0].y, end = root.getBoundingClientRect().bottom;
  if (!down && end > window.innerHeight) window.scrollTo(0, window.scrollY + end - window.innerHeight);
  var given = /[?&]s=([^&]*)/.exec(window.location.search);
  if (given) search(decodeURIComponent(given[1]));
}());
