-- SPDX-License-Identifier: GPL-2.0-only
local fold = require 'bindings.expr.ranges'

describe('fold.ranges', function()
  it('makes ranges of consecutive numbers', function()
    assert.equal('(pid>=7&&pid<=9)', fold.ranges 'pid == 7 || pid == 8 || pid == 9')
    assert.equal('pid==1||(pid>=5&&pid<=8)||pid==20', fold.ranges 'pid==8||pid==5||pid==20||pid==6||pid==7||pid==1')
    assert.equal('(pid>=3&&pid<=5)', fold.ranges '(pid==3) || (pid==3) || (pid==5) || pid==4')
  end)

  it('leaves other filters alone', function()
    for _, text in ipairs { 'pid==7', 'pid==7||pid==9', 'pid>7||pid==8', 'pid==7||tid==8||pid==9', 'pid==7&&prio==1',
      'comm=="a"||comm=="b"', '' } do
      assert.is_nil(fold.ranges(text))
    end
  end)

  it('does not change the meaning', function()
    local seed = 42
    local function random(n)
      seed = (seed * 1103515245 + 12345) % 2 ^ 31
      return math.floor(seed / 65536) % n
    end
    for _ = 1, 200 do
      local wanted, terms = {}, {}
      for i = 1, 5 + random(40) do
        local n = random(60)
        wanted[n] = true
        terms[i] = 'pid==' .. n
      end
      local folded = fold.ranges(table.concat(terms, ' || ')) or table.concat(terms, ' || ')
      local lua = folded:gsub('&&', ' and '):gsub('||', ' or ')
      local keeps = assert(loadstring('local pid = ... return ' .. lua))
      for n = 0, 60 do
        assert.equal(wanted[n] or false, keeps(n), folded .. ' for ' .. n)
      end
    end
  end)

  it('shortens a thousand consecutive threads below the kernel\'s limit', function()
    local terms = {}
    for i = 1, 1000 do terms[i] = 'common_pid==' .. 5000 + i end
    assert.equal('(common_pid>=5001&&common_pid<=6000)', fold.ranges(table.concat(terms, '||')))
  end)
end)
