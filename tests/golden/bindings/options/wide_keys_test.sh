#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A 64-bit integer as the key of a table is an error at the line of the script, whether it is written or read, and
# everything else that stands in brackets works as before.
. "$(dirname "$0")/../../../lib.sh"
cd "$TMP" || exit 1
data=$DATA/syscalls.data

# handler TEXT: a script whose handler is TEXT, at line 3
handler() {
	printf '%s\n' "return { summary = 's', start = function(opt, out) local t, n = {}, 0" \
		"return { stop = function() out:print(n) end, ['raw_syscalls:sys_enter'] = function(ev)" \
		"$1" 'end } end }' >s.lua
}

handler "local key = ev:u64 'id' t[key] = (t[key] or 0) + 1"
partly 'a key that is written' 1 './s.lua:3: the 64-bit integer 12 cannot be the key of a table.*lib.map' '^0$' \
	./s.lua --input "$data"
handler "if t[ev:u64 'id'] then n = n + 1 end"
partly 'a key that is read' 1 './s.lua:3: the 64-bit integer 12 cannot be the key of a table' '^0$' ./s.lua --input "$data"
handler "local made = { [ev:u64 'id'] = true } n = made and 1"
partly 'a key of a constructor' 1 './s.lua:3: the 64-bit integer' '^0$' ./s.lua --input "$data"
handler "t[1ULL] = 1"
partly 'a constant' 1 './s.lua:3: the 64-bit integer 1 cannot' '^0$' ./s.lua --input "$data"
refused 'a one-liner' 1 'exec:1: the 64-bit integer [0-9]+ cannot be the key' \
	exec -e raw_syscalls:sys_enter "local t = {} t[ev:u64 'id'] = 1" --input "$data"

cat >other.lua <<'E'
#!/usr/bin/env profscript
local a = { [1] = 'x', ['y'] = 2, [ [[z]] ] = 3, [{}] = { [{}] = 4 } } -- ] [
local function first(...) local list = { ... } return list[#list - #list + 1] end
return {
  summary = 'brackets ]',
  start = function(_, out)
    local ids, t = require('lib.array').new(512), {}
    return {
      ['raw_syscalls:sys_enter'] = function(ev)
        ids[ev.id] = ids[ev.id] + 1
        t[ev.id] = (t[ev.id] or 0) + 1
        t[a[
          1]] = #ev.args + ev.args[0] * 0
      end,
      stop = function()
        local same = true
        for i = 0, 511 do same = same and ids[i] == (t[i] or 0) end
        out:print(same, t.x, a['y'], a['z'], a[a[1] and 1], first(1, 2), ("]["):rep(2), "a\"]", [==[ ]] ]==])
      end,
    }
  end,
}
E
printf 'true\t6\t2\t3\tx\t1\t][][\ta"]\t ]] \n' >expected
expect_text 'other brackets' expected "$PROFSCRIPT" ./other.lua --input "$data"
printf '%s\n' 'return {' 'summary = t[1' '}' >s.lua
refused 'a missing bracket' 2 "./s.lua:3: ']' expected" ./s.lua --input "$data"

# Numbers that are not exact, as keys of whatever takes keys.
cat >inexact.lua <<'E'
local join, map, aggregate, counter = require 'lib.join', require 'lib.map', require 'lib.aggregate', require 'lib.counter'
return { summary = 'keys', options = { how = { type = 'string', required = true, help = 'which' } },
  start = function(opt, out)
    local j, m, a, c, t = join.new(), map.new(), aggregate.new('count', { 'x' }), counter.new { 'x' }, {}
    local use = {
      start = function(key) j:start(key, 1) end,
      finish = function(key) j:finish(key, 1) end,
      map = function(key) m:set(key, 1) end,
      count = function(key) a:add(key) end,
      counter = function(key) c:add(1, key) end,
      table = function(key) t[key] = 1 end,
    }
    return {
      ['raw_syscalls:sys_enter'] = function(ev) use[opt.how](2 ^ 53 + ev.id) end,
      stop = function() out:print('stopped') end,
    }
  end }
E
line=6
for how in start finish map count counter table; do
	"$PROFSCRIPT" ./inexact.lua --how $how --input "$data" >out 2>err
	check "$how: an error" test $? -eq 1
	expect_line "$how: the script's line" "^profscript: ./inexact.lua:$line: the number 900719925474[0-9]* cannot be a key" err
	line=$((line + 1))
done
"$PROFSCRIPT" exec -e raw_syscalls:sys_enter 'count(9007199254740992LL + ev.id)' --input "$data" >out 2>err
check '64-bit integers are exact' test "$(grep -c '^ *900719925474[0-9]*[13579] ' out)" -gt 0
