-- SPDX-License-Identifier: GPL-2.0-only
--- --prometheus, --otlp, --serve: show what a run reports to other programs while it runs.
return {
  after = 'export',
  options = {
    { group = 'run', name = 'prometheus', type = 'string', argument = '[ADDR:]PORT',
      help = 'serve what the reports say as metrics at http://127.0.0.1:PORT/metrics while the profiler runs',
      needs = { 'event_counts', 'whole_run' } },
    { group = 'run', name = 'otlp', type = 'string', argument = 'URL',
      help = 'send the same metrics to an OpenTelemetry collector, such as http://localhost:4318',
      needs = { 'event_counts', 'whole_run' } },
    { group = 'run', name = 'serve', type = 'string', argument = '[ADDR:]PORT',
      help = 'show the reports on a page for browsers while the profiler runs, at http://127.0.0.1:PORT',
      needs = { 'event_counts', 'whole_run' } },
  },
  new = function(run)
    local opt = run.opt
    return (opt.prometheus or opt.otlp or opt.serve) and require('lib.serve.serve').new(run) or nil
  end,
}
