-- SPDX-License-Identifier: GPL-2.0-only
--- Names of numbers: the lists of names in the print formats of events, for the SQL functions symbolic(), ksymbol() and
--- others, and for keys of one-liners.
local bit = require 'bit'
local ffi = require 'ffi'
local codegen = require 'bindings.print.printfmt_codegen'
local kprintf = require 'bindings.print.kprintf'
local parse = require 'bindings.expr.parse'
local units = require 'bindings.base.units'

local C = ffi.C
local names = {}

local LISTS = { __print_symbolic = 2, __print_symbolic_u64 = 2, __print_flags = 3, __print_flags_u64 = 3 }

--- The extensions of %p in print formats, and the functions that give the same text.
local POINTERS = {
  { '^[sSfF]', 'ksymbol' }, { '^[Ii]4[hl]', 'ipv4_hstr' }, { '^[Ii]4', 'ipv4_str' }, { '^[Ii]6', 'ipv6_str' },
  { '^[Ii]S%a*[hl]', 'ipsa_hstr' }, { '^[Ii]S', 'ipsa_str' }, { '^U[lL]', 'guid_str' }, { '^U', 'uuid_str' },
  { '^[mM]', 'mac_str' },
}

--- Returns the value of a constant, nil if it is not one.
local function constant(node)
  if node.op == 'num' then return ffi.cast('int64_t', node.value) end
  if node.op == 'cast' then return constant(node.a) end
  if node.op == 'unary' and node.sign == '-' then
    local value = constant(node.a)
    return value and -value
  elseif node.op == 'binary' then
    local a, b = constant(node.a), constant(node.b)
    if not a or not b then return end
    if node.sign == '<<' then return ffi.cast('int64_t', bit.lshift(a, tonumber(b))) end
    if node.sign == '|' then return bit.bor(a, b) end
    if node.sign == '&' then return bit.band(a, b) end
    if node.sign == '+' then return a + b end
    if node.sign == '-' then return a - b end
  end
end

--- Returns the field that an expression is, and the mask that is applied to it.
---@return string? field
---@return ffi.cdata*? mask
local function field_of(node)
  if node.op == 'member' and node.a.op == 'var' and node.a.name == 'REC' then return node.name, -1LL end
  if node.op == 'cast' then return field_of(node.a) end
  if node.op == 'call' and (node.name == '__get_sockaddr' or node.name == '__get_dynamic_array') and node.args[1] then
    return node.args[1].name, -1LL
  end
  if node.op == 'binary' and node.sign == '&' then
    local field, mask = field_of(node.a)
    local more = constant(node.b)
    if field and more then return field, bit.band(mask, more) end
  end
end

local CHILDREN = { 'cond', 'a', 'b', 'target', 'args', 'items', 'steps' }

--- Returns the branch of kvm:kvm_exit's format that names the exits of this machine's CPUs; nil for other conditions.
local function branch_of_isa(node)
  local cond = node.cond
  if cond.op ~= 'binary' or cond.sign ~= '==' or field_of(cond.a) ~= 'isa' then return end
  local file = io.open '/proc/cpuinfo'
  local is_intel = file and file:read 'a':find 'GenuineIntel'
  if file then file:close() end
  return (constant(cond.b) == 1) == (is_intel ~= nil) and node.a or node.b
end

--- Calls visit() with all nodes of a tree, in the order of the text.
local function walk(node, visit)
  if type(node) ~= 'table' then return end
  if node.op then visit(node) end
  local branch = node.op == 'choose' and branch_of_isa(node)
  if branch then return walk(branch, visit) end
  for _, child in ipairs(node) do walk(child, visit) end
  for _, key in ipairs(CHILDREN) do walk(node[key], visit) end
end

--- Returns the functions that print formats apply to their arguments, by the number of the argument.
local function pointer_functions(format)
  local at, found, n = 1, {}, 0
  while true do
    local from, to, kind = format:find('%%[-+ 0#]*[%d*]*%.?[%d*]*[hlLqzZtj]*([%acdiuxXpos%%])', at)
    if not from then return found end
    at = to + 1
    if kind ~= '%' then
      n = n + 1
      for _, pointer in ipairs(kind == 'p' and POINTERS or {}) do
        if format:find(pointer[1], at) then
          found[n] = pointer[2]
          break
        end
      end
    end
  end
end

--- Reads the entries { value, "name" } of a list.
local function entries(args, first)
  local list = {}
  for i = first, #args do
    local items = args[i].items
    local value = items and items[1] and constant(items[1])
    if value and items[2] and items[2].op == 'str' then list[#list + 1] = { value, items[2].value } end
  end
  return list
end

---@class NameList
---@field field string
---@field mask ffi.cdata* int64_t: applied to the field first
---@field separator? string the names are those of bits
---@field entries { [1]: ffi.cdata*, [2]: string }[] int64_t and name

--- Returns the lists of names in the print format of an event, one per field, and the functions that it uses.
---@param event Event
---@return NameList[]
---@return string[] functions such as 'ksymbol(function)'
function names.of(event)
  local text = event.print_fmt or event.tracepoint and ffi.string(C.tracepoint_print_fmt(event.tracepoint))
  local lists, functions, seen = {}, {}, {}
  local ok, nodes = pcall(parse.print_format, text or '', codegen.TYPES)
  if not ok or not nodes[1] then return lists, functions end
  walk(nodes, function(node)
    local first = node.op == 'call' and LISTS[node.name]
    local field, mask
    if first and node.args[1] then field, mask = field_of(node.args[1]) end
    if not field or seen[field] or not event.fields[field] then return end
    local found = entries(node.args, first)
    if #found == 0 then return end
    seen[field] = true
    local delim = first == 3 and (node.args[2].op == 'str' and node.args[2].value or '') or nil
    lists[#lists + 1] = { field = field, mask = mask, separator = delim, entries = found }
  end)
  for i, name in pairs(pointer_functions(nodes[1].op == 'str' and nodes[1].value or '')) do
    local field = nodes[i + 1] and field_of(nodes[i + 1])
    if field then functions[#functions + 1] = ('%s(%s)'):format(name, field) end
  end
  for _, field in ipairs { 'id', '__syscall_nr' } do
    local is_call = event.name:find '^raw_syscalls:' or event.name:find '^syscalls:'
    if is_call and event.fields[field] then functions[#functions + 1] = ('syscall(%s)'):format(field) end
  end
  table.sort(lists, function(a, b) return a.field < b.field end)
  table.sort(functions)
  return lists, functions
end

local by_content = {} -- functions by list of names
local of_context = setmetatable({}, { __mode = 'k' }) -- functions that return symbols

--- Returns the function that returns the names of a list, the same one for the same names.
local function text_of(list)
  local parts, by_number = { list.separator or '' }, {}
  for i, entry in ipairs(list.entries) do
    parts[i + 1] = ('%s=%s'):format(tostring(entry[1]), entry[2])
    local number = tonumber(entry[1])
    by_number[number] = by_number[number] or entry[2]
  end
  local content = table.concat(parts, '\n')
  if not by_content[content] then
    local flags = list.separator and kprintf.flags(list.entries, list.separator)
    by_content[content] = flags and function(n) return n ~= 0 and flags(n) or n end
      or function(n) return by_number[tonumber(n)] or n end
  end
  return by_content[content]
end

--- Returns the function that returns the symbol at an address of the kernel.
local function symbol_of(context)
  of_context[context] = of_context[context] or function(address)
    local symbol = context.symbol(address, true)
    return symbol and symbol:gsub('%+0x0$', '') or units.address(address)
  end
  return of_context[context]
end

--- Returns functions that return the text of the numbers of an event, by field: names and symbols where its print
--- format has them. Numbers without a name stay numbers.
---@param event Event
---@return table<string, fun(n: number|ffi.cdata*): any>
function names.texts(event)
  local lists, functions = names.of(event)
  local texts = {}
  for _, list in ipairs(lists) do
    if list.mask == -1LL then texts[list.field] = text_of(list) end
  end
  for _, text in ipairs(functions) do
    local field = text:match '^ksymbol%((.*)%)$'
    if field then texts[field] = symbol_of(event.context) end
  end
  return texts
end

return names
