-- SPDX-License-Identifier: GPL-2.0-only
--- Mounts: the file systems without which nothing can be traced.
local failure = require 'bindings.base.failure'
local sys = require 'bindings.base.sys'

local mounts = {}

local NEEDED = {
  { name = 'proc', has = '/proc/self', mount = 'mount -t proc proc /proc' },
  { name = 'sysfs', has = '/sys/devices', mount = 'mount -t sysfs sysfs /sys' },
}

--- Fails if one of them is missing: its absence would be reported as that of an event or a feature.
function mounts.check()
  for _, one in ipairs(NEEDED) do
    if not sys.stat(one.has) then failure.unavailable('%s is not mounted; mount it with: %s', one.name, one.mount) end
  end
end

return mounts
