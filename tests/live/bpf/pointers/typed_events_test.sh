#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Events with typed arguments, and the members of kernel structures: what programs read is what others know of the
# same task and file.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_process_exec

execs=(-e 'tp_btf:sched_process_exec/bprm->argc == 3/' --no-inherit -q)
"$PROFSCRIPT" exec "${execs[@]}" 'count()' --duration 1ms >/dev/null 2>"$TMP/err" || skip_all "$(head -n 1 "$TMP/err")"

# A program of its own, whose inode nobody else has.
cp "$(type -P true)" "$TMP/mytrue"
inode=$(stat -c %i "$TMP/mytrue")
host=$(uname -n)

# takes NAME REGEX ARGS...: exec with these arguments, beside three runs of the program, prints a line that matches
takes() {
	local name=$1 regex=$2
	shift 2
	"$PROFSCRIPT" exec "$@" -- bash -c "$TMP/mytrue a b; $TMP/mytrue a; $TMP/mytrue a b; :" >"$TMP/out" 2>"$TMP/err"
	cat "$TMP/err" >>"$TMP/out"
	expect_line "$name" "$regex" "$TMP/out"
}

takes 'members behind pointers in a handler' "^mytrue 3 $inode bash $host true$" \
	-e tp_btf:sched_process_exec 'if ev.bprm.argc == 3 then print(("%s %d %d %s %s %s"):format(ev.p.comm, ev.bprm.argc,
		ev.bprm.file.f_inode.i_ino, ev.p.real_parent.comm, ev.p.nsproxy.uts_ns.name.nodename,
		tostring(ev.p.pid == ev._tid))) end'
takes 'in filters and keys, counted in the kernel' "^mytrue +$inode +2$" \
	-e 'tp_btf:sched_process_exec/bprm->argc == 3 && p.real_parent.comm == "bash"/' \
	'count(ev.p.comm, ev.bprm.file.f_inode.i_ino)' -v
expect_line 'by a program' 'tp_btf:sched_process_exec: .*counted in the kernel' "$TMP/out"
takes 'in conditions of handlers' '^true +2$' \
	-e tp_btf:sched_process_exec 'if ev.bprm.argc == 3 and ev.p.real_parent.comm == "bash" then count("true") end'
takes 'reads that lead nowhere' 'values are 0: 2 reads of bprm.interpreter.f_inode.i_ino$' \
	-e 'tp_btf:sched_process_exec/bprm->argc == 3 && p.real_parent.comm == "bash"/' \
	'count(ev.bprm.interpreter.f_inode.i_ino, ev.bprm.file.f_inode.i_ino)'
takes 'words of bpftrace' "^ *$inode +2$" \
	-e tp_btf:sched_process_exec 'if args->bprm->argc == 3 then @[args->bprm->file->f_inode->i_ino] = count() end'
takes 'the line of an event' ': tp_btf:sched_process_exec: p=0x[0-9a-f]+ old_pid=[0-9]+ bprm=0x[0-9a-f]+ bprm.argc=3$' \
	--begin 'n = 0' -e 'tp_btf:sched_process_exec/bprm.argc == 3/' 'out:print_event(ev)'

takes 'text behind pointers' "^mytrue +$TMP/mytrue +tmp\.[A-Za-z0-9]+ +2$" \
	-e 'tp_btf:sched_process_exec/bprm->argc == 3 && p.real_parent.comm == "bash"/' \
	'count(ev.p.comm, str(ev.bprm.filename), str(bprm->file->f_path.dentry->d_parent->d_name.name))'
takes 'text in filters, and a pointer that is null' $'^2\t<null>$' \
	-e 'tp_btf:sched_process_exec/str(bprm->filename) ~ "*/mytrue" && bprm->argc == 2/' \
	'print(ev.bprm.argc, ev:string "bprm.interpreter.f_path.dentry.d_name.name")'

"$PROFSCRIPT" exec -e 'tp_btf:sys_enter/user("struct timespec64.tv_nsec", regs.dx) == 20000000/' \
	'print(user("u64", regs.dx), user("struct timespec64.tv_nsec", ev.regs.dx), user("u8", id))' -- sleep 0.02 \
	>"$TMP/out" 2>&1
expect_line "a program's memory" $'^0\t20000000\tnil$' "$TMP/out"

cat >"$TMP/exits.lua" <<'EOF'
return {
  summary = 'Print how processes end',
  start = function(_, out)
    local first
    local function status(p) return bit.rshift(p.exit_code, 8) end
    return {
      ['tp_btf:sched_process_exit'] = function(ev)
        local p = ev.p
        first = first or ev:keep().p
        if p.comm == 'sh' then out:print('ends', p.comm, bit.rshift(ev.p.exit_code, 8), p.signal.nr_threads >= 0) end
      end,
      stop = function() out:print('kept', type(first.comm), pcall(status, first) and 'read' or 'not') end,
    }
  end,
}
EOF
"$PROFSCRIPT" "$TMP/exits.lua" -- sh -c 'exit 7' >"$TMP/out" 2>"$TMP/err"
expect_line 'a script' $'^ends\tsh\t7\ttrue$' "$TMP/out"
expect_line 'a kept event' $'^kept\tstring\tread$' "$TMP/out"

refused 'a member' 2 'bad expression .*: struct task_struct has no member .pdi. at column 15; did you mean .pid.\?' \
	exec -e tp_btf:sched_switch 'count(ev.prev.pdi)'
refused 'a member in a filter' 2 'bad event .*: struct task_struct has no member .pdi. at column 27; did you mean' \
	exec -e 'tp_btf:sched_switch/prev->pdi > 0/' 'count()'
refused 'a tracepoint' 2 "tp_btf:sched_swich: the kernel's BTF has no tracepoint .sched_swich.; did you mean" \
	exec -e tp_btf:sched_swich 'count()'
refused 'without programs' 3 'tp_btf:sched_switch: only a BPF program can take it: as --capture says' \
	exec -e tp_btf:sched_switch 'count()' --capture perf
refused 'in a recording' 2 'tp_btf:sched_switch: only events of this machine have typed arguments' \
	exec -e tp_btf:sched_switch 'count()' --input "$DATA/sched.data"
