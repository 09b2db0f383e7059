-- SPDX-License-Identifier: GPL-2.0-only
-- What is found by its place.
local plugins = require 'bindings.options.plugins'

local function names_of(options)
  local names = {}
  for i, option in ipairs(options) do names[i] = option.name end
  return names
end

describe('plugins', function()
  it('are the files of a folder, in the order of their names', function()
    local names = plugins.names 'followers'
    assert.truthy(#names >= 7)
    for i = 2, #names do assert(names[i - 1] < names[i]) end
    for i, plugin in ipairs(plugins.list()) do
      assert.equal(names[i], plugin.name)
      assert.is_function(plugin.new)
    end
    assert.same({}, plugins.names 'no such folder')
  end)

  it('do not load what does the work', function()
    plugins.list()
    for _, name in ipairs { 'lib.export.export', 'lib.serve.serve', 'lib.sql.row_query' } do
      assert.is_nil(package.loaded[name])
    end
  end)

  it('have their options where they say', function()
    local options = { { name = 'watch' }, { name = 'remote_slack' }, { name = 'output' }, { name = 'csv' } }
    plugins.add_options(options)
    assert.same({ 'watch', 'usage_self', 'perfeval_cpus', 'perfeval_pids', 'sampling_limit', 'remote_slack', 'push',
      'record', 'secret', 'output', 'export', 'prometheus', 'otlp', 'serve', 'csv', 'sort', 'query' },
      names_of(options))
  end)

  it('cannot follow an option that does not exist', function()
    assert.has_error(function() plugins.add_options {} end, 'a follower has its options after one that does not exist')
  end)
end)
