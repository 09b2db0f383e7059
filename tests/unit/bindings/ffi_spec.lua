-- SPDX-License-Identifier: GPL-2.0-only
-- What Lua and C share: Lua calls only declared functions, and constants that both define are equal.
local ffi = require 'ffi'

-- Libraries that are loaded at run time have their own declarations.
local MODULES_OF_LIBRARIES = { 'bindings/base/number_names.lua', 'bindings/bpf/libbpf.lua',
  'scripts/lib/export/zlib.lua' }

local function read(path)
  local file = assert(io.open(path))
  local text = file:read '*a'
  file:close()
  return text
end

local function sources()
  local pipe = assert(io.popen "find bindings bpf scripts/lib -name '*.lua'")
  local paths = {}
  for path in pipe:lines() do paths[#paths + 1] = path end
  pipe:close()
  assert(#paths > 80, 'the sources were not found')
  return paths
end

describe('ffi', function()
  require 'bindings.base.libc'

  it('declares every C function that Lua uses', function()
    local unknown, n = {}, 0
    for _, path in ipairs(sources()) do
      local text = read(path):gsub('%-%-[^\n]*', '')
      for _, space in ipairs { 'C', 'libc' } do
        for name in text:gmatch('%f[%w_.]' .. space .. '%.([%a_][%w_]*)') do
          n = n + 1
          if not pcall(function() return ffi.C[name] end) then unknown[#unknown + 1] = path .. ': ' .. name end
        end
      end
    end
    assert.same({}, unknown)
    assert.is_true(n > 300)
  end)

  it('declares functions of the C library in one place', function()
    for _, path in ipairs(MODULES_OF_LIBRARIES) do assert(read(path):find '%)') end
    local others = {}
    for _, path in ipairs(sources()) do
      for text in read(path):gmatch "ffi%.cdef%s*(%b[])" do others[#others + 1] = text:find '%);' and path or nil end
      for text in read(path):gmatch "ffi%.cdef%s*'([^']*)'" do others[#others + 1] = text:find '%);' and path or nil end
    end
    table.sort(others)
    assert.same({ 'bindings/base/libc.lua', unpack(MODULES_OF_LIBRARIES) }, others)
  end)

  it('has the attributes of perf as the kernel has them', function()
    local attr = ffi.new('struct perf_event_attr', { exclude_guest = 1, precise_ip = 2, build_id = 1, config1 = 7 })
    local words = ffi.cast('uint64_t *', attr)
    -- word 5 has the flags: precise_ip is bits 15 and 16, exclude_guest bit 20, build_id bit 34
    assert.equal(2 ^ 16 + 2 ^ 20 + 2 ^ 34, tonumber(words[5]))
    assert.equal(7, tonumber(words[7]))
    assert.equal(48, ffi.offsetof('struct perf_event_attr', 'wakeup_events'))
  end)

  it('has the fields of records in their places', function()
    local records = require 'bindings.select.records'
    local STRUCTS = { fork = 'struct record_task', exit = 'struct record_task' }
    for _, name in ipairs(records.names) do
      local kind = name:match ':(.*)'
      local struct = ffi.new(STRUCTS[kind] or 'struct record_' .. kind)
      ffi.fill(struct, ffi.sizeof(struct), 0xff)
      local size = 0
      for _, field in ipairs(records.find(name).list) do
        assert.equal(ffi.offsetof(struct, field.name), field.offset, name .. ' ' .. field.name)
        assert.equal(2 ^ (8 * field.size) - 1, tonumber(struct[field.name]), name .. ' ' .. field.name)
        size = math.max(size, field.offset + field.size)
      end
      assert.is_true(ffi.sizeof(struct) - size < 8, name .. ' lacks fields')
    end
  end)
end)
