#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# heatmap: the place of the cells of a heat map, and the mouse, in a real browser.
. "$(dirname "$0")/../../lib.sh"
. "$TOP/tests/tools/browser.sh"

printf '1000000000 1000\n1500000000 1000\n2000000000 50000\n' | "$PROFSCRIPT" heatmap - "$TMP/heat.html"
in_browser 'heat map' "$TMP/heat.html" <<'END'
var cells = document.querySelectorAll('#cells rect');
check('a cell for each', cells.length === 3, cells.length);
check('later is right, longer is up', cells[2].getBoundingClientRect().left > cells[0].getBoundingClientRect().left
  && cells[2].getBoundingClientRect().top < cells[0].getBoundingClientRect().top);
fire('mouseover', cells[0]);
check('the mouse shows figures', /939 ns to 1.02 us: 1$/.test(document.querySelector('.details').textContent));
END
loads_nothing "$TMP/heat.html"
"$PROFSCRIPT" multi-trace -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/ --input "$DATA/sched.data" \
	--heatmap "$TMP/pairs.svg" >"$TMP/out" 2>"$TMP/err"
expect_line 'a run says where its heat map is' "The heat map is in $TMP/pairs-sched_wakeup-sched_switch.svg" "$TMP/err"
