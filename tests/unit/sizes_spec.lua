-- SPDX-License-Identifier: GPL-2.0-only
-- A function of Lua fits on a screen, and so does a profiler, but for the help that it prints.
local util = require 'jit.util'

local LONGEST = 56 -- lines of a function
local MEDIAN, LARGEST = 60, 150 -- lines of a profiler, without comments and blank lines

local function files(folders)
  local list = {}
  for path in assert(io.popen('find ' .. folders .. " -name '*.lua'")):lines() do list[#list + 1] = path end
  assert(#list > 30)
  return list
end

--- Calls a function with the length of each function in a prototype.
local function each_length(proto, use)
  local info = util.funcinfo(proto)
  if info.linedefined > 0 then use(info.lastlinedefined - info.linedefined + 1, info.linedefined) end
  local n = -1
  while info.children and util.funck(proto, n) ~= nil do
    local child = util.funck(proto, n)
    if type(child) == 'proto' then each_length(child, use) end
    n = n - 1
  end
end

--- Returns the lines of a file that are neither blank nor a comment.
local function code_lines(path)
  local n = 0
  for line in io.lines(path) do
    if not line:find '^%s*$' and not line:find '^%s*%-%-' then n = n + 1 end
  end
  return n
end

describe('sizes', function()
  it('of functions', function()
    for _, path in ipairs(files 'bindings bpf scripts examples') do
      local longer = {}
      each_length(assert(loadfile(path)), function(length, line)
        if length > LONGEST then longer[#longer + 1] = ('%s:%d: a function of %d lines'):format(path, line, length) end
      end)
      assert.equal('', table.concat(longer, '; '))
    end
  end)

  it('of profilers', function()
    local sizes = {}
    for _, path in ipairs(files 'scripts/profilers') do
      sizes[#sizes + 1] = code_lines(path)
      assert(sizes[#sizes] <= LARGEST, ('%s: %d lines of code'):format(path, sizes[#sizes]))
    end
    table.sort(sizes)
    assert(sizes[math.ceil(#sizes / 2)] <= MEDIAN, 'the median is above ' .. MEDIAN)
  end)
end)
