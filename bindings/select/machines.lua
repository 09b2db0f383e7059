-- SPDX-License-Identifier: GPL-2.0-only
--- Machines: the hosts and guests whose events a run pulls, each with the events that it sends.
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'
local nearest = require 'bindings.base.nearest'
local bit = require 'bit'
local catalog = require 'bindings.select.catalog'
local sys = require 'bindings.base.sys'
local text = require 'bindings.base.text'

local C = ffi.C
local machines = {}

local STEP = 200e6 -- ns between two looks at a connection that is not there yet
local TRIAL = 2e9 -- ns to wait for a sender that is only asked what it sends

--- A machine that sends events.
---@class Machine
---@field index integer the member of the session, from 1; part of the events' flags
---@field address string
---@field vm? string the guest on this host that it is
---@field host string
---@field catalog Catalog what it sends
---@field context Services

---@class Machines
---@field list Machine[]
local Machines = {}
Machines.__index = Machines

---@param session ffi.cdata* struct session *
---@param context Services
---@param opt table parsed options
---@return Machines
function machines.new(session, context, opt)
  return setmetatable({ list = {}, _session = session, _context = context, _opt = opt }, Machines)
end

--- Returns whether a text is the address of a channel (runtime/wire/channel.h), not the name of a file.
---@param address string
---@return boolean
function machines.is_address(address)
  local st = sys.stat(address)
  -- Of the devices, those of virtio-serial.
  if st then return bit.band(st.mode, libc.S_IFMT) == libc.S_IFCHR and address:find '^/dev/v' ~= nil end
  if address:find '^unix:' or address:find '^vsock:' then return true end
  return not address:find '/' and address:find '^%d+$' ~= nil or address:find '^[^/]*:%d+$' ~= nil
end

--- Fails because a sender did not come in time.
local function give_up(why, is_trial)
  failure.raise('never connected: %s%s', why, is_trial and '; what the sender sends is not known without it' or '')
end

--- Connects to an address and waits until the sender is there, at most until the duration of the run is over. Says
--- once what it waits for. Adds the time to opt.waited, ns.
---@param address string
---@param opt table parsed options
---@param vm? string the guest on this host that the sender is
---@return ffi.cdata* source struct source *
function machines.connect(address, opt, vm)
  local err = ffi.new 'struct error'
  local is_trial = opt.dry_run or opt.explain
  local limit = is_trial and TRIAL or opt.duration or math.huge
  local since, waited_before = sys.now(), opt.waited or 0
  local source = C.remote_new(address, opt.secret, err)
  if source == nil then failure.usage('%s', ffi.string(err.text)) end
  if vm and C.remote_set_vm(source, vm, err) < 0 then
    C.remote_free(source)
    failure.usage('vm=%s: %s', vm, ffi.string(err.text))
  end
  if opt.remote_slack then C.remote_set_slack(source, opt.remote_slack) end
  local said
  while true do
    local ret = C.remote_connect(source, math.min(STEP, math.max(limit - (opt.waited or 0), 0)), err)
    opt.waited = waited_before + sys.now() - since
    if ret > 0 then return source end
    local why = ffi.string(err.text)
    if ret < 0 then
      C.remote_free(source)
      failure.raise('%s', why)
    end
    if opt.waited >= limit then
      C.remote_free(source)
      give_up(why ~= '' and text.safe(why) or address .. ': no answer', is_trial)
    end
    if why ~= '' and why ~= said and not is_trial then
      io.stderr:write('profscript: waiting for ', text.safe(why), '\n')
      said = why
    end
  end
end

--- Returns the machine at an address, connected.
---@param address string
---@param vm? string the guest on this host that it is
---@return Machine
function Machines:at(address, vm)
  for _, one in ipairs(self.list) do
    if one.address == address and one.vm == vm then return one end
  end
  local source, err = machines.connect(address, self._opt, vm), ffi.new 'struct error'
  C.remote_align(source)
  local index = C.session_add_machine(self._session, source, err)
  if index < 0 then failure.of(err) end
  local one = {
    index = index,
    address = address,
    vm = vm,
    host = text.safe(ffi.string(C.session_host(self._session, index))),
    catalog = catalog.of_session(self._session, index),
    context = self._context.of_machine(index, vm ~= nil),
  }
  self.list[#self.list + 1] = one
  return one
end

--- Fails because a machine does not send an event. Names those that it sends, the nearest one first.
---@param address string
---@param sent Catalog what it sends
---@param name string as selected
---@return any never
function machines.lacks(address, sent, name)
  local names = sent:sent()
  local first = nearest.find(name, names)
  local list = { first }
  for _, one in ipairs(names) do
    if one ~= first then list[#list + 1] = one end
  end
  failure.raise('%s does not send %s; it sends %s', address, name,
    #list > 0 and table.concat(list, ', ') or 'no events')
end

return machines
