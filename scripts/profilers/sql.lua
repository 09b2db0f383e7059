-- SPDX-License-Identifier: GPL-2.0-only
--- SQL over events: each event is a table.
local sql = require 'lib.sql'

return {
  summary = 'Query events with SQL',
  description = [[
Each event of -e is a table, named like the event without its system, or as
alias= says: sched:sched_switch is sched_switch. Its columns:

  _pid _tid _time _cpu _period   the sample; _time is ns of the events' clock
  common_flags ... and fields    those that `-e EVENT help` lists
  _comm                          name of the thread at that time

Integers are INTEGER (64-bit numbers of 2^63 and more are negative), strings
TEXT, arrays BLOB. With -i, the queries see the events of the interval, else
those of the whole run.

  event_metadata  a row for each table: table_name, event_system, event_name,
                  event_id, filter_expression, sample_count,
                  first_sample_time, last_sample_time, function_list...
  column_units    units of columns: table_name, column_name, unit
  events_lost     events that are missing: _cpu, _tid, from_time, to_time, count

  symbolic([field,] n)     name of a number or of bits, from the event's
                           format; field is 'vec' or 'softirq_entry.vec'
  ksymbol(addr)            kernel symbol        syscall(nr), syscall_name(nr)
  comm_get(tid)            last name of a task  element(array, i [, bytes])
  percentile(x, 0..100)    quantile(x, 0..1)    median(x)
  ipv4_str ipv4_hstr ipv6_str ipsa_str ipsa_hstr uuid_str guid_str mac_str (blob)

Queries only read. --output2 keeps the events in a database file; tables of a
former run in it are replaced.]],
  examples = {
    { "profscript sql -e sched:sched_wakeup -i 1000 --query 'SELECT comm, count(*) AS n FROM sched_wakeup GROUP BY comm"
      .. " ORDER BY n DESC LIMIT 10'", 'the tasks that are woken up most often, every second' },
    { [[profscript sql -e irq:softirq_entry --duration 5 --query "SELECT symbolic('vec', vec) AS name, count(*)]]
      .. [[ FROM softirq_entry GROUP BY vec"]], 'softirqs by name' },
    { "profscript sql -e 'raw_syscalls:sys_enter//alias=a/,raw_syscalls:sys_exit//alias=b/index=_tid/' --query "
      .. "'SELECT syscall(a.id), max((SELECT b._time FROM b WHERE b._tid = a._tid AND b._time > a._time LIMIT 1)"
      .. " - a._time) FROM a GROUP BY a.id' -- ls", 'the longest system call of each kind' },
    { 'profscript sql -e sched:sched_switch --output2 events.db --duration 10', 'events for the sqlite3 shell' },
    { "profscript sql -e 'profile/-F 500/' --query 'SELECT _comm, count(*) FROM cpu_clock GROUP BY 1' --duration 3",
      'samples of another profiler' },
  },
  attributes = { 'index' },
  options = {
    query = { own = true, group = 'script', help = "SELECT statements, separated by ';'" },
    output2 = { type = 'string', argument = 'FILE', help = 'keep the events in this SQLite database' },
    verify = { type = 'flag', help = 'compare each result with that of ordinary tables' },
    memory = { type = 'size', default = '256m', min = 65536,
      help = 'memory for kept events; beyond it, those of a recording go into a temporary file, and the oldest live '
        .. 'ones are dropped, which is reported' },
  },

  start = function(opt, out, session)
    return sql.run(opt, out, session)
  end,
}
