-- SPDX-License-Identifier: GPL-2.0-only
--- Flame graphs of sampled stacks.
---
---   options = flamegraph.options { than = ... }      -- adds --flame-graph and its options
---   local flame = flamegraph.new(opt, session, out)  -- nil without --flame-graph
---   flame:add(ev, 1)                                 -- for each event: adds 1 to its stack
---   return flamegraph.follow(flame, handlers)        -- draws it in `interval` and `stop`
---
--- FILE.svg and FILE.html are pictures. With any other name, folded stacks are written to FILE.folded, a line for
--- each: `[DAY;TIME;]comm;user frames;kernel frames COUNT`, outermost frame first. With -i the stacks of each
--- interval start with its time.
local array = require 'lib.array'
local flametree = require 'lib.flamegraph_tree'
local invocation = require 'lib.command.invocation'
local intern = require 'lib.intern'
local svg = require 'lib.svg'
local failure = require 'bindings.base.failure'
local progress = require 'bindings.print.progress'
local sys = require 'bindings.base.sys'
local units = require 'lib.units'

local flamegraph = {}

local MAX_KEYS = 262144 -- number of distinct stacks after which they are symbolized
local ROOTS = { 'comm', 'pid', 'tid', 'cpu', 'none' }
local REGULAR = 0x8000 -- of the mode's format, S_IFREG

--- Adds the options for the appearance of a graph, without --flame-graph itself.
---@param own table<string, table> options of a profiler
---@return table<string, table> own
function flamegraph.looks(own)
  own.title = { type = 'string', help = 'title of the flame graph' }
  own.inverted = { type = 'flag', help = 'draw an icicle graph, with the roots at the top' }
  own.reverse = { type = 'flag', help = 'merge stacks from their leaves, to see the callers of hot functions' }
  own.diff = { type = 'string', argument = 'FILE',
    help = 'color by the difference from these folded stacks, or from a recording: red is more, blue is less' }
  for _, name in ipairs { 'title', 'inverted', 'reverse', 'diff' } do own[name].group = 'flame' end
  return own
end

--- Adds the options of flame graphs to those of a profiler.
---@param own table<string, table> options of a profiler
---@return table<string, table> own
function flamegraph.options(own)
  own.flame_graph = { type = 'string', argument = 'FILE',
    help = 'draw a flame graph to FILE.svg or FILE.html; else write folded stacks to FILE.folded ("" is stdout)' }
  own.roots = { type = 'enum', values = ROOTS, default = 'comm', help = 'group stacks by' }
  own.annotate = { type = 'flag',
    help = 'mark folded kernel frames with _[k], JIT frames with _[j], inlined frames with _[i]' }
  own.flame_graph.group, own.roots.group, own.annotate.group = 'flame', 'flame', 'flame'
  return flamegraph.looks(own)
end

--- For each value of --roots: a function(ev) that returns the key id of an event, and a function that returns the
--- root's name for a key id.
local KEY_OF = {
  comm = function(ids) return function(ev) return ids(ev._stack, ev._comm) end end,
  pid = function(ids) return function(ev) return ids(ev._stack, ev._comm, ev._pid) end end,
  tid = function(ids) return function(ev) return ids(ev._stack, ev._comm, ev._tid) end end,
  cpu = function(ids) return function(ev) return ids(ev._stack, ev._cpu) end end,
  none = function(ids) return function(ev) return ids(ev._stack) end end,
}
local KEY_PARTS = { comm = 2, pid = 3, tid = 3, cpu = 2, none = 1 }
local ROOT_NAME = {
  comm = function(keys, id) return keys:part(id, 2) end,
  pid = function(keys, id) return ('%s-%d'):format(keys:part(id, 2), keys:part(id, 3)) end,
  tid = function(keys, id) return ('%s/%d'):format(keys:part(id, 2), keys:part(id, 3)) end,
  cpu = function(keys, id) return ('CPU_%03d'):format(keys:part(id, 2)) end,
  none = function() end,
}

--- A flame graph.
---@class Flamegraph
---@field add fun(self: Flamegraph, ev: Ev|table, value: number) adds a value to the stack of an event, or of a table
--- with _stack, _comm, _pid, _tid and _cpu
local Flamegraph = {}
Flamegraph.__index = Flamegraph

--- Returns the name of the file for folded stacks. Terminals and pipes get no suffix.
---@return string path, boolean is_regular
local function folded_path(path)
  local st = sys.stat(path)
  if st and not st.isdir and bit.band(st.mode, 0xf000) ~= REGULAR then return path, false end
  return path:match '%.folded$' and path or path .. '.folded', true
end

--- Opens the file for folded stacks. This happens at the first write, because --dry-run must not create it.
local function open_folded(self)
  if self.is_regular and sys.stat(self.path) then os.rename(self.path, self.path .. '.old') end
  local file, message = sys.create(self.path)
  self.file = file or error(('cannot write %s'):format(message), 0)
end

--- Symbolizes the stacks so far and moves them to the tree of this interval. Values of `ev._stack` from before are
--- invalid afterwards.
local function symbolize(self)
  local session, keys, sums, root_name = self.session, self.keys, self.sums, self.root_name
  local reverse, tree = self.opt.reverse, self.part
  local roots, names, kinds, is_compared = {}, {}, {}, self.opt.diff ~= nil
  for id = 0, keys:count() - 1 do
    roots[1] = root_name(keys, id)
    local n = session.frame_names(keys:part(id, 1), names, kinds)
    if is_compared then
      for i = 1, n do
        if kinds[i] == '?' then names[i] = 'Unknown' end -- as in folded stacks
      end
    end
    flametree.add(tree, roots, names, kinds, n, sums[id], 0, reverse)
    sums[id] = 0
  end
  keys:clear()
  session.forget_stacks()
end

--- Creates the flame graph that the options ask for, and makes all events of the profiler record stacks.
---@param opt table options of the profiler, with those of flamegraph.options()
---@param session Session
---@param out Output
---@param settings? { title?: string, unit?: string } unit: unit of the values, default 'samples'
---@return Flamegraph? flame nil without --flame-graph
function flamegraph.new(opt, session, out, settings)
  for _, name in ipairs { 'diff', 'title', 'inverted', 'reverse', 'annotate' } do
    if opt[name] and not opt.flame_graph then failure.usage('--%s requires --flame-graph', name) end
  end
  if not opt.flame_graph then return end
  local draws = svg.kind(opt.flame_graph)
  if opt.diff == '-' and opt.input == '-' then
    failure.usage('--diff - and --input - cannot both read from stdin: give the file of one of them')
  end
  for _, name in ipairs { 'diff', 'title', 'inverted', 'reverse' } do
    if opt[name] and not draws then
      failure.usage('--%s requires a --flame-graph FILE that ends in .svg or .html', name)
    end
  end
  settings = settings or {}
  session.want { stacks = true }
  local keys = intern.new(KEY_PARTS[opt.roots], MAX_KEYS)
  local self = setmetatable({
    out = out,
    session = session,
    opt = opt,
    keys = keys,
    sums = array.new(MAX_KEYS + 1),
    root_name = ROOT_NAME[opt.roots],
    settings = {
      title = opt.title or settings.title or 'Flame Graph',
      unit = settings.unit or 'samples',
      inverted = opt.inverted,
      reversed = opt.reverse,
      difference = opt.diff ~= nil,
    },
    part = flametree.new(),
  }, Flamegraph)
  local id_of, sums = KEY_OF[opt.roots](keys.id), self.sums
  function self.add(_, ev, value)
    local id = id_of(ev)
    if id == MAX_KEYS then
      symbolize(self)
      id = id_of(ev)
    end
    sums[id] = sums[id] + value
  end
  if draws then
    svg.check(opt.flame_graph)
    self.tree = flametree.new()
    if opt.diff then flamegraph.read(opt.diff, self.tree, 'base', opt.reverse) end
  elseif opt.flame_graph ~= '' then
    self.path, self.is_regular = folded_path(opt.flame_graph)
    if self.is_regular then svg.check(self.path) end
  end
  return self
end

--- Adds the stacks since the last call to the graph or file. prefix: names of the roots of these stacks.
local function finish_part(self, prefix)
  symbolize(self)
  if self.tree then
    flametree.graft(self.tree, prefix, self.part)
  else
    local ok, message = true, nil
    if self.path and not self.file then open_folded(self) end
    flametree.fold(self.part, prefix, self.opt.annotate, function(line)
      if not self.file then
        self.out:append(line)
      elseif ok then
        ok, message = self.file:write(line)
      end
    end)
    if self.file and ok then ok, message = self.file:flush() end
    if not ok then error(('cannot write %s: %s'):format(self.opt.flame_graph, message), 0) end
  end
  self.part = flametree.new()
end

--- Ends an interval. Its time becomes the root of its stacks.
function Flamegraph:interval()
  local sec, ns, is_wall = self.out.clock()
  if is_wall == false then
    finish_part(self, { units.seconds(sec, ns) })
  else
    local day, time = units.wall(sec, ns):match '^(%S+) (%d+:%d+:%d+)'
    finish_part(self, { day, time })
  end
end

--- Ends the last interval and writes the graph.
function Flamegraph:finish()
  if self.opt.interval then self:interval() else finish_part(self, {}) end
  if self.tree then
    if self.tree.value == 0 then
      self.out:warn 'flame graph: no samples, nothing to draw'
      return
    end
    flamegraph.draw(self.opt.flame_graph, self.tree, self.settings)
    self.out:warn(('The flame graph is in %s'):format(self.opt.flame_graph))
  elseif self.file then
    self.file:close()
    if self.is_regular then
      local image = self.path:gsub('%.folded$', '.svg')
      self.out:warn(('To draw the flame graph, run: %s flamegraph %s %s'):format(invocation.name(), self.path, image))
    end
  end
end

--- Lets `interval` and `stop` draw a graph, after what they do already.
---@param flame? Flamegraph nil: there is none
---@param handlers table
---@return table handlers
function flamegraph.follow(flame, handlers)
  for when, method in pairs(flame and { interval = 'interval', stop = 'finish' } or {}) do
    local before = handlers[when]
    handlers[when] = function(time)
      if before then before(time) end
      flame[method](flame)
    end
  end
  return handlers
end

---@class FlameSettings
---@field title string
---@field unit string unit of the values, such as 'samples'
---@field reversed? boolean the innermost functions are at the root
---@field inverted? boolean the root is at the top (icicle graph)
---@field difference? boolean colors show the difference from the base

--- Draws a tree to a file. The base of a comparison is scaled to the same total.
---@param path string FILE.svg or FILE.html
---@param tree FlameNode
---@param settings FlameSettings
function flamegraph.draw(path, tree, settings)
  local scale = tree.base > 0 and tree.value / tree.base or 1
  local function rescale(node)
    node.base, node.base_self = node.base * scale, node.base_self * scale
    for _, child in pairs(node.children or {}) do rescale(child) end
  end
  if settings.difference then rescale(tree) end
  require('lib.engines.flamegraph_svg').write(path, tree, settings)
end

local MAGIC = 'PERFILE2' -- of recordings
local MESSAGES = '\1' -- the line between the stacks of a child process and its messages

--- Opens a file of folded stacks, and returns its size if that is known, and whether it is a child process: the stacks
--- of a recording come from `profscript profile`, which reads a recording on stdin itself. Its messages come last.
local function open_stacks(path)
  if path == '-' then
    if sys.peek(0, #MAGIC) ~= MAGIC then return io.stdin end
  else
    local file, message = io.open(path, 'rb')
    if not file then error(message, 0) end
    local size = file:seek 'end'
    if not size then return file end -- a pipe
    file:seek 'set'
    local head, problem = file:read(#MAGIC)
    if not head and problem then error(('%s: %s'):format(path, problem), 0) end
    file:seek 'set'
    if head ~= MAGIC then return file, size end
    file:close()
  end
  local stat = assert(io.open '/proc/self/stat')
  local program = ('/proc/%d/exe'):format(stat:read '*n')
  stat:close()
  local command = ("%s profile -q --input '%s' --flame-graph ''"):format(program, (path:gsub("'", [['\'']])))
  return io.popen(([[{ said=$(%s 2>&1 >&3); printf '\001\n%%s' "$said"; } 3>&1]]):format(command)), nil, true
end

--- Returns what a child process prints up to its messages, which are put into a list.
local function stacks_before(file, messages)
  local next_line = file:lines()
  return { lines = function()
    return function()
      local line = next_line()
      if line ~= MESSAGES then return line end
      for message in next_line do messages[#messages + 1] = message end
    end
  end }
end

--- Adds the stacks of a file to a tree, see flamegraph_tree.read().
---@param path string file of folded stacks, or recording; '-': stdin
---@param tree FlameNode
---@param as 'value'|'base' meaning of the counts
---@param reverse? boolean
---@param shows? { name: string, out: Output, is_quiet?: boolean } whose progress line is shown
---@return boolean had_two whether lines had two counts
---@return string? reason why a recording has no stacks to draw
function flamegraph.read(path, tree, as, reverse, shows)
  local file, size, is_child = open_stacks(path)
  local line = shows and progress.new(shows.name, shows.out, shows.is_quiet)
  if line then line:stage('reading ' .. path, false, size) end
  local messages = {}
  local ok, result = xpcall(flametree.read, failure.traceback, is_child and stacks_before(file, messages) or file, path,
    tree, as, reverse, line and function(n) line:step(n, 'B') end)
  if line then line:finish() end
  if file ~= io.stdin then file:close() end
  if not ok then error(result, 0) end
  if as == 'value' and tree.value == 0 and #messages > 0 then
    local why = messages[#messages]:gsub('^profscript: ', ''):gsub('^profile: ', '')
    local place = path .. ': '
    return result, why:sub(1, #place) == place and why:sub(#place + 1) or why
  end
  for _, message in ipairs(messages) do io.stderr:write(message, '\n') end
  return result
end

return flamegraph
