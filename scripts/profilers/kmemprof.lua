-- SPDX-License-Identifier: GPL-2.0-only
--- Memory by the stacks that allocate and free it.
local events = require 'lib.events'
local memprof = require 'lib.memprof'
local relation = require 'lib.relation'

return {
  summary = 'Profile memory by the stacks that allocate and free it',
  description = [[
The first -e selects the allocations, the second -e the frees. size= of an
allocation is its size in bytes (default: the field bytes_alloc). The key
identifies the object: ptr= or key= of an event, else -k, else the field ptr.

Reports memory that was allocated and freed, by the stacks of both; the
attribute stack records them. At the end, it reports how much was not freed.]],
  examples = {
    { 'profscript kmemprof -e kmem:kmalloc//stack/ -e kmem:kfree//stack/ -i 1000', 'kmalloc memory' },
    { [[profscript kmemprof -e 'kmem:mm_page_alloc//size=4096<<order/key=pfn/stack/']]
        .. ' -e kmem:mm_page_free//key=pfn/stack/ -m 256', 'pages' },
  },
  attributes = { 'key', 'ptr', 'size', 'trigger', 'untraced' },

  start = function(opt, out, session)
    for _, event in ipairs(events.list(opt.event)) do
      local attrs = event.attrs
      local key = attrs.ptr or not (attrs.key or opt.key or attrs.untraced) and event.fields.ptr and 'ptr'
      if key then event:set { key = key } end
    end
    local found, message = relation.events(opt)
    if not found then return nil, message end
    return memprof.run { name = 'kmemprof', opt = opt, out = out, session = session, events = found }
  end,
}
