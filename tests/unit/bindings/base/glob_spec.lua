-- SPDX-License-Identifier: GPL-2.0-only
local glob = require 'lib.glob'

local function matches(text, name) return glob.matcher(text)(name) end

it('a glob matches the whole name', function()
  assert.is_true(matches('sched:*wak?ng', 'sched:sched_waking'))
  assert.is_false(matches('sched:*wak', 'sched:sched_waking'))
  assert.is_false(matches('a.b*', 'axb'))
  assert.is_true(matches('sched_wak?[!_]*', 'sched_waking'))
  assert.is_false(matches('sched_wak?[!_]*', 'sched_wake_idle'))
  assert.is_true(matches('x[a-c^%]*', 'xb'))
  assert.is_true(matches('x[a-c^%]*', 'x^'))
  assert.is_false(matches('x[a-c^%]*', 'xd'))
end)

it('takes an unclosed bracket literally', function()
  assert.is_true(matches('a[b*', 'a[bc'))
  assert.is_false(matches('a[b*', 'abc'))
end)

it('other text is a part of the name', function()
  assert.is_true(matches('d_wak', 'sched:sched_waking'))
  assert.is_true(matches('', 'x'))
  assert.is_false(matches('.', 'x'))
end)
