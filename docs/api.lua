-- SPDX-License-Identifier: GPL-2.0-only
--- Makes docs/api.md of the annotations in the code, which are those of LuaLS:
---   ./profscript --lua docs/api.lua >docs/api.md     (make api)
---
--- On the page are functions and classes with a comment. What has none, in a file that is on the page, is a
--- mistake unless its name begins with an underscore or it is marked @package.

--- What the page holds before the modules of lib.*: classes of a file, with the table that has a class's methods
--- and how they are called.
local PARTS = {
  { title = 'The event: `ev`', file = 'bindings/view/views.lua', classes = { 'Ev' } },
  { title = 'The session: `session`', file = 'bindings/run/session_api.lua', functions = { api = 'session.' },
    classes = { 'Session', 'SessionWants' }, merge = 'Session' },
  { title = 'The output: `out`', file = 'bindings/print/output.lua', classes = { 'Output' },
    methods = { Output = { 'Output', 'out:' } } },
  { title = 'Events that are asked for', file = 'bindings/view/public_event.lua', classes = { 'Event', 'EventField' },
    methods = { Event = { 'Event', 'event:' } } },
  { file = 'bindings/view/sampling.lua', classes = { 'EventParameters' } },
  { title = 'Counts', file = 'bindings/run/counts.lua', classes = { 'CountSettings', 'Counts' },
    methods = { Counts = { 'Counts', 'counts:' } } },
  { title = 'Slots', file = 'bindings/run/slots.lua', classes = { 'Slots' },
    methods = { Slots = { 'Slots', 'slots:' } } },
  { title = 'Expressions and frames', file = 'bindings/run/services.lua', classes = { 'Expression' } },
  { file = 'bindings/print/frames.lua', classes = { 'Frame' } },
  { title = 'BPF programs', file = 'bindings/bpf/program.lua', classes = { 'BpfParameters', 'Bpf' },
    methods = { Bpf = { 'Bpf', 'program:' } } },
  { file = 'bindings/bpf/attach.lua', classes = { 'BpfLink' }, methods = { BpfLink = { 'Link', 'link:' } } },
  { file = 'bindings/bpf/map.lua', classes = { 'BpfMap' }, methods = { BpfMap = { 'Map', 'map:' } } },
}

local function read(path)
  local file = assert(io.open(path))
  local text = file:read '*a'
  file:close()
  return text
end

-- Reading ----------------------------------------------------------------------------------------

--- A comment: its text, and what its tags say.
local function parse_comment(lines)
  local comment = { text = {}, params = {}, returns = {}, fields = {} }
  local tag -- that the next line goes on with
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
      tag = nil -- generic, diagnostic...
    elseif tag then
      tag.rest = tag.rest .. ' ' .. text
    else
      table.insert(comment.text, text)
    end
  end
  return comment
end

local CLOSE = { ['('] = ')', ['{'] = '}', ['<'] = '>', ['['] = ']' }

--- Where the type at the beginning of a text ends: blanks within brackets are of it, and around '|' and ':'.
local function type_end(text)
  local open, at = {}, 1
  while at <= #text do
    local char = text:sub(at, at)
    if CLOSE[char] then
      open[#open + 1] = CLOSE[char]
    elseif char == open[#open] then
      open[#open] = nil
    elseif char == ' ' and #open == 0 and not text:sub(1, at - 1):find '[:,]$' then
      return at - 1
    end
    at = at + 1
  end
  return #text
end

--- The type of a tag, and the words behind it.
local function split_type(text)
  local stop = type_end(text)
  return text:sub(1, stop), text:sub(stop + 1):match '^%s*(.-)%s*$'
end

--- The comments of a file, each with what it is about: `owner` and `name` of a function or value.
local function comments_of(path)
  local list, lines, at = {}, {}, 0
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
        comment.owner, comment.name = rest:match '^([%w_]+)%.([%w_]+) = '
        comment.is_value = comment.owner ~= nil
      end
      comment.is_indented = indent ~= ''
      if #lines > 0 or comment.owner and not comment.is_value then list[#list + 1] = comment end
      lines = {}
    end
  end
  return list
end

-- Writing ----------------------------------------------------------------------------------------

local out = {}
local function put(format, ...) out[#out + 1] = select('#', ...) > 0 and format:format(...) or format end

--- Text of a comment as Markdown: lines that are indented are code, but for those that go on with an item of a list.
local function put_text(lines)
  local code, is_item, paragraph = false, false, {}
  local function end_paragraph()
    if #paragraph > 0 then put('%s\n%s', table.concat(paragraph, ' '), is_item and '' or '\n') end
    paragraph = {}
  end
  for i, line in ipairs(lines) do
    if line:find '^%- ' then
      end_paragraph()
      is_item = true
    elseif line == '' and is_item then
      end_paragraph()
      put '\n'
      is_item = false
    end
    local is_code = not is_item
      and (line:find '^  ' ~= nil or code and line == '' and (lines[i + 1] or ''):find '^  ' ~= nil)
    if is_code ~= code then
      end_paragraph()
      put(is_code and '```lua\n' or '```\n\n')
      code = is_code
    end
    if code then
      put('%s\n', (line:gsub('^  ?', '')))
    elseif line == '' then
      end_paragraph()
    else
      paragraph[#paragraph + 1] = line:match '^%s*(.*)$'
    end
  end
  if code then put '```\n\n' end
  end_paragraph()
  if is_item then put '\n' end
end

local function code(text) return '`' .. text .. '`' end

--- "- `name` (`type`, optional): text".
local function put_item(tag)
  local kind, text = split_type(tag.rest)
  put('- %s (%s%s)%s\n', code(tag.name:gsub('%?$', '')), code(kind), tag.name:find '%?$' and ', optional' or '',
    text ~= '' and ': ' .. text or '')
end

-- What begins the text of a result that has no name.
local NO_NAME = { whether = true, the = true, how = true, ['nil'] = true, what = true, as = true, of = true }

local function put_result(result)
  local kind, text = split_type(result.rest)
  local name, rest = text:match '^([%l_]+) ?(.*)$'
  if not name or NO_NAME[name] then name, rest = nil, text end
  put('- returns %s%s%s\n', code(kind), name and ' ' .. code(name) or '', rest ~= '' and ': ' .. rest or '')
end

local function put_tags(comment)
  for _, param in ipairs(comment.params) do put_item(param) end
  for _, result in ipairs(comment.returns) do put_result(result) end
  if #comment.params + #comment.returns > 0 then put '\n' end
end

local function put_fields(comment)
  local some = false
  for _, field in ipairs(comment.fields) do
    if not field.is_private then
      put_item(field)
      some = true
    end
  end
  if some then put '\n' end
end

local mistakes = 0

local function fail(path, comment, what)
  io.stderr:write(('%s:%d: %s %s\n'):format(path, comment.line, comment.name or comment.class or '', what))
  mistakes = mistakes + 1
end

--- The functions that belong to `owner`, as `prefix` calls them.
local function put_functions(path, comments, owner, prefix)
  for _, comment in ipairs(comments) do
    if owner and comment.owner == owner and comment.name:sub(1, 1) ~= '_' and not comment.is_private then
      if not comment.has_text then fail(path, comment, 'has no comment') end
      put('### `%s%s%s`\n\n', prefix, comment.name, comment.is_value and '' or comment.args)
      put_text(comment.text)
      put_tags(comment)
    end
  end
end

local function find_class(path, comments, name)
  for _, comment in ipairs(comments) do
    if comment.class == name then return comment end
  end
  error(('%s: there is no class %s'):format(path, name), 0)
end

local function put_part(part)
  local comments = comments_of(part.file)
  if part.title then put('## %s\n\n', part.title) end
  for _, name in ipairs(part.classes) do
    local class = find_class(part.file, comments, name)
    if name ~= part.merge and (not part.title or #part.classes > 1) then put('### %s\n\n', name) end
    put_text(class.text)
    put_fields(class)
    local methods = (part.methods or {})[name]
    if methods then put_functions(part.file, comments, methods[1], methods[2]) end
    if name == part.merge then
      for owner, prefix in pairs(part.functions) do put_functions(part.file, comments, owner, prefix) end
    end
  end
end

--- The file that a module of lib.* is in: some are those of bindings/ under a public name.
local function file_of(name)
  local path = ('scripts/lib/%s.lua'):format(name)
  local module = read(path):match "\nreturn require 'bindings%.([%w_.]+)'\n$"
  return module and ('bindings/%s.lua'):format((module:gsub('%.', '/'))) or path
end

--- What a file calls the table that it returns.
local function table_of(path) return read(path):match '\nreturn ([%w_]+)\n$' end

local function modules()
  local list = {}
  local pipe = assert(io.popen 'ls scripts/lib')
  for file in pipe:lines() do list[#list + 1] = file:match '^(.*)%.lua$' end
  pipe:close()
  table.sort(list)
  return list
end

local function head_of(path)
  local lines = {}
  for line in read(path):gmatch '([^\n]*)\n' do
    local text = line:match '^%-%-%- ?(.*)$'
    if text then lines[#lines + 1] = text elseif #lines > 0 then break end
  end
  return lines
end

--- The first sentence of a text.
local function first_sentence(lines)
  local text = table.concat(lines, ' ')
  return text:match '^(.-[.:])%s' and text:match('^(.-)[.:]%s') or text:gsub('[.:]$', '')
end

local function put_module(name)
  local path = file_of(name)
  local comments, own = comments_of(path), table_of(path)
  put('## lib.%s\n\n', name)
  put_text(head_of(path))
  put_functions(path, comments, own, name .. '.')
  for _, comment in ipairs(comments) do
    if comment.class and not comment.is_private then
      put('### %s\n\n', comment.class)
      put_text(comment.text)
      put_fields(comment)
      if comment.class ~= own then put_functions(path, comments, comment.class, comment.class .. ':') end
    end
  end
end

put [[
# The API of scripts

What a script reaches: `ev` in its handlers, `session` and `out` of `start(opt, out, session)`, and the modules of
`lib.*` by `require`. [scripting.md](scripting.md) says how a script is made of them. This page is generated from the
annotations in the code (`make api`).

An `integer64` is a 64-bit integer: it prints, compares and computes, but must not be the key of a Lua table. A wrong
argument, an index out of range and an event that is gone raise an error, which has the line of the script.

| module | for |
|---|---|
]]
for _, name in ipairs(modules()) do
  put('| [`lib.%s`](#lib%s) | %s |\n', name, name, first_sentence(head_of(file_of(name))))
end
put '\n'
for _, part in ipairs(PARTS) do put_part(part) end
for _, name in ipairs(modules()) do put_module(name) end
local text = table.concat(out):gsub('\n\n\n+', '\n\n'):gsub('\n+$', '\n')
io.stdout:write(text)
return mistakes > 0 and 1 or 0
