-- SPDX-License-Identifier: GPL-2.0-only
--- Folded stacks: a line for each task and stack, with the number of samples. The names are those of --flame-graph.
local stacks = require 'lib.export.stacks'
local text = require 'bindings.base.text'

local folded = { suffixes = { '.folded', '.collapsed' } }

local NODES = 2 ^ 32

---@class Folded : Exporter
local Folded = {}
Folded.__index = Folded

---@param target ExportTarget
---@return Folded
function folded.new(target)
  return setmetatable({ target = target, tree = stacks.tree(target), tasks = {}, counts = {} }, Folded)
end

function Folded:sample()
  local tree, tasks, counts, task_name = self.tree, self.tasks, self.counts, self.target.task_name
  return function(e, stack)
    local name = task_name(e)
    local task = tasks[name]
    if not task then
      task = #tasks + 1
      tasks[task], tasks[name] = name, task
    end
    local key = task * NODES + tree:leaf(stack)
    counts[key] = (counts[key] or 0) + 1
  end
end

local function clean(name) return (text.safe(name):gsub('[; ]', { [';'] = ':', [' '] = '_' })) end

function Folded:finish()
  local tree, lines = self.tree, {}
  for key, count in pairs(self.counts) do
    local node, parts = key % NODES, {}
    local path = tree:path(node)
    parts[1] = text.safe(self.tasks[(key - node) / NODES]):gsub(';', ':')
    for i = #path, 1, -1 do
      local frame = tree.frames[path[i]]
      parts[#parts + 1] = frame.is_unknown and 'Unknown' or clean(frame.name)
    end
    local line = table.concat(parts, ';')
    if not lines[line] then lines[#lines + 1] = line end
    lines[line] = (lines[line] or 0) + count
  end
  table.sort(lines)
  for _, line in ipairs(lines) do
    self.target.file:put(('%s %d\n'):format(line, lines[line]))
    self.target.file:poll()
  end
end

return folded
