-- SPDX-License-Identifier: GPL-2.0-only
--- Latency and bytes of file operations, by file, process and mount.
local calls = require 'lib.engines.files.calls'
local report = require 'lib.engines.files.report'

local function name_of(ev) return ev:string 'filename' end
local ends_of = {
  fildes = function(ev) return ev:user('u64', 'fildes') end,
  usockvec = function(ev) return ev:user('u64', 'usockvec') end,
}

return {
  summary = 'Latency and bytes of file operations, by file, process and mount',
  description = [[
Prints a row for each process, operation and file, those that took the most time in
all first. The operations are read, write, open, close, sync (fsync, fdatasync,
syncfs), list (of a folder) and resize. bytes are those that read and write calls
returned, err is the number of calls that failed. sendfile, splice and
copy_file_range are a read and a write.

A file has the path by which its process opened it. Those that were open before the
run are found in /proc. (fd 3) is a descriptor that was not seen being opened, of a
process that is gone or recorded. What is read and written by way of mmap or io_uring
is not seen.

--by names what makes a row: task, op, mount and file. --than also prints each slow
operation when it ends.]],
  examples = {
    { 'profscript files -p 1 -i 1s', 'files that a process uses, every second' },
    { 'profscript files --by op,file --sort bytes', 'the files with the most bytes, whoever uses them' },
    { 'profscript files --by op,mount', 'file systems' },
    { 'profscript files --than 10ms -- make', 'each slow operation of a command' },
  },
  unsupported = { 'event' },
  optional = { ['sched:sched_process_exec'] = 'descriptors that are closed then may have the wrong file' },
  options = {
    by = { type = 'string', default = 'task,op,file', argument = 'LIST', values = report.LABELS,
      help = 'what makes a row: task, op, mount, file' },
    top = { type = 'integer', default = 20, min = 1, help = 'rows to print' },
    than = { type = 'duration', help = 'also print each operation that takes longer than T' },
    all = { type = 'flag', help = 'also sockets, pipes and other descriptors' },
    mmap_pages = { default = 512 },
  },

  start = function(opt, out, session)
    local sums = report.new(opt, out, session)
    local handlers
    handlers, sums.files = calls.follow { opt = opt, session = session, add = sums:adder(), name_of = name_of,
      ends_of = ends_of }
    function handlers.draw() sums:draw() end
    function handlers.interval() sums:print() end
    handlers.stop = handlers.interval
    return handlers
  end,
}
