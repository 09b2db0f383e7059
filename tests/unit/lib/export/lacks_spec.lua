-- SPDX-License-Identifier: GPL-2.0-only
-- What a timeline says about events of the scheduler that a recording lacks.
local lacks = require 'lib.export.lacks'

local SWITCH, WAKEUP, NEW = 'sched:sched_switch', 'sched:sched_wakeup', 'sched:sched_wakeup_new'
local MIGRATE = 'sched:sched_migrate_task'

local function set(...)
  local of = {}
  for _, name in ipairs { ... } do of[name] = true end
  return of
end

--- Returns the names of the events that lines are about.
local function lines(exported, recorded)
  local names = {}
  for i, line in ipairs(lacks.events(exported, function(name) return recorded[name] or false end)) do
    names[i] = line:match '^the recording has no ([%w:_]+): .'
  end
  return names
end

describe('a recording', function()
  it('that has all of them lacks nothing', function()
    local all = set(SWITCH, WAKEUP, NEW, MIGRATE)
    assert.same({}, lines(all, all))
  end)

  it('lacks those that tell who waits', function()
    assert.same({ WAKEUP, NEW, MIGRATE }, lines(set(SWITCH), set(SWITCH)))
    assert.same({ NEW }, lines(set(SWITCH, WAKEUP, MIGRATE), set(SWITCH, WAKEUP, MIGRATE)))
  end)

  it('may have sched_waking in place of sched_wakeup, as those of perf sched record', function()
    local recorded = set(SWITCH, 'sched:sched_waking', NEW, MIGRATE)
    assert.same({}, lines(recorded, recorded))
  end)

  it('lacks switches, without which the others tell nothing', function()
    assert.same({ SWITCH }, lines(set(WAKEUP), set(WAKEUP)))
  end)

  it('does not lack what was not selected', function()
    assert.same({}, lines(set(WAKEUP), set(SWITCH, WAKEUP)))
    assert.same({ MIGRATE }, lines(set(SWITCH), set(SWITCH, WAKEUP, NEW)))
    assert.same({}, lines(set 'raw_syscalls:sys_enter', set 'raw_syscalls:sys_enter'))
  end)
end)

describe('switches', function()
  it('are missing between those that do not follow each other', function()
    assert.is_nil(lacks.switches(10, 0, true))
    assert.equal('3 of 10 sched:sched_switch are from another task than the CPU had entered: switches are missing '
      .. 'between them, so it is not shown who ran', lacks.switches(10, 3))
    assert.truthy(lacks.switches(10, 3, true):find ', and not who waited$')
  end)
end)
