-- SPDX-License-Identifier: GPL-2.0-only
-- What options need, and that the declarations say so.
local declarations = require 'bindings.options.declare'
local needs = require 'bpf.plan.needs'

local function spec(profiler) return assert(declarations.declare(profiler or {})) end

--- The needs of an option of a spec, sorted.
local function of(name, profiler)
  local option = spec(profiler).long[name:gsub('_', '-')]
  local list = { unpack(option.needs or {}) }
  table.sort(list)
  return table.concat(list, ' ')
end

describe('needs', function()
  it('refuse words that are not in the vocabulary', function()
    local _, message = declarations.declare { options = { x = { type = 'flag', help = 'h', needs = { 'each_evnt' } } } }
    assert.equal("option 'x': unknown need 'each_evnt'; did you mean 'each_event'?", message)
    _, message = declarations.declare { options = { x = { type = 'flag', help = 'h', needs = 'each_event' } } }
    assert.equal("option 'x': needs is a string, not a table", message)
  end)

  it('are those of the common option, unless a profiler declares others', function()
    assert.equal('perf_samples samples', of 'prio')
    assert.equal('perf_samples samples', of('prio', { options = { prio = { help = 'other text' } } }))
    assert.equal('', of('prio', { options = { prio = { needs = {} } } }))
  end)

  it('are known of an option that the run obeys, whoever declares it', function()
    assert.equal('newest whole_run', of('overwrite', { options = { overwrite = { type = 'flag', help = 'h' } } }))
  end)

  it('are the same for the options that a filter of samples evaluates', function()
    for _, name in ipairs { 'irqs_disabled', 'tif_need_resched', 'nr_running_min', 'nr_running_max', 'exclude_pid',
      'sched_policy', 'prio' } do
      assert.equal('perf_samples samples', of(name), name)
    end
  end)

  it('are the same for the options that count or send all events', function()
    for _, name in ipairs { 'exit_n', 'export', 'record', 'push', 'sampling_limit' } do
      assert.truthy(of(name):find('each_event', 1, true), name)
    end
    for _, name in ipairs { 'prometheus', 'otlp', 'serve' } do
      assert.truthy(of(name):find('event_counts', 1, true), name)
    end
  end)

  it('name the first option that is given', function()
    local list = spec().list
    assert.is_nil(needs.given(list, {}, 'each_event'))
    assert.is_nil(needs.given(list, { push = {}, watch = false }, 'each_event'))
    assert.equal('--exit-n', needs.given(list, { exit_n = 1, export = 'x' }, 'each_event'))
    assert.equal('--push', needs.given(list, { push = { '1' } }, 'perf_samples'))
    assert.has_error(function() needs.given(list, {}, 'no such word') end, 'no such word')
    assert.same({ each_event = '--export' }, needs.of(list, { export = 'x' }))
  end)

  it('decide what a profiler that only counts takes', function()
    local counts = spec { unsupported = { 'ring', 'samples' } }
    for _, name in ipairs { 'freq', 'call-graph', 'tsc', 'mmap-pages', 'watermark', 'capture', 'prio' } do
      assert.is_nil(counts.long[name], name)
    end
    local ignored = {}
    for _, option in ipairs(counts.ignored.list) do ignored[#ignored + 1] = option.name end
    table.sort(ignored)
    assert.same({ 'clock_offset', 'kvmclock', 'lost', 'mmap_pages', 'monotonic', 'order', 'order_mem', 'perfeval_cpus',
      'perfeval_pids', 'realtime', 'sampling_limit', 'tsc', 'watermark' }, ignored)
  end)
end)
