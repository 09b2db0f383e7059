-- SPDX-License-Identifier: GPL-2.0-only
--- The functions of a C library, or of another allocator, that allocate and free memory, as probes.
local failure = require 'bindings.base.failure'

local malloc = {}

-- The registers of arguments, by the name of the processor.
local REGISTERS = { x64 = { '%di', '%si', '%dx' }, arm64 = { '%x0', '%x1', '%x2' } }

-- Functions that return the object, and their arguments with its size. posix_memalign() returns it otherwise.
local ALLOCATE = {
  { 'malloc', size = { 1 } }, { 'calloc', size = { 1, 2 } }, { 'realloc', size = { 2 } },
  { 'aligned_alloc', size = { 2 } }, -- also memalign(), which is the same function in older libraries
}
local FREE = { { 'free', pointer = 1 }, { 'realloc', pointer = 1 } }

--- Requests the events of a library.
---@param session Session
---@param library string 'libc.so.6'
---@return { alloc: Event[], size: Event[], free: Event[] }
function malloc.events(session, library)
  local registers = REGISTERS[jit.arch]
    or failure.unavailable('--malloc: the registers of arguments are not known on %s', jit.arch)
  local found = { alloc = {}, size = {}, free = {} }
  local function add(kind, text, ...) table.insert(found[kind], session.event { text:format(...) }) end
  for _, one in ipairs(ALLOCATE) do
    local name, first, second = one[1], registers[one.size[1]], registers[one.size[2]]
    if second then
      add('size', "uprobe:%s@%s(n=%s,m=%s)//size='n*m'/", name, library, first, second)
    else
      add('size', 'uprobe:%s@%s(n=%s)//size=n/', name, library, first)
    end
    add('alloc', 'uretprobe:%s@%s(p=$retval)//ptr=p/', name, library)
  end
  for _, one in ipairs(FREE) do
    add('free', 'uprobe:%s@%s(p=%s)//ptr=p/', one[1], library, registers[one.pointer])
  end
  return found
end

return malloc
