-- SPDX-License-Identifier: GPL-2.0-only
--- Control groups: their names by their ids, which are the inode numbers of their directories, and those that --cgroups
--- names.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local failure = require 'bindings.base.failure'
local containers = require 'bpf.groups.containers'
local glob = require 'bindings.base.glob'
local libc = require 'bindings.base.libc'
local sys = require 'bindings.base.sys'
local text = require 'bindings.base.text'

local C = ffi.C
local cgroups = {}

local ROOT_INODE = 1 -- of the whole hierarchy

local AGAIN = 1 -- second between two searches for an unknown group: one that is gone is never found
local known, searched = {}, -math.huge
local container_of = {} -- by id
local kinds = {} -- of these: see containers.of()

local function root()
  local path = C.cgroups_root('/proc/self/mounts', ffi.new 'struct error')
  return path ~= nil and ffi.string(ffi.gc(path, libc.free)) or nil
end

local function search(path, name)
  local st = sys.stat(path)
  if not st or not st.isdir then return end
  known[st.inode] = name
  for _, entry in ipairs(sys.readdir(path) or {}) do
    search(path .. '/' .. entry, (name == '/' and '' or name) .. '/' .. text.safe(entry))
  end
end

local path_of, is_recorded = nil, false

--- Sets how the groups are known that the events themselves name. Those of a recording are not of this machine.
---@param path fun(id: number): string? the path of a group of which there was a record
---@param of_recording boolean
function cgroups.of_session(path, of_recording) path_of, is_recorded = path, of_recording end

local named = 0

--- Finds the names of the groups of which there were records since the last call. Later the runtimes may have none.
---@param session ffi.cdata*
function cgroups.poll(session)
  local id = C.session_group_id(session, named)
  while id ~= 0 do
    cgroups.container(id)
    named = named + 1
    id = C.session_group_id(session, named)
  end
end

--- Returns the path of a group from the root; its id if it is unknown.
---@param id number
---@return string
function cgroups.name(id)
  local now = sys.now() / 1e9
  if not known[id] and path_of then known[id] = path_of(id) end
  if not (known[id] or is_recorded) and now - searched > AGAIN then
    searched = now
    local top = root()
    if top then search(top, '/') end
  end
  return known[id] or ('%.0f'):format(id)
end

--- Returns the container, pod or systemd unit of a group; the group's path if it is none of these, the id if the group
--- is unknown.
---@param id number|ffi.cdata*
---@return string
function cgroups.container(id)
  id = tonumber(id)
  local name = container_of[id]
  if name then return (name) end
  name = cgroups.name(id)
  if known[id] then
    name, kinds[id] = containers.of(name)
    container_of[id] = name
  end
  return (name)
end

--- Returns the directories of the groups that --cgroups names, below the root of version 2, or refuses: programs know
--- only that one, and only if all of it is seen.
---@param names string[]
---@return string[] paths
---@return string top
local function directories(names)
  local top, err, list = root(), ffi.new 'struct error', {}
  local st = top and sys.stat(top .. '/cgroup.controllers') and sys.stat(top)
  if not st or st.inode ~= ROOT_INODE then asm.refuse('programs know only the control groups of version 2') end
  local wanted = ffi.new('const char *[?]', #names + 1)
  for i, name in ipairs(names) do wanted[i - 1] = name end
  local found = C.cgroups_find(top, wanted, err)
  if found == nil then asm.refuse('%s', ffi.string(err.text)) end
  for path in ffi.string(ffi.gc(found, libc.free)):gmatch '[^\n]+' do list[#list + 1] = path end
  return list, top
end

--- Returns the groups that --cgroups names, with their levels in the hierarchy, or refuses.
---@param names string[]
---@return { id: number, level: integer }[]
function cgroups.find(names)
  local list, top = directories(names)
  for i, path in ipairs(list) do
    local one = sys.stat(path) or asm.refuse('the control group %s is gone', path)
    local _, level = path:sub(#top + 1):gsub('/+[^/]', '')
    list[i] = { id = one.inode, level = level }
  end
  return list
end

--- Calls each(id, directory) for a group and those in it.
local function descend(directory, each)
  local st = sys.stat(directory)
  if not st or not st.isdir then return end
  each(st.inode, directory)
  for _, entry in ipairs(sys.readdir(directory) or {}) do descend(directory .. '/' .. entry, each) end
end

local CONTAINERS = { container = true, unnamed = true, pod = true } -- kinds of groups

--- Returns whether a name, with wildcards, is that of a container. '*' is that of all, but of no other group.
local function matches(names, container, kind)
  for _, name in ipairs(names) do
    if name == '*' and CONTAINERS[kind] or name ~= '*' and container:match(glob.pattern(name)) then return true end
  end
  return false
end

local function is_wanted(names, id)
  local container = cgroups.container(id)
  return matches(names, container, kinds[id])
end

--- Returns whether a recorded group is one of those that --container or --cgroups names, or in one of them.
---@param opt table
---@param id number
---@return boolean
function cgroups.is_recorded_in(opt, id)
  local path, err = cgroups.name(id), ffi.new 'struct error'
  if not opt.container then
    local names = ffi.new('const char *[?]', #opt.cgroups + 1, opt.cgroups)
    names[#opt.cgroups] = nil
    local asked = C.cgroups_asked(names, path, err)
    return asked >= 0 and asked > 0 or asked < 0 and failure.usage('%s', ffi.string(err.text))
  end
  while true do
    if matches(opt.container, containers.of(path)) then return true end
    path = path:match '^(.+)/' or path ~= '/' and path:find '^/' and '/'
    if not path then return false end
  end
end

--- Calls each(id, directory) for the groups of containers with these names, and those in them.
---@param names string[]
---@param each fun(id: number, directory: string)
---@return boolean any
---@return string[] others the names of containers, if there are none with these names
function cgroups.of_containers(names, each)
  local any, others, seen, top = false, {}, {}, root()
  for id, kind in pairs(kinds) do -- a runtime may have the name by now
    if kind == 'unnamed' then container_of[id] = nil end
  end
  if top then search(top, '/') end
  local function look(directory)
    local st = sys.stat(directory)
    if not st or not st.isdir then return end
    if is_wanted(names, st.inode) then
      any = true
      return descend(directory, each)
    end
    local name = cgroups.container(st.inode)
    local is_container = kinds[st.inode] == 'container' or kinds[st.inode] == 'unnamed'
    if is_container and not seen[name] then others[#others + 1], seen[name] = name, true end
    for _, entry in ipairs(sys.readdir(directory) or {}) do look(directory .. '/' .. entry) end
  end
  if top then look(top) end
  table.sort(others)
  return any, others
end

--- Returns the paths of the groups of the containers that --container names now; none for a recording.
---@param names string[]
---@param of_recording boolean
---@return string[] paths
function cgroups.of_option(names, of_recording)
  local paths = {}
  for _, name in ipairs(names) do
    if name == '' then failure.usage "--container takes names of containers, or '*' for all, but one is empty" end
  end
  if not of_recording then
    cgroups.of_containers(names, function(id) paths[#paths + 1] = cgroups.name(id) end)
  end
  return paths
end

--- Calls each(id, directory) for the groups that --cgroups names, and those in them, or refuses.
---@param names string[]
---@param each fun(id: number, directory: string)
function cgroups.all(names, each)
  for _, directory in ipairs((directories(names))) do descend(directory, each) end
end

--- Returns the threads that are in a group now.
---@param directory string
---@return integer[]
function cgroups.threads(directory)
  local tids = {}
  for tid in (sys.read(directory .. '/cgroup.threads') or ''):gmatch '%d+' do tids[#tids + 1] = tonumber(tid) end
  return tids
end

return cgroups
