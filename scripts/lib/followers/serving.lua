-- SPDX-License-Identifier: GPL-2.0-only
--- --prometheus, --otlp, --serve: show what a run reports to other programs while it runs.
return {
  new = function(run)
    local opt = run.opt
    return (opt.prometheus or opt.otlp or opt.serve) and require('lib.serve.serve').new(run) or nil
  end,
}
