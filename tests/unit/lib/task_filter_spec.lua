-- SPDX-License-Identifier: GPL-2.0-only
local task_filter = require 'lib.task_filter'

describe('task_filter', function()
  it('selects tasks by name', function()
    local names = assert(task_filter.names 'java,python*')
    assert.equal('comm == "java" || comm ~ "python*"', names.text 'comm')
    assert.is_true(names.has 'java')
    assert.is_true(names.has 'python3')
    assert.is_false(names.has 'javac')
  end)

  it('refuses names that a filter cannot contain', function()
    local problem = 'task names with quotes or backslashes are not supported'
    assert.same({ nil, "'a\"b': " .. problem }, { task_filter.names 'java,a"b' })
    assert.same({ nil, "'a\\': " .. problem }, { task_filter.names 'a\\' })
    assert.same({ nil, '--filter requires task names, such as java,python*' }, { task_filter.names ',' })
  end)

  it('selects tasks by priority', function()
    local list = assert(task_filter.priorities '0-99, 120')
    assert.equal('prio >= 0 && prio <= 99 || prio >= 120 && prio <= 120', list.text 'prio')
    assert.is_true(list.has(0) and list.has(99) and list.has(120))
    assert.is_false(list.has(100))
    assert.is_false(list.has(-1))
  end)

  for _, text in ipairs { '', ',', '1-', '-1', '9-1', '140', '1,,2', 'x' } do
    it(("refuses '%s' as priorities"):format(text), function()
      local list, message = task_filter.priorities(text)
      assert.is_nil(list)
      assert.truthy(message:find(("invalid priority list '%s'"):format(text), 1, true))
    end)
  end

  it('joins filters', function()
    assert.is_nil(task_filter.all(nil, nil))
    assert.equal('a == 1', task_filter.all(nil, 'a == 1'))
    assert.equal('(a == 1) && (b || c)', task_filter.all('a == 1', nil, 'b || c'))
    assert.equal('s:e', task_filter.select('s:e', nil))
    assert.equal([[s:e/"comm == \"a\""/]], task_filter.select('s:e', 'comm == "a"'))
  end)
end)
