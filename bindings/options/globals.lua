-- SPDX-License-Identifier: GPL-2.0-only
--- Finds undeclared globals in a script before it runs, in branches and handlers that may never be reached too. Reads
--- the bytecode of the chunk and of all functions in it.
local bit = require 'bit'
local nearest = require 'bindings.base.nearest'
local util = require 'jit.util'

local globals = {}

--- Opcodes are numbered differently in each LuaJIT; these are read off functions that hold them.
local function opcode_of(fn) return bit.band(util.funcbc(fn, 1), 0xff) end

local READ = opcode_of(function() return print end)
local WRITE = opcode_of(load 'return function(value) name = value end' ())

--- Calls found(name, line, writes) for each global that a function or prototype uses, and those inside it.
local function each(fn, found)
  for pc = 1, util.funcinfo(fn).bytecodes - 1 do
    local ins = util.funcbc(fn, pc)
    local op = bit.band(ins, 0xff)
    if op == READ or op == WRITE then
      found(util.funck(fn, -bit.rshift(ins, 16) - 1), util.funcinfo(fn, pc).currentline, op == WRITE)
    end
  end
  for i = -1, -0x10000, -1 do
    local constant = util.funck(fn, i)
    if constant == nil then break end
    if type(constant) == 'proto' then each(constant, found) end
  end
end

--- Returns the globals that a chunk assigns.
---@param chunk function
---@return table<string, true>
function globals.assigned(chunk)
  local names = {}
  each(chunk, function(name, _, writes) names[name] = writes or names[name] end)
  return names
end

--- What starts like a global but is a parameter.
local PARAMETERS = { session = true, out = true, opt = true }

--- Returns a message about the undeclared globals of a chunk, one line each; nil if there are none. A chunk that uses
--- _G may declare some by itself.
---@param path string of the script
---@param chunk function not yet called
---@param env table its globals
---@return string? message
function globals.check(path, chunk, env)
  local lines, reported, sets_its_own = {}, {}, false
  each(chunk, function(name, line, writes)
    if name == '_G' then sets_its_own = true end
    if rawget(env, name) ~= nil then return end
    local text = writes and ("assignment to undeclared global '%s'; make it local"):format(name)
      or ("undeclared global '%s'%s"):format(name, PARAMETERS[name] and '; write start = function(opt, out, session)'
        or nearest.hint(name, nearest.keys(env)))
    local message = ('%s:%d: %s'):format(path, line, text)
    if not reported[message] then lines[#lines + 1] = message end
    reported[message] = true
  end)
  return #lines > 0 and not sets_its_own and table.concat(lines, '\n') or nil
end

return globals
