#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Pictures in a real browser: what a click, a search and the mouse do in a flame graph and a heat map.
. "$(dirname "$0")/../../lib.sh"
command -v chromium >/dev/null || skip_all 'no chromium'

# dom PAGE: the page as it is when its scripts have run
dom() {
	timeout 90 chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
		--disable-component-update --disable-sync --user-data-dir="$TMP/chromium" --window-size=1200,800 \
		--virtual-time-budget=2000 --dump-dom "$1" 2>/dev/null
}

# in_browser NAME FILE SCRIPT: SCRIPT runs behind a page and calls check(NAME, CONDITION), each a test
in_browser() {
	local line
	{
		cat "$2"
		cat <<'END'
<pre id="results"></pre><script>
var lines = [];
function check(name, ok, seen) { lines.push((ok ? 'PASS ' : 'FAIL ') + name + (ok ? '' : ' -- ' + seen)); }
function frame(name) {
  return Array.prototype.find.call(document.querySelectorAll('#frames g'), function (g) {
    return g.querySelector('title').textContent.indexOf(name + ' (') === 0;
  });
}
function box(name) { return frame(name).querySelector('rect').getBoundingClientRect(); }
function fire(type, element, more) {
  element.dispatchEvent(new MouseEvent(type, Object.assign({ bubbles: true }, more)));
}
function hidden(name) { return getComputedStyle(frame(name)).display === 'none'; }
function text(id) { return document.getElementById(id).textContent; }
try {
END
		cat
		echo '} catch (error) { check("no exception", false, error.stack); }'
		echo "document.getElementById('results').textContent = lines.join('\\n');</script>"
	} >"$TMP/page.html"
	dom "file://$TMP/page.html" >"$TMP/dom"
	sed -n '/<pre id="results">/,/<\/pre>/p' "$TMP/dom" | sed 's/<[^>]*>//g' >"$TMP/lines"
	while read -r line; do
		echo "$line" >"$TMP/line"
		case $line in
		PASS*) result 0 "$1: ${line#PASS }" ;;
		FAIL*) result 1 "$1: ${line#FAIL }" "$TMP/line" ;;
		esac
	done <"$TMP/lines"
	grep -q ^PASS "$TMP/lines"
	result $? "$1: ran" "$TMP/dom"
}

cat >"$TMP/cpu.folded" <<'END'
app;main;parse;read_file 300
app;main;parse;lex 100
app;main;run;eval<int, "x">;lex 200
app;main;run;]]></title><script>alert(1)</script> 200
app;main;run;entry_SYSCALL_64_after_hwframe;do_syscall_64 100
other;idle 100
END
check 'a page is drawn' "$PROFSCRIPT" flamegraph "$TMP/cpu.folded" "$TMP/cpu.html"

in_browser 'flame graph' "$TMP/cpu.html" <<'END'
var all = box('all').width, near = function (a, b) { return Math.abs(a - b) < 2; };
check('as wide as the window', near(all, document.documentElement.clientWidth - 20), all);
check('widths are shares', near(box('app').width, all * 0.9) && near(box('lex').width, all * 0.1), box('app').width);
check('callees above callers', box('main').top < box('app').top);
fire('click', frame('run').querySelector('rect'));
check('a click zooms', near(box('run').width, all), box('run').width);
check('what it calls grows', near(box('do_syscall_64').width, all / 5), box('do_syscall_64').width);
check('its callers stay, paler', near(box('main').width, all) && frame('main').classList.contains('parent'));
check('others go', hidden('parse') && hidden('other'));
fire('click', document.getElementById('unzoom'));
check('Reset Zoom', near(box('run').width, all / 2) && !hidden('other'));
window.prompt = function () { return '^lex$'; };
fire('click', document.getElementById('search'));
check('a search highlights', frame('lex').querySelector('rect').getAttribute('fill') === 'rgb(230,0,230)');
check('and tells the share', text('matched') === 'Matched: 30.0%', text('matched'));
check('others keep their colours', frame('main').querySelector('rect').getAttribute('fill') !== 'rgb(230,0,230)');
fire('click', document.getElementById('search'));
check('Reset Search', frame('lex').querySelector('rect').getAttribute('fill') !== 'rgb(230,0,230)');
window.prompt = function () { return 'PARSE|lex'; };
window.dispatchEvent(new KeyboardEvent('keydown', { key: 'f', ctrlKey: true }));
check('Ctrl-F', text('matched') === 'Matched: 30.0%', text('matched'));
fire('click', document.getElementById('ignorecase'));
check('ic ignores case; what is inside a match counts once', text('matched') === 'Matched: 60.0%', text('matched'));
fire('mouseover', frame('parse').querySelector('rect'));
check('the mouse shows figures', text('details') === 'Function: parse (400 samples, 40.00%)', text('details'));
check('names are no markup', document.querySelectorAll('script').length === 2 && 
  frame(']]>\x3c/title>\x3cscript>alert(1)\x3c/script>'), document.querySelectorAll('script').length);
check('a table of functions', document.querySelector('table').rows[1].textContent.indexOf('lex') > 0);
END

"$PROFSCRIPT" flamegraph --inverted "$TMP/cpu.folded" "$TMP/icicle.svg"
dom "file://$TMP/icicle.svg?s=read_" >"$TMP/dom"
expect_line 'a picture searches for what its address says' 'Matched: 30\.0%' "$TMP/dom"
in_browser 'icicle' "$TMP/icicle.svg" <<'END'
check('callees below callers', box('main').top > box('app').top);
fire('click', frame('run').querySelector('rect'));
check('zoom', hidden('parse') && !hidden('main') && !hidden('do_syscall_64'));
END

printf '1000000000 1000\n1500000000 1000\n2000000000 50000\n' | "$PROFSCRIPT" heatmap - "$TMP/heat.html"
in_browser 'heat map' "$TMP/heat.html" <<'END'
var cells = document.querySelectorAll('#cells rect');
check('a cell for each', cells.length === 3, cells.length);
check('later is right, longer is up', cells[2].getBoundingClientRect().left > cells[0].getBoundingClientRect().left
  && cells[2].getBoundingClientRect().top < cells[0].getBoundingClientRect().top);
fire('mouseover', cells[0]);
check('the mouse shows figures', /939 ns to 1.02 µs: 1$/.test(document.querySelector('.details').textContent));
END
check 'pictures load nothing' sh -c '! grep -o "https\?://[^\" ]*" "$@" | grep -v :http://www.w3.org/2000/svg' - \
	"$TMP/cpu.html" "$TMP/icicle.svg" "$TMP/heat.html"
