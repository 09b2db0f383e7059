-- SPDX-License-Identifier: GPL-2.0-only
--- --perfeval-cpus, --perfeval-pids, --sampling-limit: count the events of CPUs or threads, and bound them.
return {
  after = 'usage_self',
  options = {
    { group = 'run', name = 'perfeval_cpus', type = 'cpus',
      help = 'at each -i, print the events per second of these CPUs',
      needs = { 'perf_samples', 'both_switches', 'samples', 'idle_if_counted', 'whole_run' } },
    { group = 'run', name = 'perfeval_pids', type = 'ids',
      help = 'at each -i, print the events per second of the threads of these processes',
      needs = { 'perf_samples', 'both_switches', 'samples', 'idle_if_counted', 'whole_run' } },
    { group = 'run', name = 'sampling_limit', type = 'integer', min = 1,
      help = 'stop if --perfeval-* counts more than N events per second for each CPU or thread with events',
      needs = { 'each_event', 'both_switches', 'samples', 'idle_if_counted', 'whole_run' } },
  },
  new = function(run)
    local opt = run.opt
    local is_wanted = opt.perfeval_cpus or opt.perfeval_pids or opt.sampling_limit
    return is_wanted and require('lib.run.perfeval').new(run) or nil
  end,
}
