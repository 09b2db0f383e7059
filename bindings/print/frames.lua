-- SPDX-License-Identifier: GPL-2.0-only
--- Frames: the frames of stacks and their text. They are symbolized when a stack is printed, not when it is recorded.
local bit = require 'bit'
local ffi = require 'ffi'
local text = require 'bindings.base.text'

local C = ffi.C
local lshift, rshift = bit.lshift, bit.rshift
local frames = {}

local FRAME_JIT, FRAME_DATA = tonumber(C.FRAME_JIT), tonumber(C.FRAME_DATA)
local MANY_STACKS = 2 ^ 18 -- a quarter of the runtime's limit
local MAX_MEMBER = 127 -- of a stack's id, which must be positive
local MAX_TEXTS = 4096 -- number of stacks, and of addresses, cached as text

--- A frame of a stack, or an address that was looked up.
---@class Frame
---@field address integer64
---@field symbol? string
---@field symbol_offset number offset from the symbol's start, in bytes
---@field dso? string the file, '[kernel.kallsyms]' or '[module]'
---@field offset number offset in that file
---@field in_kernel boolean
---@field is_jit boolean JIT-compiled code
---@field is_data boolean the symbol is a variable; without one, dso may also be '[heap]', '[stack]' or '[anon]'
---@field inlined? boolean inlined into the function of the next frame
---@field source? string file and line, with --srcline

---@class Frames
---@field list fun(id: integer): Frame[] innermost first
---@field lines fun(id: integer): string[] the frames as printed in reports, with their addresses
---@field text fun(id: integer): string the same as indented lines
---@field symbol_text fun(id: integer): string|false 'symbol+0x1c' of the innermost frame, or '[heap]' of data; false:
--- it has no symbol
---@field add_session fun(other: ffi.cdata*): integer makes the stacks of another session of this machine known, which
--- must live as long; returns what to add to the ids of its stacks
---@field before_forget fun(call: fun()) sets what to call just before ids become invalid
---@field forget fun() discards all stacks if there are many; ids become invalid
---@field names fun(id: integer, names: string[], kinds: string[]): integer stores the names and kinds of the frames,
---  innermost first, and returns their number; kinds: 'k' kernel, 'j' JIT code, 'i' inlined, 'u' other, '?' only the
---  file is known ('[libc.so.6]')

--- Formats a frame: "symbol+0x1c (file)" or "symbol (inlined)", followed by the source line if known.
---@param frame Frame
---@return string
function frames.text(frame)
  local symbol, place = frame.symbol or 'Unknown', frame.inlined and 'inlined' or frame.dso or 'unknown'
  if frame.symbol and not frame.inlined then symbol = ('%s+0x%x'):format(symbol, frame.symbol_offset) end
  return ('%s (%s)%s'):format(symbol, place, frame.source and ' ' .. frame.source or '')
end

--- Returns '[libc.so.6]' for the path of a file, and other names as they are: '[heap]'.
local function in_brackets(dso) return ('[%s]'):format(dso:match '[^/]*$':match '^%[?(.-)%]?$') end

local function indented(lines) return #lines > 0 and '    ' .. table.concat(lines, '\n    ') .. '\n' or '' end

--- Returns a function that turns strings of the runtime, which it never moves or frees, into Lua strings.
local function string_cache()
  local strings = {} -- by address
  return function(s)
    if s == nil then return nil end
    local at = tonumber(ffi.cast('intptr_t', s))
    local found = strings[at]
    if not found then
      found = text.safe(ffi.string(s))
      strings[at] = found
    end
    return found
  end
end

--- What the functions of one Frames share.
---@class FrameParts
---@field find fun(id: integer): ffi.cdata*, integer, integer the stacks of a stack's machine, its number there, the
--- machine
---@field string_at fun(s: ffi.cdata*): string?
---@field add? function see frames.new()
---@field others table<integer, ffi.cdata*> further sessions, by member
---@field progress Progress
---@field frame ffi.cdata* struct frame *, for each call

--- Adds list().
local function add_list(self, parts)
  local find, string_at, add, others = parts.find, parts.string_at, parts.add, parts.others
  local progress, frame = parts.progress, parts.frame

  function self.list(id)
    if id < 0 then return {} end
    local list, index, stacks, number, member = {}, 0, find(id)
    if stacks == nil then return list end
    progress:step(1, 'stacks')
    while C.stacks_frame(stacks, number, index, frame) do
      local one = {
        address = frame.address,
        symbol = string_at(frame.symbol),
        symbol_offset = tonumber(frame.symbol_offset),
        dso = string_at(frame.dso),
        offset = tonumber(frame.offset - frame.back),
        in_kernel = frame.in_kernel,
        is_jit = frame.kind == FRAME_JIT,
        is_data = frame.kind == FRAME_DATA,
      }
      if add and not others[member] and not one.is_data then
        add(list, one, member, frame.file, frame.offset - frame.back)
      else
        list[#list + 1] = one
      end
      index = index + 1
    end
    return list
  end
end

--- Adds names().
local function add_names(self, parts)
  local find, string_at, add, progress, frame = parts.find, parts.string_at, parts.add, parts.progress, parts.frame

  local files = {} -- the same by address of the path
  local function unknown_in(dso)
    if dso == nil then return 'Unknown' end
    local at = tonumber(ffi.cast('intptr_t', dso))
    files[at] = files[at] or in_brackets(string_at(dso))
    return files[at]
  end

  --- Implements names() if inlined functions may add frames.
  local function listed_names(id, names, kinds)
    local list = self.list(id)
    for i, one in ipairs(list) do
      local file = not one.in_kernel and one.dso and in_brackets(one.dso)
      names[i] = one.symbol or file or 'Unknown'
      kinds[i] = one.inlined and 'i' or one.in_kernel and 'k' or one.is_jit and 'j' or one.symbol and 'u' or '?'
    end
    return #list
  end

  function self.names(id, names, kinds)
    if add then return listed_names(id, names, kinds) end
    if id < 0 then return 0 end
    local n, stacks, number = 0, find(id)
    if stacks == nil then return n end
    progress:step(1, 'stacks')
    while C.stacks_frame(stacks, number, n, frame) do
      n = n + 1
      local kind = frame.kind
      if frame.in_kernel then
        names[n], kinds[n] = string_at(frame.symbol) or 'Unknown', 'k'
      elseif frame.symbol ~= nil then
        names[n], kinds[n] = string_at(frame.symbol), kind == FRAME_JIT and 'j' or 'u'
      else
        names[n], kinds[n] = unknown_in(frame.dso), '?'
      end
    end
    return n
  end
end

--- Adds the functions that return text. Returns what empties their caches.
---@param self Frames
---@return fun() forget
local function add_texts(self)
  --- Returns a line for each frame. in_kernel: true: only kernel frames, false: only user frames, nil: all.
  function self.lines(id, in_kernel)
    local lines = {}
    for _, one in ipairs(self.list(id)) do
      if in_kernel == nil or (one.in_kernel or false) == in_kernel then
        lines[#lines + 1] = ('%016x %s'):format(one.address, frames.text(one))
      end
    end
    return lines
  end

  --- Returns the kernel frames and the user frames as two texts.
  function self.halves(id) return indented(self.lines(id, true)), indented(self.lines(id, false)) end

  local texts, nr_texts = {}, 0
  function self.text(id)
    local found = texts[id]
    if not found then
      found = indented(self.lines(id))
      if nr_texts == MAX_TEXTS then texts, nr_texts = {}, 0 end
      texts[id], nr_texts = found, nr_texts + 1
    end
    return found
  end

  local symbols, nr_symbols = {}, 0
  local function look_up_symbol(id)
    local first = self.list(id)[1]
    local found = first and first.symbol and ('%s+0x%x'):format(first.symbol, first.symbol_offset) or false
    if first and first.is_data and not found then found = in_brackets(first.dso) end
    if nr_symbols == MAX_TEXTS then symbols, nr_symbols = {}, 0 end
    symbols[id], nr_symbols = found, nr_symbols + 1
    return found
  end

  function self.symbol_text(id)
    local found = symbols[id]
    if found == nil then return look_up_symbol(id) end
    return found
  end

  return function()
    texts, nr_texts = {}, 0
    symbols, nr_symbols = {}, 0
  end
end

--- Creates the functions that access the frames of a session's stacks.
---@param session ffi.cdata*
---@param add? fun(list: Frame[], frame: Frame, member: integer, file: integer, offset: ffi.cdata*) adds a frame and
---  its inlined functions to the list; nil: only frames are added
---@param progress Progress of looking up symbols
---@return Frames
function frames.new(session, add, progress)
  local self, others, stats, listeners = {}, {}, ffi.new 'struct stacks_stats', {}

  local function stacks_of(member)
    local other = others[member]
    return C.session_stacks(other or session, other and 0 or member)
  end

  local function find(id)
    local member = rshift(id, C.STACK_MEMBER_SHIFT)
    return stacks_of(member), id - lshift(member, C.STACK_MEMBER_SHIFT), member
  end

  --- Adds the stacks of another session of this machine.
  function self.add_session(other)
    local member = MAX_MEMBER
    while others[member] do member = member - 1 end
    others[member] = other
    return lshift(member, C.STACK_MEMBER_SHIFT)
  end

  local parts = { find = find, string_at = string_cache(), add = add, others = others, progress = progress,
    frame = ffi.new 'struct frame' }
  add_list(self, parts)
  add_names(self, parts)
  local forget_texts = add_texts(self)

  function self.forget()
    for member = 0, MAX_MEMBER do
      local is_used = others[member] or member < C.session_machines(session)
      local stacks = is_used and stacks_of(member) or nil
      if stacks ~= nil then C.stacks_read_stats(stacks, stats) end
      if stacks ~= nil and stats.stacks >= MANY_STACKS then
        for _, call in ipairs(listeners) do call() end
        C.stacks_clear(stacks)
        forget_texts()
      end
    end
  end

  function self.before_forget(call) listeners[#listeners + 1] = call end
  return self
end

return frames
