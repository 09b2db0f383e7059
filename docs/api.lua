-- SPDX-License-Identifier: GPL-2.0-only
--- Generates docs/api.md from the LuaLS annotations in the source:
---   ./profscript --lua docs/api.lua >docs/api.md     (make api)
---
--- The page contains functions and classes with a comment. A function without one is a mistake, unless its name
--- starts with an underscore or it is marked @package. So is a class that types name but the page does not contain.

local annotations = require 'docs.annotations'

local WIDTH = 100

--- The variable of a module in examples, if it is not the module's name.
local VARIABLE = { table = 'tables' } -- table is a global of Lua

local CLOSE = { ['('] = ')', ['{'] = '}', ['<'] = '>', ['['] = ']' }

--- Returns the end of the type that a text starts with. It may have blanks within brackets and after ':' and ','.
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

--- Returns the type and the description of a tag.
local function split_type(text)
  local stop = type_end(text)
  return text:sub(1, stop), text:sub(stop + 1):match '^%s*(.-)%s*$'
end

-- Writing ----------------------------------------------------------------------------------------

local out, used_anchors
local anchors = {} -- of classes
local mistakes

local function put(format, ...) out[#out + 1] = select('#', ...) > 0 and format:format(...) or format end

local function fail(path, comment, what)
  mistakes[#mistakes + 1] = ('%s:%d: %s %s\n'):format(path, comment.line, comment.name or comment.class or '', what)
end

local function anchor_of(heading) return (heading:lower():gsub('[^%w_ -]', ''):gsub(' ', '-')) end

--- Puts a heading. If it is that of a class, types link to it.
local function put_heading(level, text, class)
  put('%s %s\n\n', ('#'):rep(level), text)
  local anchor = anchor_of(text)
  local n = used_anchors[anchor]
  used_anchors[anchor] = (n or 0) + 1
  if class then anchors[class] = n and ('%s-%d'):format(anchor, n) or anchor end
end

--- Puts a text in lines of at most WIDTH characters. Words that would start a list or heading do not start a line.
local function put_wrapped(first, indent, text)
  local line, is_empty = first, true
  for word in text:gmatch '%S+' do
    local is_markup = word:find '^[-+*#>=|]' or word:find '^%d+[.)]$'
    if not is_empty and not is_markup and #line + 1 + #word > WIDTH then
      put('%s\n', line)
      line, is_empty = indent, true
    end
    line, is_empty = line .. (is_empty and '' or ' ') .. word, false
  end
  put('%s\n', line)
end

--- Puts the text of a comment. Indented lines are code, unless they continue an item of a list. Returns whether it
--- ends with a list, which needs a line before the next list.
local function put_text(lines)
  local code, is_item, paragraph = false, false, {}
  local function end_paragraph()
    if #paragraph > 0 then
      put_wrapped('', is_item and '  ' or '', table.concat(paragraph, ' '))
      if not is_item then put '\n' end
    end
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
  return is_item
end

local function code(text) return '`' .. text .. '`' end

--- Returns a type as Markdown, with a link if it is a class. Classes must be on the page.
local function type_text(kind, comment, path)
  for name in kind:gsub("'[^']*'", ''):gmatch '%f[%w]%u%w+' do -- one letter is a generic type
    if not anchors[name] then fail(path, comment, ('has the type %s, which is not on the page'):format(name)) end
  end
  local class = kind:match '^(%u%w+)[%[%]?]*$'
  return class and ('[%s](#%s)'):format(code(kind), anchors[class] or '') or code(kind)
end

--- Splits a text at a separator that is not within brackets.
local function split(text, separator)
  local list, start, open = {}, 1, {}
  for at = 1, #text do
    local char = text:sub(at, at)
    if CLOSE[char] then
      open[#open + 1] = CLOSE[char]
    elseif char == open[#open] then
      open[#open] = nil
    elseif char == separator and #open == 0 then
      list[#list + 1] = text:sub(start, at - 1):match '^%s*(.-)%s*$'
      start = at + 1
    end
  end
  list[#list + 1] = text:sub(start):match '^%s*(.-)%s*$'
  return list
end

--- Returns the members of a type '{ a: T, b?: U }' as tags, with their descriptions from 'text; a: text; b: text',
--- and the text before those; nil if no member has one.
local function members(kind, text)
  local list, by_name, found = {}, {}, false
  if not kind:find '^%b{}$' then return end
  for i, member in ipairs(split(kind:sub(2, -2), ',')) do
    local name, rest = member:match '^([%w_]+%??):%s*(.*)$'
    if not name then return end
    list[i] = { name = name, kind = rest }
    by_name[name:gsub('%?$', '')] = list[i]
  end
  local lead, last = nil, nil
  for _, part in ipairs(split(text, ';')) do
    local name, rest = part:match '^([%w_]+):%s*(.*)$'
    if by_name[name] then
      last, found = by_name[name], true
      last.text = rest
    elseif last then
      last.text = last.text .. '; ' .. part
    else
      lead = lead and lead .. '; ' .. part or part
    end
  end
  return found and list, lead
end

--- Puts '- `name` (`type`, optional): text', with the members of a table as a list below.
local function put_item(tag, comment, path)
  local kind, text = split_type(tag.rest)
  local list, lead = members(kind, text)
  local function put_one(indent, name, type_of, description)
    put_wrapped(indent .. '- ', indent .. '  ', ('%s (%s%s)%s'):format(code(name:gsub('%?$', '')), type_of,
      name:find '%?$' and ', optional' or '', description and description ~= '' and ': ' .. description or ''))
  end
  put_one('', tag.name, list and 'table' or type_text(kind, comment, path), list and (lead or '') or text)
  for _, member in ipairs(list or {}) do
    put_one('  ', member.name, type_text(member.kind, comment, path), member.text)
  end
end

-- First words of the description of a result without a name.
local NO_NAME = {}
for word in ('a an as call each false how in is nil of one that the true what whether'):gmatch '%l+' do
  NO_NAME[word] = true
end

local function put_result(result, comment, path)
  local kind, text = split_type(result.rest)
  local name, rest = text:match '^([%l_]+) ?(.*)$'
  if not name or NO_NAME[name] then name, rest = nil, text end
  put_wrapped('- ', '  ', ('returns %s%s%s'):format(type_text(kind, comment, path), name and ' ' .. code(name) or '',
    rest ~= '' and ': ' .. rest or ''))
end

--- Puts the text, parameters and results of a function.
local function put_function(comment, path)
  if put_text(comment.text) then put 'Parameters and results:\n\n' end
  for _, param in ipairs(comment.params) do put_item(param, comment, path) end
  for _, result in ipairs(comment.returns) do put_result(result, comment, path) end
  if #comment.params + #comment.returns > 0 then put '\n' end
end

--- Puts the text and the fields of a class.
local function put_class(comment, path)
  local is_list, some = put_text(comment.text), false
  for _, field in ipairs(comment.fields) do
    if not field.is_private then
      if is_list and not some then put 'Fields:\n\n' end
      put_item(field, comment, path)
      some = true
    end
  end
  if some then put '\n' end
end

--- Calls each(comment) for the public functions and values of `owner`.
local function each_function(path, comments, owner, each)
  for _, comment in ipairs(annotations.members(comments, owner)) do
    if not comment.has_text then fail(path, comment, 'has no comment') end
    each(comment)
  end
end

local function put_functions(level, path, comments, owner, prefix)
  each_function(path, comments, owner, function(comment)
    put_heading(level, code(prefix .. comment.name .. (comment.is_value and '' or comment.args)))
    put_function(comment, path)
  end)
end

local function put_part(part)
  local comments = annotations.comments(part.file, part.more)
  for i, entry in ipairs(part) do
    local name, owner, prefix = unpack(entry)
    local class = annotations.class(part.file, comments, name)
    if i == 1 and part.title then put_heading(2, part.title, name) else put_heading(3, name, name) end
    put_class(class, part.file)
    if owner then put_functions(3, part.file, comments, owner, prefix) end
  end
end

--- Fails if a module of lib.* is not in exactly one group.
local function check_groups()
  local groups = {}
  for _, group in ipairs(annotations.GROUPS) do
    for i = 2, #group do groups[group[i]] = (groups[group[i]] or 0) + 1 end
  end
  for _, name in ipairs(annotations.INTERNAL) do groups[name] = (groups[name] or 0) + 1 end
  local pipe = assert(io.popen 'ls scripts/lib')
  for file in pipe:lines() do
    local name = file:match '^(.*)%.lua$'
    if name and groups[name] ~= 1 then error(('docs/api.lua: lib.%s must be in one group'):format(name), 0) end
  end
  pipe:close()
end

--- Returns the text up to the first '.' or ':'.
local function first_sentence(lines)
  local text = table.concat(lines, ' ')
  return text:match '^(.-)[.:]%s' or text:gsub('[.:]$', '')
end

local function put_module(name)
  local path = annotations.file(name)
  local comments, own = annotations.comments(path), annotations.table_of(path)
  put_heading(3, 'lib.' .. name)
  put_text(annotations.head(path))
  put_functions(4, path, comments, own, (VARIABLE[name] or name) .. '.')
  for _, comment in ipairs(comments) do
    if comment.class and not comment.is_private then
      put_heading(4, comment.class, comment.class)
      put_class(comment, path)
      if comment.class ~= own then put_functions(4, path, comments, comment.class, comment.class .. ':') end
    end
  end
end

local function put_row(name, is_linked)
  local title = code('lib.' .. name)
  if is_linked then title = ('[%s](#lib%s)'):format(title, name) end
  put('| %s | %s |\n', title, first_sentence(annotations.head(annotations.file(name))))
end

local INTRO = [[
# Script API

A script reaches the host through `ev` in its handlers, through `session` and `out`, which
`start(opt, out, session)` gets, and through the modules `lib.*`, which it requires.
[scripting.md](scripting.md) explains how to write scripts. `make api` generates this page from the
annotations in the source.

- Times and durations are numbers in ns, unless a description says otherwise.
- `integer64` is a 64-bit integer. It prints, compares and computes like a number, but must not be
  the key of a Lua table.
- `T?` is a T or nil, `T[]` is a list, and `fun(a: T): R` is a function.
- A wrong argument, an index out of range and an event that is no longer valid raise an error with
  the line of the script.

]]

local function put_page()
  out, used_anchors, mistakes = {}, {}, {}
  put(INTRO)
  for _, part in ipairs(annotations.PARTS) do
    if part.title then put('- [%s](#%s)\n', part.title, anchor_of(part.title)) end
  end
  for _, group in ipairs(annotations.GROUPS) do
    put('\n| %s | |\n|---|---|\n', group[1])
    for i = 2, #group do put_row(group[i], true) end
  end
  put '\n'
  for _, part in ipairs(annotations.PARTS) do put_part(part) end
  for _, group in ipairs(annotations.GROUPS) do
    put_heading(2, group[1])
    for i = 2, #group do put_module(group[i]) end
  end
  put_heading(2, 'Used by shipped profilers and commands')
  put_text { 'Each of these modules is written for one profiler, command or module, and changes with it. Their'
    .. ' functions are documented in their source.' }
  put '| module | |\n|---|---|\n'
  for _, name in ipairs(annotations.INTERNAL) do
    put_row(name)
    local path = annotations.file(name)
    each_function(path, annotations.comments(path), annotations.table_of(path), function() end)
  end
end

check_groups()
put_page() -- finds the anchors of classes
put_page()
io.stderr:write(table.concat(mistakes))
local text = table.concat(out):gsub('\n\n\n+', '\n\n'):gsub('\n+$', '\n')
io.stdout:write(text)
return #mistakes > 0 and 1 or 0
