-- SPDX-License-Identifier: GPL-2.0-only
--- Names of control groups by their ids, which are the inode numbers of their directories.
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'
local sys = require 'bindings.base.sys'
local text = require 'bindings.base.text'

local C = ffi.C
local cgroups = {}

local AGAIN = 1 -- second between two searches for an unknown group: one that is gone is never found
local known, searched = {}, -math.huge

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

--- Returns the path of a group from the root; its id if it is unknown.
---@param id number
---@return string
function cgroups.name(id)
  local now = sys.now() / 1e9
  if not known[id] and now - searched > AGAIN then
    searched = now
    local top = root()
    if top then search(top, '/') end
  end
  return known[id] or ('%.0f'):format(id)
end

return cgroups
