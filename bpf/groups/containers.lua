-- SPDX-License-Identifier: GPL-2.0-only
--- Containers: what a control group is, from its path and the files in which the runtimes keep their state. No daemon
--- is asked.
---
--- The outermost directory that a runtime makes for a container counts, so what runs inside it, such as systemd, is
--- still that container. A group that belongs to none is the innermost systemd unit.
local bit = require 'bit'
local libc = require 'bindings.base.libc'
local sys = require 'bindings.base.sys'
local text = require 'bindings.base.text'

local containers = {}

local ID = ('%x'):rep(64)
local SHORT = 12 -- digits of an id, as the runtimes print it
local MAX_BYTES = 16 * 1024 * 1024 -- of a file: about 600 for each container
local MAX_NAME = 512

--- Returns the contents of a file, which may be in the home of a user, who can put anything in its place. A pipe, a
--- device or a link is not opened: that could block, never end, or do something.
local function read(path)
  local fd = sys.open(path, libc.O_PATH + libc.O_CLOEXEC)
  if not fd then return end
  local opened = '/proc/self/fd/' .. fd
  local st = sys.stat(opened)
  local is_file = st and bit.band(st.mode, libc.S_IFMT) == libc.S_IFREG and st.size <= MAX_BYTES
  local file = is_file and io.open(opened, 'rb')
  libc.close(fd)
  if not file then return end
  local contents = file:read(MAX_BYTES)
  file:close()
  return contents
end

--- Returns the value of a JSON string, which begins after its quote at `at`.
local function string_at(json, at)
  local value = json:match('^[^"\\]*', at)
  return #value <= MAX_NAME and json:sub(at + #value, at + #value) == '"' and value or nil
end

--- Returns the first string with a name in a text of JSON.
local function value_of(json, name)
  local _, stop = json:find(('"%s"%%s*:%%s*"'):format(name:gsub('%p', '%%%0')))
  return stop and string_at(json, stop + 1)
end

--- Returns the name of a container of Kubernetes as its parts: pod/container, or the pod for what holds its namespaces.
local function kubernetes(pod, container)
  return pod and (container and container ~= 'POD' and ('%s/%s'):format(pod, container) or pod)
end

--- Returns the names of Kubernetes that the annotations in a config.json contain.
local function annotated(json)
  local function named(pod, container)
    return kubernetes(value_of(json, 'io.kubernetes.' .. pod), value_of(json, 'io.kubernetes.' .. container))
  end
  return named('cri.sandbox-name', 'cri.container-name') or named('pod.name', 'container.name')
    or value_of(json, 'nerdctl/name')
end

--- The kubelet's names of Docker's containers, and those of CRI-O: k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT.
local function plain(name)
  local container, pod = name:match '^k8s_([^_]+)_([^_]+)_'
  return container and kubernetes(pod, container) or name
end

-- Where the runtimes keep names, by id -------------------------------------------------------------

local function entries(root, path) return sys.readdir(root .. path) or {} end

--- Podman and CRI-O have lists below the folders of a storage driver, such as overlay-containers.
local function of_storage(root, id, storage)
  for _, folder in ipairs(entries(root, storage)) do
    for _, file in ipairs(folder:find '%-containers$' and { 'containers.json', 'volatile-containers.json' } or {}) do
      local json = read(('%s%s/%s/%s'):format(root, storage, folder, file)) or ''
      local _, at = json:find(('"id":"%s"'):format(id), 1, true)
      local one = at and json:sub(at + 1, json:find('"id":"', at + 1, true))
      local _, stop = (one or ''):find '"names":%[%s*"'
      local name = stop and string_at(one, stop + 1)
      if name then return plain(name) end
    end
  end
end

--- The home of the user whose slice a group is in, for containers of users.
local function home_of(root, path)
  local uid = path:match '/user%-(%d+)%.slice/'
  local line = uid and ('\n%%f[%%S][^:\n]*:[^:\n]*:%s:[^:\n]*:[^:\n]*:([^:\n]*)'):format(uid)
  return line and ('\n' .. (sys.read(root .. '/etc/passwd') or '')):match(line)
end

local RUNTIMES = {
  function(root, id, path)
    local home = home_of(root, path)
    return of_storage(root, id, '/var/lib/containers/storage') or of_storage(root, id, '/run/containers/storage')
      or home and of_storage(root, id, home .. '/.local/share/containers/storage')
  end,
  function(root, id) -- Docker, whose names begin with a slash
    local json = read(('%s/var/lib/docker/containers/%s/config.v2.json'):format(root, id))
    local name = json and json:match '"Name"%s*:%s*"/([^"\\]+)"%s*,%s*"Driver"' -- a label may be called Name, too
    return name and plain(name)
  end,
  function(root, id) -- containerd
    local tasks = '/run/containerd/io.containerd.runtime.v2.task'
    for _, namespace in ipairs(entries(root, tasks)) do
      local json = read(('%s%s/%s/%s/config.json'):format(root, tasks, namespace, id))
      local name = json and annotated(json)
      if name then return name end
    end
  end,
  function(root, id) -- the kubelet's links: POD_NAMESPACE_CONTAINER-ID.log
    for _, link in ipairs(entries(root, '/var/log/containers')) do
      local pod, container, of = link:match '^([^_]+)_[^_]+_(.+)%-(%x+)%.log$'
      if of == id then return kubernetes(pod, container) end
    end
  end,
}

--- Returns the pod of a group of Kubernetes that no container of it has: /var/log/pods/NAMESPACE_POD_UID.
local function pod_of(root, path)
  local uid = path:match '/[%w%-]*pod([%x%-_]+)%f[/.%z]'
  uid = uid and path:find('kubepods', 1, true) and uid:gsub('_', '-')
  for _, folder in ipairs(uid and entries(root, '/var/log/pods') or {}) do
    local pod, of = folder:match '^[^_]+_([^_]+)_(.+)$'
    if of == uid then return pod end
  end
  return uid and 'pod ' .. uid:sub(1, SHORT)
end

--- Returns the name of a group that is a container without an id, of systemd-nspawn and LXC.
local function machine_of(path)
  return path:match '/machine%-([^/]+)%.scope%f[/%z]' or path:match '/systemd%-nspawn@([^/]+)%.service%f[/%z]'
    or path:match '/lxc%.payload%.([^/]+)' or path:match '/lxc/([^/]+)'
end

--- Returns systemd's name of a unit, which has `\x2d` for a dash.
local function unit_of(path)
  local unit
  for part in path:gmatch '[^/]+' do
    if part:find '%.service$' or part:find '%.scope$' then unit = part end
  end
  return unit
end

--- Returns the container, the pod or the systemd unit that a control group belongs to.
---@param path string of the group, from the root of the hierarchy
---@param root? string where the files of the runtimes are; default: the root of this machine
---@return string name a short id for a container whose runtime is not known; the path of any other group
---@return string kind 'container', 'unnamed', 'pod', 'unit' or 'group'
function containers.of(path, root)
  root = root or ''
  for part in path:gmatch '[^/]+' do
    local id = not part:find('conmon', 1, true) and part:match('%f[%x]' .. ID .. '%f[%X]')
    for _, find in ipairs(id and RUNTIMES or {}) do
      local name = find(root, id, path)
      if name then return text.safe(name), 'container' end
    end
    if id then return id:sub(1, SHORT), 'unnamed' end
  end
  local machine = machine_of(path)
  if machine then return text.safe(machine), 'container' end
  local pod = pod_of(root, path)
  if pod then return text.safe(pod), 'pod' end
  local unit = unit_of(path)
  return unit or path, unit and 'unit' or 'group'
end

return containers
