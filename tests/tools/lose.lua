-- SPDX-License-Identifier: GPL-2.0-only
--- Makes a recording with lost events from another one: luajit lose.lua IN OUT PERCENT SEED. Removes about PERCENT of
--- all samples, in runs of up to 20 samples of one CPU. After each run it writes the PERF_RECORD_LOST that the
--- kernel would have written before the next record of that CPU. The last sample of a CPU stays: a loss after
--- which nothing follows is never reported.
--- For recordings whose samples are of the type IP|TID|TIME|CPU|PERIOD|RAW|IDENTIFIER.
local bit = require 'bit'
local ffi = require 'ffi'

ffi.cdef [[
struct file_header {
  char magic[8];
  uint64_t size, attr_size, attrs_at, attrs_size, data_at, data_size, types_at, types_size, flags[4];
};
struct record { uint32_t type; uint16_t misc, size; };
struct sample { struct record head; uint64_t id, ip; uint32_t pid, tid; uint64_t time; uint32_t cpu, reserved; };
struct sample_id { uint32_t pid, tid; uint64_t time; uint32_t cpu, reserved; uint64_t identifier; };
struct lost {
  struct record head;
  uint64_t id, lost;
  uint32_t pid, tid;
  uint64_t time;
  uint32_t cpu, reserved;
  uint64_t identifier;
};
]]
local SAMPLE, LOST, OF_PERF = 9, 2, 64

local file = assert(io.open(arg[1], 'rb'))
local text = file:read '*a'
file:close()
local percent = tonumber(arg[3])
math.randomseed(tonumber(arg[4]))

local bytes = ffi.cast('const uint8_t *', text)
local header = ffi.new('struct file_header')
ffi.copy(header, bytes, ffi.sizeof(header))
local data_at, data_end = tonumber(header.data_at), tonumber(header.data_at + header.data_size)

local parts, cpus, dropped, kept = {}, {}, 0, 0

--- The record that reports the losses of a CPU, to precede its next record; '' without loss.
local function tell_loss(of)
  local cpu = cpus[of.cpu]
  if not cpu or cpu.lost == 0 then return '' end
  local lost = ffi.new('struct lost', {
    head = { type = LOST, size = ffi.sizeof 'struct lost' },
    id = of.identifier,
    lost = cpu.lost,
    pid = of.pid,
    tid = of.tid,
    time = of.time,
    cpu = of.cpu,
    identifier = of.identifier,
  })
  cpu.lost = 0
  return ffi.string(lost, ffi.sizeof(lost))
end

local last = {} -- the index of each CPU's last sample
local at = data_at
while at < data_end do
  local sample = ffi.cast('const struct sample *', bytes + at)
  if sample.head.type == SAMPLE then last[sample.cpu] = at end
  at = at + sample.head.size
end

at = data_at
while at < data_end do
  local head = ffi.cast('const struct record *', bytes + at)
  local keep = text:sub(at + 1, at + head.size)
  if head.type == SAMPLE then
    local sample = ffi.cast('const struct sample *', head)
    local cpu = cpus[sample.cpu] or { left = 0, lost = 0 }
    cpus[sample.cpu] = cpu
    -- A run has 10.5 samples on average. Runs are so frequent that their samples are that percentage of all.
    if cpu.left == 0 and cpu.lost == 0 and math.random() * 10.5 * (100 - percent) < percent then
      cpu.left = math.random(20)
    end
    if at == last[sample.cpu] then cpu.left = 0 end
    if cpu.left > 0 then
      cpu.left, cpu.lost, dropped, keep = cpu.left - 1, cpu.lost + 1, dropped + 1, ''
    else
      keep, kept = tell_loss {
        pid = sample.pid, tid = sample.tid, time = sample.time, cpu = sample.cpu, identifier = sample.id,
      } .. keep, kept + 1
    end
  elseif head.type < OF_PERF and head.size >= ffi.sizeof 'struct sample_id' + 8 then
    local id = ffi.cast('const struct sample_id *', bytes + at + head.size - ffi.sizeof 'struct sample_id')
    if id.time > 0 then keep = tell_loss(id) .. keep end
  end
  parts[#parts + 1] = keep
  at = at + head.size
end
local data = table.concat(parts)

-- The data is followed by the place of each feature.
local delta = #data - (data_end - data_at)
local features = 0
for i = 0, 3 do
  for b = 0, 63 do
    if bit.band(bit.rshift(header.flags[i], b), 1) ~= 0 then features = features + 1 end
  end
end
local index = ffi.new('int64_t[?]', 2 * features)
ffi.copy(index, bytes + data_end, ffi.sizeof(index))
for i = 0, features - 1 do index[2 * i] = index[2 * i] + delta end
header.data_size = #data
file = assert(io.open(arg[2], 'wb'))
file:write(ffi.string(header, ffi.sizeof(header)), text:sub(ffi.sizeof(header) + 1, data_at), data,
  ffi.string(index, ffi.sizeof(index)), text:sub(data_end + ffi.sizeof(index) + 1))
file:close()
print(('%d of %d'):format(dropped, dropped + kept))
