-- SPDX-License-Identifier: GPL-2.0-only
--- --perfeval-cpus, --perfeval-pids, --sampling-limit: count the events of CPUs or threads, and bound them.
return {
  new = function(run)
    local opt = run.opt
    local is_wanted = opt.perfeval_cpus or opt.perfeval_pids or opt.sampling_limit
    return is_wanted and require('bindings.run.perfeval').new(run) or nil
  end,
}
