-- SPDX-License-Identifier: GPL-2.0-only
local unreported = require 'lib.unreported'

--- The number of missing switches of a stream { { cpu, prev, next }, ... }, of which the task 0 is idle; 'lost' is a
--- gap.
local function missing(stream)
  local found, leaves, enters, lost = unreported.watch()
  for time, one in ipairs(stream) do
    if one == 'lost' then
      lost { to = time }
    else
      leaves(one[2], time, one[1])
      enters(one[3], time, one[1])
    end
  end
  return found.switches
end

describe('unreported switches', function()
  it('are none in a complete stream', function()
    assert.equal(0, missing { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 3 }, { 0, 1, 0 }, { 1, 3, 1 }, { 0, 0, 3 },
      { 1, 1, 0 } })
  end)

  it('between two tasks count once', function()
    assert.equal(1, missing { { 0, 3, 1 }, { 0, 1, 2 }, { 0, 2, 1 }, --[[1 to 2]] { 0, 2, 3 } })
    -- Ten rounds, of which the switch from 1 to 2 is not reported.
    local stream = { { 0, 3, 1 }, { 0, 1, 2 } }
    for _ = 1, 10 do stream[#stream + 1] = { 0, 2, 1 } end
    assert.equal(9, missing(stream))
  end)

  it('from and to idle tasks count', function()
    assert.equal(2, missing { { 0, 3, 1 }, { 0, 1, 0 }, --[[0 to 1]] { 0, 1, 0 }, --[[0 to 1]] { 0, 1, 0 } })
    assert.equal(1, missing { { 0, 0, 1 }, --[[1 to 0]] { 0, 0, 1 } })
  end)

  it('count on both CPUs of a task that moved', function()
    assert.equal(1, missing { { 0, 2, 1 }, --[[1 to 0]] { 1, 0, 1 }, { 1, 1, 0 }, { 0, 0, 2 } })
    assert.equal(2, missing { { 0, 2, 1 }, --[[1 to 0; on CPU 1: 0 to 1]] { 1, 1, 0 } })
  end)

  it('are none if the sides of a switch are two events, in any order', function()
    for _, is_second_first in ipairs { false, true } do
      local found, leaves, enters = unreported.watch()
      local function switch(time, prev, next)
        if is_second_first then enters(next, time, 0, prev) end
        leaves(prev, time, 0)
        if not is_second_first then enters(next, time, 0, prev) end
      end
      switch(1, 3, 1)
      for time = 2, 20 do switch(time, time % 2 == 0 and 1 or 2, time % 2 == 0 and 2 or 1) end
      assert.equal(0, found.switches)
      --[[2 to 1]]
      switch(30, 1, 2)
      assert.equal(1, found.switches)
    end
  end)

  it('are none if a task gets a name that is not looked for', function()
    local found, leaves, enters, _, _, renamed = unreported.watch()
    enters(1, 1, 0)
    renamed { _tid = 1 }
    enters(2, 2, 0) -- 1 has left under its new name
    leaves(2, 3, 0)
    renamed { _tid = 2 }
    leaves(2, 4, 0) -- it has entered again under another name
    assert.equal(0, found.switches)
  end)

  it('do not include lost ones', function()
    assert.equal(0, missing { { 0, 3, 1 }, { 0, 1, 2 }, 'lost', { 0, 1, 2 }, { 0, 2, 1 } })
  end)

  it('are counted in words: one is not several', function()
    local warned
    local out = { warn = function(_, text) warned = text end }
    unreported.warn({ switches = 1, wakeups = 2, completions = 0 }, out, 'x', 'a', 'b')
    assert.equal('x: the kernel did not report 2 wakeups (b) and 1 switch (a)', warned)
  end)
end)
