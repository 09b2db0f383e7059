# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Pictures and the page of --serve in a real browser, for tests that source this after tests/lib.sh. Skips them if there
# is no browser.
command -v chromium >/dev/null || skip_all 'no chromium'

# dom PAGE [OPTION...]: the page after its scripts have run, for $browser_ms of its own time
dom() {
	timeout 90 chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
		--disable-component-update --disable-sync --user-data-dir="$TMP/chromium" --window-size=1200,800 \
		--virtual-time-budget="${browser_ms:-2000}" "${@:2}" --dump-dom "$1" 2>/dev/null
}

# in_browser NAME FILE [OPTION...] <SCRIPT: SCRIPT runs after the page's own script and calls check(NAME, CONDITION), each a
# test; what it does later ends with print_results()
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
  element.dispatchEvent(new MouseEvent(type, Object.assign({ bubbles: true, view: window }, more)));
}
// press and release over the chart of a page's view: from the middle of one report to that of another
function drag(view, i, j, y) {
  var overlay = view.box.querySelector('.overlay'), area = view.box.getBoundingClientRect();
  function at(k) {
    var report = model.reports[k];
    return { clientX: area.left + charts.xOf((model.startOf(report) + report.time) / 2), clientY: area.top + y };
  }
  fire('mousedown', overlay, at(i));
  fire('mousemove', overlay, at(j));
  fire('mouseup', overlay, at(j));
}
function press(key, more) {
  document.body.dispatchEvent(new KeyboardEvent('keydown', Object.assign({ key: key, bubbles: true, cancelable: true }, more)));
}
function hidden(name) { return getComputedStyle(frame(name)).display === 'none'; }
function text(id) { return document.getElementById(id).textContent; }
function print_results() { document.getElementById('results').textContent = lines.join('\n'); }
try {
END
		cat
		echo '} catch (error) { check("no exception", false, error.stack); }'
		echo 'print_results();</script>'
	} >"$TMP/page.html"
	dom "file://$TMP/page.html" "${@:3}" >"$TMP/dom"
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

# loads_nothing FILE...: the pictures contain no address except that of SVG
loads_nothing() {
	check 'pictures load nothing' sh -c '! grep -Ho "https\?://[^\" ]*" "$@" | grep -v :http://www.w3.org/2000/svg' - "$@"
}

# serve ARG...: starts profscript with a page; its address is $url, and the pid of profscript $tracer
serve() {
	: >"$TMP/err" # the line of the run before
	"$PROFSCRIPT" "$@" --serve 0 >"$TMP/out" 2>"$TMP/err" &
	tracer=$!
	wait_for 60 grep -q 'the page is at' "$TMP/err"
	url=$(sed -n 's/.* the page is at //p' "$TMP/err")
}

# get PATH: asks the server of $url; prints the status, and the body goes to $TMP/body
get() {
	local host=${url#http://} path=$1
	host=${host%%/*}
	exec {web}<>"/dev/tcp/${host%:*}/${host#*:}"
	printf 'GET %s HTTP/1.0\r\nHost: %s\r\n\r\n' "$path" "$host" >&"$web"
	cat <&"$web" >"$TMP/answer"
	exec {web}>&-
	sed '1,/^\r$/d' "$TMP/answer" >"$TMP/body"
	sed -n '1s/[^ ]* \([0-9]*\).*/\1/p' "$TMP/answer"
}
