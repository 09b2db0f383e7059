-- SPDX-License-Identifier: GPL-2.0-only
--- Trees of stacks, merged from the outermost frames: the data of a flame graph.
local text = require 'bindings.base.text'
local units = require 'lib.units'

local flametree = {}

local STEP = 65536 -- bytes between two calls of on_bytes
local MAX_DEPTH = 4096 -- frames of a stack in a file; the kernel records at most 1024 by default

--- A frame, or a name that stacks are grouped by.
---@class FlameNode
---@field name string
---@field kind string 'k' kernel, 'j' JIT code, 'i' inlined, 'u' other user code, '?' only the file is known,
--- 'r' a name that stacks are grouped by
---@field value number sum of all stacks that contain the frame
---@field self number sum of the stacks that end in the frame
---@field base number `value` in the base of a comparison
---@field base_self number `self` in the base of a comparison
---@field children? table<string, FlameNode> by name

local function new_node(name, kind)
  return { name = name, kind = kind, value = 0, self = 0, base = 0, base_self = 0 }
end

--- Creates an empty tree.
---@return FlameNode root
function flametree.new() return new_node('all', 'r') end

--- Returns the child with a name. Adds it if there is none.
local function child_of(node, name, kind)
  local children = node.children
  if not children then
    children = {}
    node.children = children
  end
  local child = children[name]
  if not child then
    child = new_node(name, kind)
    children[name] = child
  end
  return child
end

--- Adds a stack.
---@param node FlameNode the root
---@param roots string[] names that the stack is grouped by
---@param names string[] functions, innermost first
---@param kinds string[] kind of each function, see FlameNode
---@param n integer number of functions
---@param value number
---@param base number value in the base of a comparison
---@param reverse? boolean put the innermost function at the root
function flametree.add(node, roots, names, kinds, n, value, base, reverse)
  node.value, node.base = node.value + value, node.base + base
  for i = 1, #roots do
    node = child_of(node, roots[i], 'r')
    node.value, node.base = node.value + value, node.base + base
  end
  local from, to, step = n, 1, -1
  if reverse then from, to, step = 1, n, 1 end
  for i = from, to, step do
    node = child_of(node, names[i], kinds[i])
    node.value, node.base = node.value + value, node.base + base
  end
  node.self, node.base_self = node.self + value, node.base_self + base
end

--- Moves the stacks of a tree to another tree.
---@param node FlameNode root of the target tree
---@param roots string[] names in the target tree to add the stacks under
---@param tree FlameNode must not be used any more
function flametree.graft(node, roots, tree)
  node.value, node.base = node.value + tree.value, node.base + tree.base
  for i = 1, #roots do
    node = child_of(node, roots[i], 'r')
    node.value, node.base = node.value + tree.value, node.base + tree.base
  end
  local function merge(to, from)
    to.self, to.base_self = to.self + from.self, to.base_self + from.base_self
    for name, child in pairs(from.children or {}) do
      local same = to.children and to.children[name]
      if same then
        same.value, same.base = same.value + child.value, same.base + child.base
        merge(same, child)
      else
        to.children = to.children or {}
        to.children[name] = child
      end
    end
  end
  merge(node, tree)
end

--- Returns the children of a node, sorted by name.
---@param node FlameNode
---@return FlameNode[]
function flametree.children(node)
  local list = {}
  for _, child in pairs(node.children or {}) do list[#list + 1] = child end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

--- Returns a name for folded stacks, without separators and control characters.
local function folded_name(node, marked)
  local name, kind = node.name, node.kind
  if kind == '?' then return 'Unknown' end
  if name:find '[; %c\128-\255]' then name = text.safe(name):gsub('[; ]', { [';'] = ':', [' '] = '_' }) end
  return marked and kind ~= 'u' and kind ~= 'r' and ('%s_[%s]'):format(name, kind) or name
end

--- Calls each(line) with each stack in folded form, sorted by name.
---@param tree FlameNode
---@param roots string[] first names of each line
---@param marked boolean mark kernel frames with _[k], JIT frames with _[j], inlined frames with _[i]
---@param each fun(line: string)
function flametree.fold(tree, roots, marked, each)
  local path = {}
  for i, root in ipairs(roots) do path[i] = root end
  local function visit(node, depth)
    if node.self ~= 0 then each(('%s %s\n'):format(table.concat(path, ';', 1, depth), units.number(node.self))) end
    for _, child in ipairs(flametree.children(node)) do
      path[depth + 1] = folded_name(child, marked)
      visit(child, depth + 1)
    end
  end
  visit(tree, #roots)
end

--- Returns the functions of a tree, with the sums of the stacks that end in them and of those that contain them.
---@param tree FlameNode
---@param reversed? boolean the innermost functions are at the root of the tree
---@return { name: string, self: number, total: number }[] list largest `self` first
function flametree.functions(tree, reversed)
  local list, found, open = {}, {}, {}
  local function visit(node, is_first)
    local entry
    if node.kind ~= 'r' then
      entry = found[node.name]
      if not entry then
        entry = { name = node.name, self = 0, total = 0 }
        found[node.name] = entry
        list[#list + 1] = entry
      end
      if reversed then
        entry.self = entry.self + (is_first and node.value or 0)
      else
        entry.self = entry.self + node.self
      end
      if not open[entry] then entry.total = entry.total + node.value end
      open[entry] = (open[entry] or 0) + 1
    end
    for _, child in pairs(node.children or {}) do visit(child, node.kind == 'r') end
    if entry then open[entry] = open[entry] > 1 and open[entry] - 1 or nil end
  end
  visit(tree, true)
  table.sort(list, function(a, b)
    if a.self ~= b.self then return a.self > b.self end
    if a.total ~= b.total then return a.total > b.total end
    return a.name < b.name
  end)
  return list
end

-- Outermost kernel functions: with them kernel frames are found in folded stacks without annotations.
local IS_ENTRY = {}
for name in ([[entry_SYSCALL_64_after_hwframe ret_from_fork_asm ret_from_fork el0t_64_sync el0_svc common_startup_64
  secondary_startup_64 secondary_startup_64_no_verify start_kernel]]):gmatch '%S+' do
  IS_ENTRY[name] = true
end

--- Splits a folded stack. Its roots are the first name, with the day and time before it if there are any.
---@param stack string
---@return string[] roots
---@return string[] names innermost first, as in flamegraph_tree.add()
---@return string[] kinds
function flametree.parse(stack)
  local roots, outermost, kinds_of, in_kernel = {}, {}, {}, false
  for frame in stack:gmatch '[^;]+' do
    local name, kind = frame:match '^(.+)_%[([kji])%]$'
    name = name or frame
    in_kernel = in_kernel or IS_ENTRY[name] or name:find '^asm_' ~= nil
    if #outermost == 0 and (#roots == 0 or roots[#roots]:find '^%d+[-:]%d+[-:]%d+$') then
      roots[#roots + 1] = name
    else
      outermost[#outermost + 1], kinds_of[#kinds_of + 1] = name, kind or in_kernel and 'k' or 'u'
    end
  end
  local names, kinds, n = {}, {}, #outermost
  for i = 1, n do names[i], kinds[i] = outermost[n + 1 - i], kinds_of[n + 1 - i] end
  return roots, names, kinds
end

--- Adds folded stacks to a tree. Lines with two counts, which difffolded.pl writes, have the base first.
---@param file file*|{ lines: fun(self): fun(): string? }
---@param path string for messages
---@param tree FlameNode
---@param as 'value'|'base' meaning of the counts
---@param reverse? boolean put the innermost functions at the root
---@param on_bytes? fun(n: integer) is called after some more bytes
---@return boolean had_two whether lines had two counts
function flametree.read(file, path, tree, as, reverse, on_bytes)
  local number, had_two, bytes = 0, false, 0
  for line in file:lines() do
    number, bytes = number + 1, bytes + #line + 1
    if on_bytes and bytes >= STEP then
      on_bytes(bytes)
      bytes = 0
    end
    local stack, count = line:match '^(.-)%s+([%d.]+)%s*$'
    local value = tonumber(count)
    if value then
      local before, first = stack:match '^(.-)%s+([%d.]+)$'
      local base = as == 'value' and tonumber(first)
      had_two = had_two or base ~= nil and base ~= false
      local roots, names, kinds = flametree.parse(base and before or stack)
      if #names > MAX_DEPTH then
        error(('%s:%d: the stack has %d frames, more than %d'):format(path, number, #names, MAX_DEPTH), 0)
      end
      if as == 'base' then value, base = 0, value end
      flametree.add(tree, roots, names, kinds, #names, value, base or 0, reverse)
    elseif line:find '%S' then
      error(("%s:%d: invalid folded stack '%s'"):format(path, number, line:sub(1, 80)), 0)
    end
  end
  return had_two
end

return flametree
