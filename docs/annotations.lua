-- SPDX-License-Identifier: GPL-2.0-only
--- The LuaLS annotations of everything that scripts reach, read from the source. docs/api.lua makes docs/api.md of
--- them, docs/stubs.lua the definition files for editors.
local annotations = {}

--- What scripts reach without require: files with their classes, { class, table of its methods, prefix of calls }.
--- The first class of a part is described below the title.
annotations.PARTS = {
  { title = 'The script', file = 'bindings/options/scripts.lua', { 'Profiler' } },
  { file = 'bindings/options/declare.lua', { 'OptionDeclaration' } },
  { file = 'bindings/options/contract.lua', { 'Handlers' } },
  { file = 'bindings/options/values.lua', { 'Options' } },
  { title = 'The event: `ev`', file = 'bindings/view/public_event.lua', { 'Ev' } },
  { title = 'The session: `session`', file = 'bindings/run/session_api.lua', { 'Session', 'api', 'session.' },
    { 'SessionWants' }, more = 'bindings/session/*.lua' },
  { title = 'The output: `out`', file = 'bindings/print/output.lua', { 'Output', 'Output', 'out:' } },
  { title = 'Event objects', file = 'bindings/view/public_event.lua', { 'Event', 'Event', 'event:' },
    { 'EventField' } },
  { file = 'bindings/view/sampling.lua', { 'EventParameters' } },
  { title = 'Counts', file = 'bindings/session/counts.lua', { 'Counts', 'Counts', 'counts:' }, { 'CountSettings' } },
  { title = 'Tallies', file = 'bpf/ways/count.lua', { 'Tally', 'Tally', 'tally:' }, { 'TallySettings' } },
  { title = 'Flight recorders', file = 'bindings/run/recorder.lua', { 'Recorder', 'Recorder', 'recorder:' },
    { 'RecorderSettings' }, { 'DumpSettings' }, { 'Dump' } },
  { title = 'Slots', file = 'bindings/session/slots.lua', { 'Slots', 'Slots', 'slots:' } },
  { title = 'Expressions and frames', file = 'bindings/run/services.lua', { 'Expression' } },
  { file = 'bindings/print/frames.lua', { 'Frame' } },
  { title = 'BPF programs', file = 'bindings/bpf/program.lua', { 'Bpf', 'Bpf', 'program:' }, { 'BpfParameters' } },
  { file = 'bindings/bpf/attach.lua', { 'BpfLink', 'Link', 'link:' } },
  { file = 'bindings/bpf/map.lua', { 'BpfMap', 'Map', 'map:' } },
}

--- The modules of lib.* by purpose.
annotations.GROUPS = {
  { 'Data structures', 'array', 'map', 'intern', 'hist', 'window', 'objects' },
  { 'Aggregation and reports', 'counter', 'aggregate', 'stacks', 'calltree', 'grid', 'ratios', 'reports', 'table',
    'screen', 'sql' },
  { 'Relations between events', 'join', 'pairs', 'relation', 'delay', 'pairing', 'syscalls', 'memprof', 'detail',
    'latency' },
  { 'Pictures', 'shades', 'flamegraph', 'flamegraph_tree', 'heatmap', 'pair_heatmap', 'svg' },
  { 'System and text', 'events', 'threads', 'task_filter', 'cpu_list', 'unreported', 'failure', 'fs', 'units', 'text',
    'glob', 'sorted', 'nearest', 'names', 'frame', 'registers', 'datasrc', 'kvm' },
}
--- Modules that are written for one profiler, command or module. The page names them, and adds those of lib.engines.
annotations.INTERNAL = { 'aggregate_text', 'bpftrace_words', 'task_state_waits', 'task_states' }
for path in io.popen('cd scripts/lib/engines && find * -name "*.lua" | sort'):lines() do
  table.insert(annotations.INTERNAL, 'engines.' .. path:match('^(.*)%.lua$'):gsub('/', '.'))
end

local function read(path)
  local file = assert(io.open(path))
  local text = file:read '*a'
  file:close()
  return text
end

--- Parses the lines of a comment into its text and tags.
local function parse_comment(lines)
  local comment = { text = {}, params = {}, returns = {}, fields = {}, other = {} }
  local tag -- continued by the next line
  for _, line in ipairs(lines) do
    local name, rest = line:match '^%-%-%-@(%w+)%s*(.*)$'
    local text = line:match '^%-%-%- ?(.*)$'
    if name == 'param' then
      local param, kind = rest:match '^(%S+)%s+(.*)$'
      tag = { name = param, rest = kind }
      table.insert(comment.params, tag)
    elseif name == 'return' then
      tag = { rest = rest }
      table.insert(comment.returns, tag)
    elseif name == 'field' then
      local field, kind = rest:match '^(%b[])%s+(.*)$'
      if not field then
        field, kind = rest:gsub('^package ', ''):match '^(%S+)%s+(.*)$'
      end
      tag = { name = field, rest = kind, is_private = rest:find '^package ' ~= nil }
      table.insert(comment.fields, tag)
    elseif name == 'class' then
      comment.class, tag = rest:match '^([%w_.]+)', nil
    elseif name == 'package' then
      comment.is_private = true
    elseif name then
      tag = nil
      if name == 'generic' or name == 'overload' then table.insert(comment.other, line) end
    elseif tag then
      tag.rest = tag.rest .. ' ' .. text
    else
      table.insert(comment.text, text)
    end
  end
  return comment
end

--- Adds the comments of a file to a list.
local function add_comments(list, path)
  local lines, at = {}, 0
  for line in read(path):gmatch '([^\n]*)\n' do
    at = at + 1
    local indent, rest = line:match '^(%s*)(.*)$'
    if rest:find '^%-%-%-' then
      lines[#lines + 1] = rest
    else
      local comment = parse_comment(lines)
      comment.line, comment.has_text = at, #lines > 0
      comment.owner, comment.separator, comment.name, comment.args = rest:match '^function ([%w_]+)([.:])([%w_]+)(%b())'
      if not comment.owner then
        comment.owner, comment.name, comment.value = rest:match '^([%w_]+)%.([%w_]+) = (.*)$'
        comment.is_value = comment.owner ~= nil
      end
      comment.is_indented = indent ~= ''
      if #lines > 0 or comment.owner and not comment.is_value then list[#list + 1] = comment end
      lines = {}
    end
  end
end

--- Returns the comments of a file, with the `owner` and `name` of the function or value that follows.
---@param path string
---@param more? string other files that add to the same classes, as a pattern
---@return table[]
function annotations.comments(path, more)
  local list = {}
  add_comments(list, path)
  if more then
    for other in io.popen('ls ' .. more):lines() do add_comments(list, other) end
  end
  return list
end

--- Returns the public functions and values of `owner`.
---@return table[] comments
function annotations.members(comments, owner)
  local list = {}
  for _, comment in ipairs(comments) do
    if owner and comment.owner == owner and comment.name:sub(1, 1) ~= '_' and not comment.is_private then
      list[#list + 1] = comment
    end
  end
  return list
end

--- Returns the comment of a class.
function annotations.class(path, comments, name)
  for _, comment in ipairs(comments) do
    if comment.class == name then return comment end
  end
  error(('%s: there is no class %s'):format(path, name), 0)
end

--- Returns the file of a module of lib.*, which may be a module of bindings/ under a public name.
function annotations.file(name)
  local path = ('scripts/lib/%s.lua'):format((name:gsub('%.', '/')))
  local module = read(path):match "\nreturn require 'bindings%.([%w_.]+)'\n$"
  return module and ('bindings/%s.lua'):format((module:gsub('%.', '/'))) or path
end

--- Returns the local name of the table that a file returns.
function annotations.table_of(path) return read(path):match '\nreturn ([%w_]+)\n$' end

--- Returns the lines of a file's first comment.
function annotations.head(path)
  local lines = {}
  for line in read(path):gmatch '([^\n]*)\n' do
    local text = line:match '^%-%-%- ?(.*)$'
    if text then lines[#lines + 1] = text elseif #lines > 0 then break end
  end
  return lines
end

return annotations
