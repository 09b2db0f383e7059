#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# flamegraph: clicks, a search and the mouse in a flame graph, in a real browser.
. "$(dirname "$0")/../../lib.sh"
. "$TOP/tests/tools/browser.sh"

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

{
	printf 'app'
	printf ';deep%d' $(seq 120)
	echo ' 10'
} >"$TMP/deep.folded"
for kind in html svg; do
	"$PROFSCRIPT" flamegraph "$TMP/deep.folded" "$TMP/deep.$kind"
	in_browser "deep stacks, $kind" "$TMP/deep.$kind" <<'END'
check('the roots are seen', box('all').bottom <= window.innerHeight && box('all').top > 0 && window.scrollY > 500, box('all').top);
END
done

"$PROFSCRIPT" flamegraph --inverted "$TMP/cpu.folded" "$TMP/icicle.svg"
dom "file://$TMP/icicle.svg?s=read_" >"$TMP/dom"
expect_line 'a picture searches for the text in its address' 'Matched: 30\.0%' "$TMP/dom"
in_browser 'icicle' "$TMP/icicle.svg" <<'END'
check('callees below callers', box('main').top > box('app').top);
fire('click', frame('run').querySelector('rect'));
check('zoom', hidden('parse') && !hidden('main') && !hidden('do_syscall_64'));
END

loads_nothing "$TMP/cpu.html" "$TMP/icicle.svg"
