-- SPDX-License-Identifier: GPL-2.0-only
--- --sort: the order of the rows of all tables, unless the profiler has an option of this name.
return {
  after = 'csv',
  options = {
    { group = 'run', name = 'sort', type = 'string', argument = 'COLUMN',
      help = 'sort the rows of tables by a column: values from the largest, keys and texts in their order',
      needs = { 'whole_run' } },
  },
  new = function(run)
    local own = run.profiler.options
    return run.opt.sort and not (own and own.sort) and require('lib.run.sort').new(run) or nil
  end,
}
