-- SPDX-License-Identifier: GPL-2.0-only
--- --query: SQL on the rows that a profiler prints, unless the profiler has an option of this name.
return {
  after = 'csv',
  options = {
    { group = 'run', name = 'query', type = 'string', argument = 'SQL',
      help = 'print the results of SELECT statements on the rows of each report instead of these; the columns are '
        .. 'those of --csv', needs = { 'whole_run' } },
  },
  new = function(run)
    local own = run.profiler.options
    return run.opt.query and not (own and own.query) and require('lib.sql.row_query').new(run) or nil
  end,
}
