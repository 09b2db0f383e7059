#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The page of --serve and all pictures look as they did: the gallery, light and dark, is compared with the reference beside
# this test, which UPDATE=1 makes anew. Both are reduced to points of 8x8 pixels, so that other fonts and their edges matter
# little; of a picture, at most 1 % of the points may differ by more than 24 of 255.
. "$(dirname "$0")/../../../lib.sh"
. "$TOP/tests/tools/browser.sh"

check 'the gallery is made' "$TOP/tests/tools/gallery.sh" "$TMP/gallery"
for style in light dark; do
	scheme=$([ $style = dark ] && echo 0 || echo 1) reference=$HERE/pictures-$style.webp
	timeout 200 chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync \
		--user-data-dir="$TMP/chromium" --hide-scrollbars --blink-settings=preferredColorScheme="$scheme" \
		--window-size=4270,7380 --virtual-time-budget=20000 --enable-logging=stderr --screenshot="$TMP/$style.png" \
		"file://$TMP/gallery/index.html" >"$TMP/out" 2>"$TMP/err"
	check "$style: no page complains" sh -c '! grep CONSOLE "$1"' - "$TMP/err"
	{
		echo "<img id='fresh' hidden src='data:image/png;base64,$(base64 -w0 "$TMP/$style.png")'>"
		[ ! -s "$reference" ] || echo "<img id='reference' hidden src='data:image/webp;base64,$(base64 -w0 "$reference")'>"
		echo '<script>const reduced = 8;'
		sed -n '/^const names/,/^}, 0));/p' "$TMP/gallery/index.html"
		echo '</script>'
	} >"$TMP/compare.html"
	browser_ms=20000 in_browser $style "$TMP/compare.html" <<END
$([ -z "${UPDATE-}" ] || echo 'var update = true;')
function points(id) {
  var canvas = document.createElement('canvas');
  canvas.width = Math.floor(4270 / reduced);
  canvas.height = Math.floor(7380 / reduced);
  var paint = canvas.getContext('2d');
  paint.imageSmoothingQuality = 'high';
  paint.drawImage(document.getElementById(id), 0, 0, canvas.width, canvas.height);
  return { canvas: canvas, width: canvas.width, data: paint.getImageData(0, 0, canvas.width, canvas.height).data };
}
function compare() {
  var now = points('fresh');
  if (window.update) {
    var made = document.body.appendChild(document.createElement('pre'));
    made.id = 'made';
    check('made anew', true);
    made.textContent = now.canvas.toDataURL('image/webp', 1).replace(/.*,/, '');
    return;
  }
  var before = points('reference');
  places.forEach(function (place) {
    var wrong = 0, all = 0, from = Math.ceil(place.left / reduced), top = Math.ceil(place.top / reduced);
    for (var y = top; y < Math.floor((place.top + place.height) / reduced); y++) {
      for (var x = from; x < Math.floor((place.left + place.width) / reduced); x++) {
        var at = 4 * (y * now.width + x);
        all++;
        wrong += [0, 1, 2].some(function (i) { return Math.abs(now.data[at + i] - before.data[at + i]) > 24; });
      }
    }
    check(place.name + ', ' + place.width + ' wide', wrong <= 0.01 * all, (100 * wrong / all).toFixed(1) + ' % differ');
  });
}
window.addEventListener('load', function () {
  try { compare(); } catch (error) { check('no exception', false, error.stack); }
  print_results();
});
END
	[ -z "${UPDATE-}" ] || sed -n 's/.*<pre id="made">\([^<]*\).*/\1/p' "$TMP/dom" | base64 -d >"$reference"
done
