-- SPDX-License-Identifier: GPL-2.0-only
--- `profscript test FILE...`: runs scripts on recordings and compares what they print. The cases of NAME.lua lie beside
--- it: NAME.CASE.data is a recording, NAME.CASE.args has arguments, NAME.CASE.expect is the expected output.
local libc = require 'bindings.base.libc'
local shell = require 'bindings.base.shell'
local sys = require 'bindings.base.sys'

local test_script = {}

--- Returns the names of the cases of a script, sorted.
---@param folder string
---@param stem string name of the script without ".lua"
---@return string[]
local function cases_of(folder, stem)
  local names, seen = {}, {}
  for _, file in ipairs(sys.readdir(folder) or {}) do
    local name, kind = file:match '^(.*)%.(%w+)$'
    local is_case = name and name:sub(1, #stem + 1) == stem .. '.' and (kind == 'data' or kind == 'args')
    if is_case and not seen[name] then names[#names + 1], seen[name] = name, true end
  end
  table.sort(names)
  return names
end

--- Runs a case. Returns what it prints, with its warnings, and its exit status unless that is 0.
local function output_of(folder, file, case)
  local args = (sys.read(('%s/%s.args'):format(folder, case)) or ''):gsub('%s+$', '')
  local has_data = sys.stat(('%s/%s.data'):format(folder, case))
  if has_data then args = ('%s --input %s.data'):format(args, shell.quote(case)) end
  local command = 'cd %s && { TZ=UTC /proc/%d/exe ./%s %s </dev/null 2>&1; echo "status $?"; }'
  local pipe = assert(io.popen(command:format(shell.quote(folder), libc.getpid(), shell.quote(file), args)))
  local text = pipe:read '*a'
  pipe:close()
  return (text:gsub('status 0\n$', ''))
end

--- Returns the first difference of two texts.
local function difference(expected, got)
  local number, next_got = 0, (got .. '\n'):gmatch '(.-)\n'
  for line in (expected .. '\n'):gmatch '(.-)\n' do
    number = number + 1
    local other = next_got()
    if other ~= line then
      return ('line %d\n#   expected: %s\n#   printed:  %s'):format(number, line, other or '(nothing)')
    end
  end
  return ('line %d\n#   expected: (nothing)\n#   printed:  %s'):format(number + 1, next_got())
end

---@class test_script.Result
---@field case string 'NAME.CASE'
---@field problem? string what is wrong; nil: nothing
---@field is_new? boolean the expected output was written

--- Runs the cases of a script.
---@param path string
---@param update boolean write the expected output
---@return test_script.Result[]? results
---@return string? message if there are no cases
function test_script.run(path, update)
  local folder, file = path:match '^(.*)/([^/]*)$'
  folder, file = folder or '.', file or path
  if not sys.stat(path) then return nil, ("no such file '%s'"):format(path) end
  local stem, results = file:gsub('%.lua$', ''), {}
  for i, case in ipairs(cases_of(folder, stem)) do
    local got, expect = output_of(folder, file, case), ('%s/%s.expect'):format(folder, case)
    local expected = sys.read(expect)
    results[i] = { case = case }
    if update and got ~= expected then
      local out, message = io.open(expect, 'w')
      if not out then return nil, message end
      out:write(got)
      out:close()
      results[i].is_new = true
    elseif not expected then
      results[i].problem = expect .. ' is missing: --update writes it'
    elseif got ~= expected then
      results[i].problem = difference(expected, got)
    end
  end
  if #results == 0 then
    return nil, ('%s has no tests: there is neither %s.CASE.data nor %s.CASE.args beside it'):format(path, stem, stem)
  end
  return results
end

return test_script
