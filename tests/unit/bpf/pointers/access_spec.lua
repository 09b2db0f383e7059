-- SPDX-License-Identifier: GPL-2.0-only
local access = require 'bpf.pointers.access'
local ffi = require 'ffi'
local sys = require 'bindings.base.sys'
local types = require 'bpf.gen.kernel_types'

local C = ffi.C
local switch = access.prototype('tp_btf', 'sched_switch')

local function words_of(text)
  local words = {}
  for word in text:gmatch '[^.]+' do words[#words + 1] = word end
  return words
end

local function follow(text) return access.follow(switch, words_of(text)) end

local function field(text) return (access.field(words_of(text), (assert(follow(text))))) end

local function mistake(text)
  local found, wrong = follow(text)
  if found then wrong = select(2, access.field(words_of(text), found)) end
  return { wrong.word, wrong.message, wrong.hint }
end

describe('arguments with types', function()
  it('have the names of the tracepoint', function()
    assert.same({ 'preempt', 'prev', 'next', 'prev_state' }, switch.names)
    assert.equal(2, access.argument(switch, 'next'))
    assert.is_nil(access.argument(switch, 'nxt'))
  end)

  it('and results are those of functions', function()
    assert.same({ 'sk', 'msg', 'size' }, access.prototype('fentry', 'tcp_sendmsg').names)
    assert.same({ 'sk', 'msg', 'size', 'retval' }, access.prototype('fexit', 'tcp_sendmsg').names)
    assert.same({ 'sk', 'timeout' }, access.prototype('fexit', 'tcp_close').names)
  end)

  it('belong to the functions of a glob that can be traced', function()
    local read = sys.read
    function sys.read(path)
      if not path:find 'available_filter_functions$' then return read(path) end
      return 'tcp_sendmsg\ntcp_close\ntcp_close_state [a_module]\nkfree\n'
    end
    local ok, names = pcall(access.matching, 'fentry', 'tcp_*')
    sys.read = read
    assert(ok, names)
    assert.equal('tcp_close tcp_sendmsg', (table.concat(names, ' '):gsub(' tcp_close_state', '')))
  end)

  it('of an unknown event are refused with the nearest name', function()
    for name, message in pairs {
      ['tp_btf:sched_swich'] = "no tracepoint 'sched_swich'; did you mean 'sched_switch'%?",
      ['fentry:tcp_sendmg'] = "no function 'tcp_sendmg'; did you mean 'tcp_sendmsg'%?",
    } do
      local ok, err = pcall(access.prototype, name:match '^(.-):(.*)$')
      assert.is_false(ok)
      assert.truthy(err.message:match(message), err.message)
      assert.equal(2, err.code)
    end
  end)
end)

describe('members', function()
  it('are at their places', function()
    for _, path in ipairs { 'pid', 'comm', 'se.vruntime', 'signal' } do
      local found = assert(follow('prev.' .. path))
      assert.equal(types.member('task_struct', path), found.at / 8)
      assert.same({}, found.steps)
      assert.equal(1, found.argument)
    end
  end)

  it('are behind pointers', function()
    local found = assert(follow 'next.mm.total_vm')
    assert.same({ (types.member('task_struct', 'mm')) }, found.steps)
    assert.equal(types.member('mm_struct', 'total_vm'), found.at / 8)
    found = assert(follow 'next.nsproxy.uts_ns.name.nodename')
    assert.equal(2, #found.steps)
  end)

  it('are fields of all kinds', function()
    local function is(text, size, count, flags)
      local one = field(text)
      assert.same({ text, size, count, flags }, { one.name, one.size, one.count, one.flags })
    end
    is('prev.pid', 4, 1, C.FIELD_SIGNED)
    is('prev.flags', 4, 1, 0)
    is('prev.mm', 8, 1, C.FIELD_POINTER)
    is('prev.comm', 16, 16, C.FIELD_ARRAY + C.FIELD_STRING)
    is('prev.stack_canary', 8, 1, 0)
    is('prev.policy', 4, 1, 0)
    is('prev.cpus_mask.bits', field('prev.cpus_mask.bits').count * 8, field('prev.cpus_mask.bits').count,
      C.FIELD_ARRAY)
  end)

  it('that are bit fields have a width', function()
    assert.equal(1, assert(follow 'prev.sched_reset_on_fork').width)
    assert.equal(4, field('prev.sched_reset_on_fork').size)
  end)

  it('that do not exist are refused', function()
    assert.same({ 2, "struct task_struct has no member 'pdi'", "did you mean 'pid'?" }, mistake 'prev.pdi')
    assert.same({ 3, "'prev.pid' has no members" }, mistake 'prev.pid.x')
    assert.same({ 2, "'preempt' has no members" }, mistake 'preempt.x')
    local wrong = mistake 'prev.se'
    assert.equal("'prev.se' is not a number, a text or an array of numbers", wrong[2])
    assert.truthy(wrong[3]:match '^write one of its members: load, ')
  end)
end)
