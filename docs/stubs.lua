-- SPDX-License-Identifier: GPL-2.0-only
--- Generates the definition files of `profscript stubs` from the annotations, as a Lua module that returns their texts
--- by path. The program contains it:
---   luajit docs/stubs.lua >build/stubs.lua
local annotations = require 'docs.annotations'

local lines

local function put(format, ...) lines[#lines + 1] = select('#', ...) > 0 and format:format(...) or format end

local function put_text(text)
  for _, line in ipairs(text) do put('---%s', line == '' and '' or ' ' .. line) end
end

local function put_class(comment)
  put_text(comment.text)
  put('---@class %s', comment.class)
  for _, field in ipairs(comment.fields) do
    if not field.is_private then put('---@field %s %s', field.name, field.rest) end
  end
end

--- Puts the functions and values of a table that has been declared.
local function put_members(comments, owner)
  for _, member in ipairs(annotations.members(comments, owner)) do
    put ''
    put_text(member.text)
    for _, line in ipairs(member.other) do put(line) end
    for _, param in ipairs(member.params) do put('---@param %s %s', param.name, param.rest) end
    for _, result in ipairs(member.returns) do put('---@return %s', result.rest) end
    if member.is_value then
      local is_table = member.value:find '^{'
      put('---@type %s', is_table and 'table' or tonumber(member.value) and 'number' or 'integer')
      put('%s.%s = %s', owner, member.name, is_table and '{}' or tonumber(member.value) or '0')
    else
      put('function %s%s%s%s end', owner, member.separator, member.name, member.args)
    end
  end
end

--- Returns the definitions of what scripts reach without require.
local function api_text()
  lines = { '---@meta', '',
    '--- A 64-bit integer: it prints, compares and computes like a number, but must not be the key of a table.',
    '---@alias integer64 integer' }
  for _, part in ipairs(annotations.PARTS) do
    local comments = annotations.comments(part.file, part.more)
    for _, entry in ipairs(part) do
      local name, owner = unpack(entry)
      put ''
      put_class(annotations.class(part.file, comments, name))
      if owner then
        put('local %s = {}', owner)
        put_members(comments, owner)
      end
    end
  end
  put ''
  return table.concat(lines, '\n')
end

--- Returns the definitions of a module of lib.*.
local function module_text(name)
  local path = annotations.file(name)
  local comments, own = annotations.comments(path), annotations.table_of(path)
  lines = { '---@meta lib.' .. name, '' }
  for _, comment in ipairs(comments) do
    if comment.class and not comment.is_private and comment.class ~= own then
      put_class(comment)
      put('local %s = {}', comment.class)
      put_members(comments, comment.class)
      put ''
    end
  end
  put_text(annotations.head(path))
  put('local %s = {}', own)
  put_members(comments, own)
  put('\nreturn %s\n', own)
  return table.concat(lines, '\n')
end

local function put_file(path, text) io.write(('  [%q] = %q,\n'):format(path, text)) end

io.write 'return {\n'
put_file('api.lua', api_text())
for _, group in ipairs(annotations.GROUPS) do
  for i = 2, #group do put_file(('lib/%s.lua'):format(group[i]), module_text(group[i])) end
end
io.write '}\n'
