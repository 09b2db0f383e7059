-- SPDX-License-Identifier: GPL-2.0-only
--- What happens to the page cache, by file and task.
local page_cache = require 'lib.engines.memory.page_cache'

return {
  summary = 'Page cache by file and task: faults, and bytes added, removed and written back',
  description = [[
Prints a row for each task and file. faults are page faults in mapped files for which
a page had to be looked up. added are the bytes of pages that were read from the disk,
or are new, removed those that were dropped, also because a file was truncated, and
written those that ext4 gave to the disk; other file systems have none. A task that
removes or writes the pages of others is often kswapd or kworker.

--by names what makes a row: task and file. A file has its path on its file system, one
of them if it has several, or its inode if the kernel has no path at hand.]],
  examples = {
    { 'profscript pagecache -i 1s', 'all files, every second' },
    { 'profscript pagecache --by file --sort written', 'which files are written back' },
    { 'profscript pagecache -- make', 'what a command reads that was not in memory' },
  },
  unsupported = { 'event' },
  options = {
    by = { type = 'string', default = 'task,file', argument = 'LIST', values = page_cache.LABELS,
      help = 'what makes a row: task, file' },
    top = { type = 'integer', default = 20, min = 1, help = 'rows to print' },
  },

  start = function(opt, out, session)
    local cache = page_cache.new(opt, out, session)
    local handlers = cache:handlers()
    function handlers.interval() cache:print() end
    handlers.stop = handlers.interval
    return handlers
  end,
}
