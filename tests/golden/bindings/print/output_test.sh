#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Output that cannot be written is reported in one line.
. "$(dirname "$0")/../../../lib.sh"
sched=$DATA/sched.data

refused '-o in a missing folder' 1 "cannot open '/no/dir/file': No such file" trace --input "$sched" -o /no/dir/file
refused '-o onto a directory' 1 "cannot open '/': Is a directory" trace --input "$sched" -o /
refused '-o on a full device' 1 "cannot write '/dev/full': No space left" trace --input "$sched" -o /dev/full

# out:row prints a line of columns, below a heading when the names change, or an object.
cat >"$TMP/row.lua" <<'E'
return { summary = 's', start = function(_, out)
  local n = 0
  return { ['sched:sched_switch'] = function(ev)
    n = n + 1
    if n <= 2 then out:row { 'pid', n * 10, 'comm', n == 1 and 'a\nb' or nil, 'us', 1.5, 'file', 'x y' } end
    if n == 3 then out:row({ 'pid', 12345678901, 'tail', 'z' }, 'other') end
    if n == 4 then out:row { 'pid', 0xffff888100000000ULL, 'tail', 'z' } end
  end, stop = function() out:row { ev = 1 } end }
end }
E
row() { "$PROFSCRIPT" "$TMP/row.lua" --input "$sched" "$@" 2>"$TMP/err"; }
cat >"$TMP/want" <<'E'
     pid comm               us file
      10 a\x0ab          1.500 x y
      20                 1.500 x y
        pid tail
12345678901 z
18446612686364999680 z
E
row >"$TMP/got"
check 'out:row: lines' diff "$TMP/want" "$TMP/got"
expect_line 'out:row: not a list' 'row.lua:8: out:row takes names and values in turn' "$TMP/err"
cat >"$TMP/want" <<'E'
{"event":"row","pid":10,"comm":"a\u000ab","us":1.5,"file":"x y"}
{"event":"row","pid":20,"comm":null,"us":1.5,"file":"x y"}
{"event":"other","pid":12345678901,"tail":"z"}
{"event":"row","pid":"18446612686364999680","tail":"z"}
E
row --json >"$TMP/got"
check 'out:row: objects' diff "$TMP/want" "$TMP/got"
row --csv >"$TMP/got"
expect_line 'out:row: CSV' '^row,20,,1.5,x y$' "$TMP/got"

# Addresses beyond 2^53, which a number of Lua cannot hold.
cat >"$TMP/addresses.lua" <<'E'
return { summary = 's', start = function(_, out, session)
  session.want { stacks = true }
  return { ['kmem:kmalloc'] = function(ev)
    out:print(('%x %#x'):format(ev.ptr, ev.ptr), session.address_text(ev, ev.ptr))
    session.stop()
  end }
end }
E
"$PROFSCRIPT" "$TMP/addresses.lua" --input "$DATA/kmem.data" >"$TMP/got" 2>&1
expect_line 'addresses in formats' '^ffff88812cc73000 0xffff88812cc73000.ffff88812cc73000$' "$TMP/got"
for reader in 'python3 -c "import json, sys; print(json.load(sys.stdin)[\"ptr\"])"' 'jq -r .ptr'; do
	command -v "${reader%% *}" >/dev/null || continue
	"$PROFSCRIPT" trace -e kmem:kmalloc --json -N 1 --input "$DATA/kmem.data" 2>&1 | eval "$reader" >"$TMP/got" 2>&1
	expect_line "addresses in JSON, read by ${reader%% *}" '^0xffff88812cc73000$' "$TMP/got"
done
"$PROFSCRIPT" trace -e kmem:kmalloc --csv -N 1 --input "$DATA/kmem.data" >"$TMP/got" 2>&1
expect_line 'addresses in CSV' ',0xffffffff[0-9a-f]{8},0xffff88812cc73000,' "$TMP/got"
"$PROFSCRIPT" exec -e kmem:kmalloc 'count(ev.ptr, ev.bytes_req)' --json --input "$DATA/kmem.data" >"$TMP/got" 2>&1
expect_line 'addresses as keys' '"ptr":"0xffff88812cc73000","bytes_req":[0-9]+,' "$TMP/got"
for format in text csv json; do
	"$PROFSCRIPT" top -e kmem:kmalloc -k '(ptr)' --format $format --input "$DATA/kmem.data" >"$TMP/got" 2>&1
	expect_line "addresses as keys of top: $format" '(^|[,:"])0xffff88812cc73000["[:space:],]+("kmalloc":)?16' "$TMP/got"
done
pairs=(multi-trace -e kmem:kmalloc//key=ptr/ -e kmem:kfree//key=ptr/ --input "$DATA/kmemprof.data")
"$PROFSCRIPT" "${pairs[@]}" --perins >"$TMP/got" 2>&1
expect_line 'addresses as keys of pairs' '^0xffff888102eea000 kmalloc => kfree ' "$TMP/got"
for export in x.json x.profile.json x.html; do
	"$PROFSCRIPT" "${pairs[@]}" --export "$TMP/$export" >"$TMP/got" 2>&1
	expect_line "addresses as keys of pairs: $export" '"(key":"|ptr )0xffff888102eea000"' "$TMP/$export"
done
"$PROFSCRIPT" multi-trace -e kmem:kmalloc//key=ptr/printkey='printf("p%d",key&0xff)'/ -e kmem:kfree//key=ptr/ --perins \
	--input "$DATA/kmemprof.data" >"$TMP/got" 2>&1
expect_line 'printkey= comes before' '^p0 +kmalloc => kfree ' "$TMP/got"
"$PROFSCRIPT" trace -e kmem:kmalloc --json --input "$DATA/kmem.data" | grep -o '"ptr":"0x[0-9a-f]*' | sort |
	sed -n 's/.*:\(.*\)/\1"/; 1p; $p' >"$TMP/want"
"$PROFSCRIPT" exec -e kmem:kmalloc 'min(ev.ptr) max(ev.ptr)' --json --input "$DATA/kmem.data" |
	sed -E 's/.*:(.*)\}$/\1/' >"$TMP/got"
check 'the least and greatest address are exact' diff "$TMP/want" "$TMP/got"
cat >"$TMP/column.lua" <<'LUA'
local tables = require 'lib.table'
return { summary = 's', start = function(_, out, session)
  local spec = tables.new('t', { { name = 'at', unit = 'address' } })
  return { ['kmem:kmalloc'] = function(ev)
    out:table(spec, { { at = ev.ptr } })
    session.stop()
  end }
end }
LUA
"$PROFSCRIPT" trace -e page-faults --json -N 1 --input "$DATA/raw.data" >"$TMP/got" 2>&1
expect_line "the addresses of perf's events" '"_ip":"0x[0-9a-f]+"' "$TMP/got"
"$PROFSCRIPT" "$TMP/column.lua" --json --input "$DATA/kmem.data" >"$TMP/got" 2>&1
expect_line 'a column of addresses' '"at":"0xffff88812cc73000"' "$TMP/got"
"$PROFSCRIPT" exec -e kmem:kmalloc 'sum(ev.ptr) quantiles(ev.ptr) hist(ev.ptr) print(ev.ptr - 1)' --input "$DATA/kmem.data" \
	>"$TMP/got" 2>&1
check 'addresses end no script' test $? -eq 0
"$PROFSCRIPT" sql -e kmem:kmalloc --query 'SELECT k.ptr AS p, call_site, bytes_req FROM kmalloc k' --csv \
	--input "$DATA/kmem.data" >"$TMP/got" 2>&1
expect_line 'addresses in SQL' ',0xffff88812cc73000,0xffffffff[0-9a-f]{8},[0-9]+$' "$TMP/got"
