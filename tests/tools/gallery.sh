#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Usage: gallery.sh DIR   Writes DIR/index.html: the page of --serve and all pictures, made from recordings, each as wide as
# a phone, a laptop and a wall, each above its name, which opens it alone. It is light or dark as the browser is.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
export TZ=UTC
data=$top/tests/recordings profscript=${PROFSCRIPT:-$top/profscript} dir=$1
mkdir -p "$dir"
rm -f "$dir"/*

# page NAME ADDRESS ARG...: the page of a run, with its reports instead of a server. ADDRESS is a script's expression.
page() {
	local name=$1 address=$2 url pid
	"$profscript" "${@:3}" -q --serve 0 >/dev/null 2>"$dir/err" &
	pid=$!
	until grep -qs 'stays until Ctrl-C' "$dir/err"; do
		kill -0 $pid
		sleep 0.1
	done
	url=$(sed -n 's/.* the page is at //p' "$dir/err")
	request() {
		local host=${url#http://}
		host=${host%%/*}
		exec {web}<>"/dev/tcp/${host%:*}/${host#*:}"
		printf 'GET /%s HTTP/1.0\r\nHost: %s\r\n\r\n' "$1${url#*\?}" "$host" >&"$web"
		sed '1,/^\r$/d' <&"$web"
		exec {web}>&-
	}
	request '?' >"$dir/page"
	# The run queues, as soon as they are computed; nothing without the scheduler's events.
	echo null >"$dir/queues"
	if request 'about?' | grep -q '"queues":true'; then
		until grep -q '"queues"' "$dir/queues"; do
			request 'ask?q=queues%3D400&' >"$dir/queues"
			sleep 0.1
		done
	fi
	{
		sed '/<head>/q' "$dir/page"
		echo '<script>const items ='
		request 'log?after=0&'
		echo ', about ='
		request 'about?' | sed 's/"host":"[^"]*"/"host":"host"/'
		echo ', queues ='
		cat "$dir/queues"
		cat <<END
;
window.fetch = path => path.startsWith('ask?q=queues') ? Promise.resolve({ ok: true, json: () => queues }) :
  path.startsWith('ask') || path.startsWith('log') && path !== 'log?after=0&token=' ? new Promise(() => {})
  : Promise.resolve({ ok: true, json: () => path.startsWith('log') ? items : about });
const time = n => items.items[n].time;
location.hash = $address;
</script>
END
		sed '1,/<head>/d' "$dir/page"
	} >"$dir/$name.html"
	kill -INT $pid
	wait $pid
	rm "$dir/err" "$dir/page" "$dir/queues"
}

cat >"$dir/cpu.folded" <<'END'
app;main;parse;read_file 300
app;main;parse;lex 100
app;main;run;eval;lex 200
app;main;run;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k] 300
other;idle 100
END
sed 's/lex 200/lex 60/; s/lex 100/lex 220/' "$dir/cpu.folded" >"$dir/before.folded"

page latency "'#' + time(8) + '-' + time(17)" rundelay --input "$data/hogs.data" -i 2
page compare "'#' + time(20) + '-' + time(26) + '&before=' + time(4) + '-' + time(10)" rundelay --input "$data/hogs.data" -i 2
page stacks "'#all'" exec -i 1 --input "$data/mixed.data" -g -e sched:sched_switch 'count(ev._comm, ev._stack)'
page buckets "'#all'" exec -i 2 --input "$data/hogs.data" -e sched:sched_switch 'hist(ev.prev_state)'
page counts "'#all'" exec -i 2 --input "$data/hogs.data" -e sched:sched_switch 'count(ev.next_comm)'
"$profscript" flamegraph "$dir/cpu.folded" "$dir/flames.svg"
"$profscript" flamegraph "$dir/cpu.folded" --diff "$dir/before.folded" "$dir/difference.html"
"$profscript" rundelay -q --input "$data/hogs.data" --heatmap "$dir/heat.html" >/dev/null
mv "$dir/heat-sched_switch-sched_switch.html" "$dir/heat.html"
rm "$dir"/heat-*
"$profscript" export -q "$data/hogs.data" -o "$dir/timeline.html" 2>/dev/null
rm "$dir"/*.folded

# Each picture is at the place that its name has in the list of the page's script, too.
cat >"$dir/index.html" <<'END'
<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<title>gallery</title><style>body { margin: 0; } iframe, a { position: absolute; border: 0; }
a { font: 12px/18px system-ui, sans-serif; }</style></head><body><script>
const names = ['latency.html', 'compare.html', 'stacks.html', 'counts.html', 'buckets.html', 'flames.svg', 'difference.html',
  'heat.html', 'timeline.html'];
const places = [];
names.forEach((name, row) => [390, 1280, 2560].reduce((left, width) => {
  places.push({ name, width, left, top: row * 820, height: 800 });
  return left + width + 20;
}, 0));
places.forEach(place => {
  const frame = document.body.appendChild(document.createElement('iframe'));
  frame.src = place.name;
  frame.style.cssText = ['left', 'top', 'width', 'height'].map(name => name + ':' + place[name] + 'px').join(';');
  const caption = document.body.appendChild(document.createElement('a'));
  caption.href = place.name;
  caption.textContent = place.name + ', ' + place.width + ' wide';
  caption.style.cssText = 'left:' + (place.left + 4) + 'px;top:' + (place.top + place.height) + 'px';
});
</script></body></html>
END
