-- SPDX-License-Identifier: GPL-2.0-only
local unstarted = require 'bindings.report.unstarted'

it('ends of system calls have no start in new tasks, and in calls from before the run', function()
  assert.same({ '21 ends of calls without a start: 20 of clone in new tasks, 1 of calls that had begun before the run',
    false }, { unstarted.text(21, 20, 1) })
  assert.same({ '5 ends of calls without a start: 5 of clone in new tasks', false }, { unstarted.text(5, 7, 300) })
  assert.same({ '5 ends of calls without a start: 5 of calls that had begun before the run', false },
    { unstarted.text(5, 0) })
end)

it('more of them are wrong: starts were dropped, or are keyed by something else', function()
  assert.same({ '9 ends of calls without a start: 2 of clone in new tasks, 3 of calls that had begun before the run, '
    .. '4 for no known reason', true }, { unstarted.text(9, 2, 3) })
end)

it('the machine has threads', function() assert.is_true(unstarted.threads() > 0) end)
