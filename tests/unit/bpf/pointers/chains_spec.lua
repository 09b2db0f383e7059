-- SPDX-License-Identifier: GPL-2.0-only
local chains = require 'bpf.pointers.chains'

--- Returns the chains of at least some words that a function or a text has, as text.
local function found(list, least)
  local names = {}
  for _, chain in ipairs(list) do
    local name = table.concat(chain.words, '.') .. (chain.is_loose and '?' or '')
    if #chain.words >= (least or 2) then names[#names + 1] = name end
  end
  return names
end

local function of_code(text)
  local list = {}
  chains.of_function(list, assert(loadstring('return ' .. text, '@some.lua'))())
  for _, chain in ipairs(list) do chain.is_loose = nil end
  return found(list)
end

local function of_text(text, least)
  local list = {}
  chains.of_text(list, text)
  return found(list, least)
end

describe('chains of members', function()
  it('are found in code', function()
    assert.same({ 'prev.mm.total_vm' }, of_code 'function(ev) return ev.prev.mm.total_vm end')
    assert.same({ 'prev.pid', 'prev.comm' }, of_code 'function(ev) local p = ev.prev return p.pid, p.comm end')
    assert.same({ 'next.bits' }, of_code 'function(ev) return ev.next.bits[0] end')
    assert.same({ 'prev.comm' }, of_code 'function(ev) return ev.prev.comm:sub(1) end')
    assert.same({}, of_code 'function(ev) return ev.pid, ev:string "name" end')
    assert.same({}, of_code 'function(ev, other) ev = other return ev.prev.pid end')
    assert.same({}, of_code 'function() return upvalue.prev.pid end')
  end)

  it('are found in C expressions and one-liners', function()
    assert.same({ 'prev.mm.total_vm' }, of_text 'count(ev.prev.mm.total_vm)')
    assert.same({ 'prev.pid', 'next.pid?' }, of_text 'prev->pid == 1 && next.pid')
    assert.same({ 'prev.pid' }, of_text 'args->prev->pid')
    assert.same({ 'next.pid' }, of_text 'tp_btf:sched_switch/next.pid > 1/')
    assert.same({ 'data.json?' }, of_text '/tmp/data.json')
    assert.same({}, of_text 'ev.pid + 1.5')
    assert.same({ 'count?', 'size', 'n?' }, of_text('count(ev.size, n)', 1))
  end)

  it('are known with their places', function()
    local list = {}
    chains.of_text(list, 'x + prev->pid')
    assert.same({ 5, 11 }, list[2].columns)
    chains.of_function(list, assert(loadstring('return function(ev)\n\n return ev.a.b end', '@some.lua'))())
    assert.same({ 'a', 'b' }, list[3].words)
    assert.is_true(list[3].is_loose) -- it is no script
  end)
end)
