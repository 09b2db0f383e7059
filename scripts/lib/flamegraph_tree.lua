-- SPDX-License-Identifier: GPL-2.0-only
--- Stacks that share their outermost frames, as a tree: what a flame graph draws, and what folded stacks list.
local text = require 'bindings.base.text'
local units = require 'lib.units'

local flametree = {}

--- A function called from somewhere, or what stacks are grouped by.
---@class FlameNode
---@field name string
---@field kind string 'k' kernel, 'j' code generated at run time, 'i' inlined, 'u' other functions, '?' only the
--- file is known, 'r' what stacks are grouped by
---@field value number of all stacks that go through it
---@field self number of the stacks that end in it
---@field base number value in the graph that this one is compared with
---@field base_self number
---@field children? table<string, FlameNode> by name

---@return FlameNode
local function new_node(name, kind)
  return { name = name, kind = kind, value = 0, self = 0, base = 0, base_self = 0 }
end

--- A tree without stacks.
---@return FlameNode root
function flametree.new() return new_node('all', 'r') end

--- The child of a name, made at need.
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
---@param roots string[] what the stack is grouped by
---@param names string[] its functions, innermost first
---@param kinds string[] the kind of each
---@param n integer how many functions there are
---@param value number
---@param base number its value in the graph that this one is compared with
---@param reverse? boolean the innermost function comes first in the tree
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

--- Moves all of a tree below some roots of another one.
---@param node FlameNode root of the other one
---@param roots string[]
---@param tree FlameNode
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

--- The children of a node, sorted by name.
---@param node FlameNode
---@return FlameNode[]
function flametree.children(node)
  local list = {}
  for _, child in pairs(node.children or {}) do list[#list + 1] = child end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

--- A name within a folded stack: no separators, no control bytes.
local function folded_name(node, marked)
  local name, kind = node.name, node.kind
  if kind == '?' then return 'Unknown' end
  if name:find '[; %c\128-\255]' then name = text.safe(name):gsub('[; ]', { [';'] = ':', [' '] = '_' }) end
  return marked and kind ~= 'u' and kind ~= 'r' and ('%s_[%s]'):format(name, kind) or name
end

--- Calls each(line) for each stack in folded form, sorted by name.
---@param tree FlameNode
---@param roots string[] come first in all lines
---@param marked boolean mark frames of the kernel by _[k], of JIT code by _[j], inlined ones by _[i]
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

--- Sums by function: of the stacks that end in it, and of those that go through it.
---@param tree FlameNode
---@param reversed? boolean the innermost functions are at the root of the tree
---@return { name: string, self: number, total: number }[] list the largest self first
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

-- What the kernel's stacks begin with; folded stacks need not say which frames are the kernel's.
local IS_ENTRY = {}
for name in ([[entry_SYSCALL_64_after_hwframe ret_from_fork_asm ret_from_fork el0t_64_sync el0_svc common_startup_64
  secondary_startup_64 secondary_startup_64_no_verify start_kernel]]):gmatch '%S+' do
  IS_ENTRY[name] = true
end

--- Splits a folded stack. Its first frame is what it is grouped by, after a day and a time if it has them.
---@param stack string
---@return string[] roots
---@return string[] names innermost first, as flamegraph_tree.add() takes them
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

--- Adds folded stacks to a tree. A line may have two counts, as difffolded.pl writes them: then the first is that
--- of the base.
---@param file file*
---@param path string for messages
---@param tree FlameNode
---@param as 'value'|'base' what the counts are
---@param reverse? boolean
---@return boolean had_two whether there were two counts
function flametree.read(file, path, tree, as, reverse)
  local number, had_two = 0, false
  for line in file:lines() do
    number = number + 1
    local stack, count = line:match '^(.-)%s+([%d.]+)%s*$'
    local value = tonumber(count)
    if value then
      local before, first = stack:match '^(.-)%s+([%d.]+)$'
      local base = as == 'value' and tonumber(first)
      had_two = had_two or base ~= nil and base ~= false
      local roots, names, kinds = flametree.parse(base and before or stack)
      if as == 'base' then value, base = 0, value end
      flametree.add(tree, roots, names, kinds, #names, value, base or 0, reverse)
    elseif line:find '%S' then
      error(("%s:%d: no folded stack: '%s'"):format(path, number, line:sub(1, 80)), 0)
    end
  end
  return had_two
end

return flametree
