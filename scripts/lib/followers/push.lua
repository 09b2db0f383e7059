-- SPDX-License-Identifier: GPL-2.0-only
--- --push and --record, or the attribute push= of an event: send events to other hosts or to a file.
return {
  after = 'remote_slack',
  options = {
    { group = 'run', name = 'push', type = 'words', argument = 'ADDR',
      help = 'send all events to PORT, HOST:PORT, unix:PATH, vsock:PORT, a file or -, instead of analyzing them',
      needs = { 'each_event', 'perf_samples', 'both_switches', 'whole_run' } },
    { group = 'run', name = 'record', type = 'string', argument = 'FILE',
      help = 'also write all events to FILE, which perf and --input read',
      needs = { 'each_event', 'perf_samples', 'both_switches', 'whole_run' } },
    { group = 'run', name = 'secret', type = 'string', argument = 'FILE',
      help = 'other hosts must know the secret in FILE (or in PROFSCRIPT_SECRET) to receive events',
      needs = { 'whole_run' } },
  },
  new = function(run) return require('lib.run.push').new(run) end,
}
