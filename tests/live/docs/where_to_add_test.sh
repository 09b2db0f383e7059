#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# "Where to add things" in docs/internals.md is true: adds one of each to a copy of the tree, in the places that the
# table names and nowhere else, builds the copy, and runs what was added.
. "$(dirname "$0")/../../lib.sh"

tree=$TMP/tree
mkdir "$tree"
cp -a "$TOP"/{Makefile,bindings,bpf,native,runtime,scripts,examples,docs} "$tree"
mkdir -p "$tree/build" "$tree/tests"
cp -a "$TOP"/build/{bindings,bpf,native,runtime,*.o,*.a,*.h,datadir,stubs.lua,linux} "$tree/build" 2>/dev/null
cp -a "$TOP/tests/unit" "$TOP/tests/workloads" "$tree/tests"
cd "$tree" || exit 1

# row NAME: the table has this row
row() { check "the table has a row: $1" grep -qF "| $1" "$TOP/docs/internals.md"; }

# insert FILE PATTERN LINE: puts a line before the only one that has the text of the pattern
insert() {
	check "$1 has one place: $2" test "$(grep -cF -- "$2" "$1")" = 1
	awk -v pattern="$2" -v line="$3" 'index($0, pattern) { print line } { print }' "$1" >"$TMP/new" && cat "$TMP/new" >"$1"
}

row 'a profiler'
cat >scripts/profilers/added.lua <<'END'
local added = require 'lib.added'

return {
  summary = 'Count switches',
  start = function(opt, out)
    local n = 0
    return {
      ['sched:sched_switch'] = function() n = n + 1 end,
      stop = function() out:printf('%s %d\n', added.name(opt.added), n) end,
    }
  end,
}
END

row 'what two profilers share'
cat >scripts/lib/added.lua <<'END'
local added = {}

function added.name(text) return 'added ' .. (text or 'nothing') end

return added
END

row 'an option of all profilers'
insert bindings/options/declare.lua "name = 'dry_run'" \
	"  { group = 'run', name = 'added', type = 'string', argument = 'TEXT', help = 'an option that was added' },"

row 'a command that traces nothing'
cat >scripts/commands/greet.lua <<'END'
return {
  summary = 'Greet',
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  start = function(_, out) out:printf('hello\n') end,
}
END

row 'a format of `--export`'
cat >scripts/lib/export/formats/numbers.lua <<'END'
local numbers = { suffixes = { '.numbers' } }
numbers.__index = numbers

function numbers.new(target) return setmetatable({ target = target, n = 0 }, numbers) end

function numbers:event()
  return function() self.n = self.n + 1 end
end

function numbers:finish() self.target.file:put(('%d events\n'):format(self.n)) end

return numbers
END

row 'what goes along with a run'
cat >scripts/lib/followers/counter.lua <<'END'
return {
  options = {
    { group = 'run', name = 'say', type = 'string', argument = 'TEXT', help = 'a follower that was added' },
  },
  new = function(run)
    if not run.opt.say then return end
    return { stop = function() run.out:warn('a follower says ' .. run.opt.say) end }
  end,
}
END

row 'a way of taking events'
cat >bpf/ways/never.lua <<'END'
return { name = 'never', lacks = {}, refuses = function() return 'it never takes any' end }
END
insert bpf/ways/list.lua "require 'bpf.ways.capture'," "  require 'bpf.ways.never',"
cat >"$TMP/way.lua" <<'END'
local planner, ways = require 'bpf.plan.planner', require 'bpf.ways.list'
local event = { name = 'sched:sched_switch', is_tracepoint = true, attrs = {}, guards = 0, is_known = true, is_exact = true }
local plan = planner.plan({
  run = { capture = 'auto', needs = {}, interval = 0, verbose = 0 }, kernel = { release = 6.001 }, events = { event },
  offers = { { way = 'never', events = { 1 }, attrs = { {} }, known = {}, shared = {} } }, refusals = {},
}, ways)
print(plan.offers[1].refusal, plan.routes[1].way)
END

row 'a source of events'
mkdir runtime/added
cat >runtime/added/half.h <<'END'
/* SPDX-License-Identifier: GPL-2.0-only */
/* Half: a source of every second sample of a recording. */
#pragma once
#include "error.h"

struct source;

struct source *half_open(const char *path, struct error *err);
END
cat >runtime/added/half.c <<'END'
/* SPDX-License-Identifier: GPL-2.0-only */
#include "added/half.h"
#include <linux/perf_event.h>
#include "recording/recording.h"
#include "source.h"

static struct source_ops half_ops;
static int (*whole_next)(struct source *src, struct slot *out, int max, uint64_t until,
			 struct error *err);

static int half_next(struct source *src, struct slot *out, int max, uint64_t until,
		     struct error *err)
{
	static unsigned samples;
	int i, n, kept = 0;

	n = whole_next(src, out, max, until, err);
	for (i = 0; i < n; i++) {
		const struct perf_event_header *header = out[i].rec;

		if (header->type != PERF_RECORD_SAMPLE || samples++ % 2 == 0)
			out[kept++] = out[i];
	}
	return n < 0 ? n : kept;
}

struct source *half_open(const char *path, struct error *err)
{
	struct source *src = recording_open(path, err);

	if (!src)
		return NULL;
	half_ops = *src->ops;
	whole_next = half_ops.next;
	half_ops.next = half_next;
	src->ops = &half_ops;
	return src;
}
END
sed -i 's#^FFI_HEADERS := .*addprefix runtime/,#&added/half #' Makefile
insert bindings/run/session.lua 'local source = input and' "  if input and input:find '^half:' then return C.half_open(input:sub(6), err) end"
sed -i "s/local C_FOLDERS = {.*'recording'\(.*\)/&/; s/'recording', /'recording', 'added', /" tests/unit/bindings/rooms_spec.lua

# Its Makefile is newer than what was built, but says the same about that.
check 'the copy builds' make -j2 -o Makefile all
PROFSCRIPT=$tree/profscript
n=$(perf script -i "$DATA/sched.data" -F event 2>/dev/null | grep -c 'sched:sched_switch')
result $((n > 0 ? 0 : 1)) 'the recording has switches'

"$PROFSCRIPT" added --input "$DATA/sched.data" --added option >"$TMP/out" 2>&1
expect_line 'a profiler, a piece of the library, and an option' "^added option $n\$" "$TMP/out"
"$PROFSCRIPT" added --help=all >"$TMP/out" 2>&1
expect_line 'the help has the option' '--added TEXT  *an option that was added' "$TMP/out"
"$PROFSCRIPT" --help >"$TMP/out" 2>&1
expect_line 'the list has the profiler' '^ *added  *Count switches' "$TMP/out"
"$PROFSCRIPT" greet >"$TMP/out" 2>&1
expect_line 'a command' '^hello$' "$TMP/out"
"$PROFSCRIPT" trace -e sched:sched_switch --input "$DATA/sched.data" --export "$TMP/x.numbers" >"$TMP/out" 2>&1
check 'a format of --export' grep -qE '^[1-9][0-9]* events$' "$TMP/x.numbers"
"$PROFSCRIPT" added --input "$DATA/sched.data" --say hello >"$TMP/out" 2>&1
expect_line 'a follower' 'a follower says hello$' "$TMP/out"
"$PROFSCRIPT" --lua "$TMP/way.lua" >"$TMP/out" 2>&1
expect_line 'a way' "^it never takes any[[:space:]]capture$" "$TMP/out"
"$PROFSCRIPT" added --input "half:$DATA/sched.data" >"$TMP/out" 2>&1
expect_line 'a source' "^added nothing $(((n + 1) / 2))\$" "$TMP/out"
"$PROFSCRIPT" --lua /usr/bin/busted -o TAP tests/unit/bindings/rooms_spec.lua >"$TMP/out" 2>&1
check 'the rooms stay in order' sh -c "grep -q '^ok' $TMP/out && ! grep '^not ok' $TMP/out"
