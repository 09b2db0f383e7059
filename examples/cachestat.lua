-- SPDX-License-Identifier: GPL-2.0-only
--- Prints how many pages are read from the page cache, and how many had to be put there first.
--- Needs the event filemap:mm_filemap_get_pages, which kernels have since about 6.12.
---
---   profscript examples/cachestat.lua -i 1s
return {
  summary = 'Print hits and misses of the page cache',
  metrics = { row = { hits = 'counter', misses = 'counter' } },
  start = function(_, out)
    local asked, missed = 0, 0
    local function ask(ev) asked = asked + ev.last_index - ev.index + 1 end
    local function report()
      local hits = math.max(asked - missed, 0)
      out:row { 'hits', hits, 'misses', missed, 'percent', asked > 0 and hits / asked * 100 or 0 }
      asked, missed = 0, 0
    end
    return {
      ['filemap:mm_filemap_get_pages,filemap:mm_filemap_map_pages'] = ask,
      ['filemap:mm_filemap_add_to_page_cache'] = function(ev) missed = missed + 2 ^ ev.order end,
      interval = report,
      stop = report,
    }
  end,
}
