-- SPDX-License-Identifier: GPL-2.0-only
--- Processes by name, for -p. The name is that of `ps -o comm`, of which the kernel keeps 15 bytes. A longer name must
--- also be the file name of the program or its script in the process's command line.
local failure = require 'bindings.base.failure'
local libc = require 'bindings.base.libc'
local nearest = require 'bindings.base.nearest'
local sys = require 'bindings.base.sys'
local text = require 'bindings.base.text'

local processes = {}

local MAX_COMM = 15 -- TASK_COMM_LEN - 1
local MAX_WORDS = 2 -- the interpreter and its script
local MAX_HINTS = 4 -- threads to name

--- Returns the pids and names of all processes except this one.
local function all()
  local list = {}
  for _, entry in ipairs(sys.readdir '/proc' or {}) do
    local pid = entry:match '^%d+$' and tonumber(entry)
    local name = pid and pid ~= libc.getpid() and sys.read(('/proc/%d/comm'):format(pid))
    if name then list[#list + 1] = { pid = pid, name = (name:gsub('\n$', '')) } end
  end
  return list
end

local function is_called(process, name)
  if #name <= MAX_COMM then return process.name == name end
  if process.name ~= name:sub(1, MAX_COMM) then return false end
  local n = 0
  for word in (sys.read(('/proc/%d/cmdline'):format(process.pid)) or ''):gmatch '%Z+' do
    n = n + 1
    if n > MAX_WORDS then return false end
    if word:match '[^/]*$' == name then return true end
  end
  return false
end

--- Returns the names of all processes, sorted and without duplicates. Omits names that are unsafe for a terminal.
---@return string[]
function processes.names()
  local seen = {}
  for _, process in ipairs(all()) do
    if text.safe(process.name) == process.name then seen[process.name] = true end
  end
  return nearest.keys(seen)
end

--- Returns the end of the message about a name that no process has: the threads that have it, or the nearest name.
local function hint(name, running)
  local found
  for _, process in ipairs(running) do
    for _, tid in ipairs(sys.readdir(('/proc/%d/task'):format(process.pid)) or {}) do
      local comm = sys.read(('/proc/%d/task/%s/comm'):format(process.pid, tid))
      if comm == name:sub(1, MAX_COMM) .. '\n' then
        found = found or {}
        found[#found + 1] = tid
      end
      if found and #found == MAX_HINTS then break end
    end
    if found then
      return ('; process %d (%s) has threads of this name: use -t %s'):format(process.pid, text.safe(process.name),
        table.concat(found, ','))
    end
  end
  return nearest.hint(name, processes.names())
end

--- Returns what has a number in another pid namespace, such as that of a container, but another number in this one.
---@param number integer
---@param threads? boolean also threads, not only processes
---@return { pid: integer, name: string }[]
function processes.namesakes(number, threads)
  local found = {}
  local function look(folder)
    local own, inner = (sys.read(folder .. '/status') or ''):match '\nNSpid:%s*(%d+)[ \t][^\n]-(%d+)\n'
    if tonumber(inner) ~= number or tonumber(own) == number then return end
    found[#found + 1] = { pid = tonumber(own), name = (sys.read(folder .. '/comm') or ''):gsub('\n$', '') }
  end
  for _, entry in ipairs(sys.readdir '/proc' or {}) do
    local folder = entry:match '^%d+$' and '/proc/' .. entry
    if folder and threads then
      for _, tid in ipairs(sys.readdir(folder .. '/task') or {}) do look(folder .. '/task/' .. tid) end
    elseif folder then
      look(folder)
    end
  end
  return found
end

--- Returns what may have been meant by numbers of processes or threads, in words; nil: only what has them here.
---@param numbers integer[]
---@param threads? boolean
---@return string?
function processes.other_meaning(numbers, threads)
  local parts, more = {}, 0
  for _, number in ipairs(numbers) do
    for _, one in ipairs(processes.namesakes(number, threads)) do
      local part = ('%d of another pid namespace is %d (%s) here'):format(number, one.pid, text.safe(one.name))
      if #parts < MAX_HINTS then parts[#parts + 1] = part else more = more + 1 end
    end
  end
  return parts[1] and table.concat(parts, ', ') .. (more > 0 and (', and so are %d more'):format(more) or '')
end

--- Returns the pids of the processes that exist now. Fails if no process has a name.
---@param list (integer|string)[] pids and names
---@return integer[] pids sorted, without duplicates
function processes.pids(list)
  local seen, pids, running = {}, {}, nil
  local function add(pid)
    if not seen[pid] then pids[#pids + 1] = pid end
    seen[pid] = true
  end
  for _, one in ipairs(list) do
    if type(one) == 'number' then
      local meaning = not sys.stat('/proc/' .. one) and processes.other_meaning { one }
      if meaning then failure.raise('no such process: %d; %s', one, meaning) end
      add(one)
    else
      running = running or all()
      local found = false
      for _, process in ipairs(running) do
        if is_called(process, one) then
          add(process.pid)
          found = true
        end
      end
      if not found then
        failure.raise("no such process: '%s'%s", text.safe(one), hint(one, running))
      end
    end
  end
  table.sort(pids)
  return pids
end

return processes
