-- SPDX-License-Identifier: GPL-2.0-only
--- Push: sends events to other hosts or to a file (push=, --push). They do not reach the profiler, except those of
--- --record, which writes them to a file on their way. The C side does the work (runtime/push/); this module decides
--- what is sent where, and tells the user about it.
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local libc = require 'bindings.base.libc'

local C = ffi.C
local push = {}

-- 2 MiB per ring, unless the user's locked memory is limited. A receiver on this machine competes with the sender for
-- the CPUs: at two million events per second, the default rings fill within one turn of the scheduler.
local RING_PAGES = 512

---@class Push : Follower
---@field run Run
---@field record? string file of --record
---@field addresses string[] in the order of their bits
---@field _tells_clock boolean it remains to say that the host of this guest cannot know its clock exactly
---@field _handle ffi.cdata* struct push *
local Push = {}
Push.__index = Push

--- Returns how many pages each ring of a run that sends should have at least.
local function ring_pages() return libc.geteuid() == 0 and RING_PAGES or 0 end

local function check(code, err)
  if code < 0 then failure.of(err) end
  return code
end

--- Returns the addresses that an event is sent to.
local function addresses_of(event, opt)
  local list, seen = {}, {}
  local function add(text)
    for address in (text .. ','):gmatch '%s*(.-)%s*,' do
      if not seen[address] then list[#list + 1], seen[address] = address, true end
    end
  end
  for _, attr in ipairs(event.given) do
    if attr.name == 'push' then add(attr.value) end
  end
  if #list == 0 and event.attrs.push then add(event.attrs.push) end
  for _, address in ipairs(opt.push or {}) do add(address) end
  if opt.record and #list > 0 then failure.usage '--record and push exclude each other' end
  if opt.record then add(opt.record:find '^/' and opt.record or './' .. opt.record) end
  return list
end

--- Fails if an event has no samples that can be sent or recorded.
local function check_samples(event, what)
  local request, name = event.request, event.name
  if event.machine then
    local address = event.machine.address
    failure.usage("%s: '%s' comes from %s; to %s what another machine sends, use --input %s instead of pull=", what,
      name, address, what == 'push' and 'send on' or 'record', address)
  end
  if request.counted == 1 then
    failure.usage("%s: '%s' is only counted, so there are no events to %s", what, name,
      what == 'push' and 'send' or 'record')
  end
  if request.record ~= 0 and what == 'push' then
    failure.usage("push: '%s' is a record that goes along with all events; push another event", name)
  end
  if request.is_output == 1 then
    failure.usage("%s: '%s' comes from a BPF program's ring buffer and cannot be %s", what, name,
      what == 'push' and 'sent' or 'recorded')
  end
end

--- Fails if the samples of an event cannot be sent: C sends them as they come from the kernel.
---@param event Event
---@param taken table<integer, string> by class: what profscript itself would have to do with each sample
local function check_event(event, taken)
  local name = event.name
  check_samples(event, 'push')
  if event.filters.user then
    failure.usage("push: '%s' is sent as the kernel delivers it, but the kernel cannot evaluate its filter '%s'", name,
      event.filters.user)
  end
  if taken[event.class] then failure.usage("push: '%s' is sent as the kernel delivers it, %s", name,
    taken[event.class]) end
end

local function same_event(a, b)
  return a.request.attr.type == b.request.attr.type and a.request.attr.config == b.request.attr.config
end

--- In a recording, an event exists once, however often it is selected.
local function check_recorded(list)
  for i, event in ipairs(list) do
    for j = 1, i - 1 do
      if same_event(event, list[j]) and event.request.push ~= list[j].request.push then
        failure.usage("push: '%s' of a recording is either sent or analyzed, not both", event.name)
      end
    end
  end
end

---@param run Run
---@return Push
function push.new(run)
  return setmetatable({ run = run, addresses = {}, record = run.opt.record,
    only_session = run.opt.record and '--record' }, Push)
end

--- Prepares to send the events that have push=, or all of them (--push).
---@param taken table<integer, string> see check_event()
function Push:prepare(taken)
  local run, err = self.run, ffi.new 'struct error'
  local opt, sends_all = run.opt, not run.opt.record
  for _, event in ipairs(run.events.list) do
    local addresses = addresses_of(event, opt)
    sends_all = sends_all and #addresses > 0
    if opt.record then
      check_samples(event, 'record')
    elseif #addresses > 0 then
      check_event(event, taken)
    end
    for _, address in ipairs(addresses) do
      self._handle = self._handle or C.session_push(run.session, err)
      if self._handle == nil then failure.of(err) end
      local place = C.push_add(self._handle, address, err)
      if place < 0 then failure.usage('push: %s', ffi.string(err.text)) end
      self.addresses[place + 1] = address
      event.request.push = event.request.push + 2ULL ^ place
    end
  end
  if #self.addresses == 0 then
    if opt.record then failure.usage('--record: %s has no events to record', run.name) end
    if opt.push and #opt.push > 0 then failure.usage('--push: %s has no events to send', run.name) end
    if opt.secret and not run:pulls() then
      failure.usage '--secret has no effect without push=, --push, pull= or --input HOST:PORT'
    end
    return
  end
  if opt.record then C.push_keep(self._handle) end
  if run.is_recorded then check_recorded(run.events.list) end
  if sends_all then run:send_all() end
  if run.default_pages then opt.mmap_pages = math.max(opt.mmap_pages, ring_pages()) end
  self:_check_stdout()
  self._tells_clock = opt.verbose >= 1
  check(C.push_set_secret(self._handle, opt.secret, err), err)
  local converted = run.axis.converted
  if converted then C.push_set_clock(self._handle, ffi.gc(converted, nil), opt.clock_offset or 0) end
  if sends_all and opt.exit_n then C.push_limit(self._handle, opt.exit_n) end
end

--- Fails if the events and the profiler's output would both go to standard output.
function Push:_check_stdout()
  for _, address in ipairs(self.addresses) do
    if address == '-' and not self.run.sends_all and not self.run.opt.output then
      failure.usage 'push=-: the events go to standard output, so the output of the profiler needs a file: -o FILE'
    end
  end
end

--- Prints what has happened: who connected, who left.
function Push:poll()
  if not self._handle then return end
  if self._tells_clock then
    self._tells_clock = false
    local why = ffi.string(C.push_no_ptp(self._handle))
    if why ~= '' then self.run.out:warn('push: ' .. why) end
  end
  local text = C.push_take_messages(self._handle)
  if text[0] == 0 then return end
  for line in ffi.string(text):gmatch '[^\n]+' do self.run.out:warn(line) end
end

local function number(n) return ('%d'):format(tonumber(n)) end

--- Prints what was sent so far, for each address and each receiver that is there.
function Push:report()
  local totals, receiver = ffi.new 'struct push_totals', ffi.new 'struct push_receiver'
  for i, address in ipairs(self.addresses) do
    C.push_read_totals(self._handle, i - 1, totals)
    local line = ('push %s: %s events, %s sent, %s dropped'):format(address, number(totals.events),
      number(totals.sent), number(totals.dropped))
    if self.record then
      line = ('record %s: %s events, %s dropped'):format(self.record, number(totals.events), number(totals.dropped))
    end
    if totals.sent + totals.dropped == 0 and totals.receivers == 0 then
      line = ('push %s: %s events, but no receiver'):format(address, number(totals.events))
    end
    self.run.out:warn(line)
    local n = 0
    while totals.receivers > 1 and C.push_read_receiver(self._handle, i - 1, n, receiver) ~= 0 do
      self.run.out:warn(('push %s: client %s: %s sent, %s dropped'):format(address, ffi.string(receiver.name),
        number(receiver.sent), number(receiver.dropped)))
      n = n + 1
    end
  end
end

--- Prints the same with -v in each interval.
function Push:reported()
  if self.run.opt.verbose >= 1 then self:report() end
end

--- Sends the rest at the end of the run, and reports.
function Push:close(ok)
  if not ok or not self._handle then return end
  local err = ffi.new 'struct error'
  self.run.progress:finish()
  self.run.out:flush()
  local code = C.push_finish(self._handle, err)
  self:poll()
  self:report()
  check(code, err)
end

return push
