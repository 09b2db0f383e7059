(function () {
  'use strict';
  var svg = document.currentScript.closest('svg'), details = svg.querySelector('.details');
  svg.addEventListener('mouseover', function (e) {
    var title = e.target.tagName === 'rect' && e.target.querySelector('title');
    details.textContent = title ? title.textContent : '';
  });
}());
