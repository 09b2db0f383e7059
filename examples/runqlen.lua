-- SPDX-License-Identifier: GPL-2.0-only
--- Prints how many tasks are on the run queues of the CPUs, sampled 99 times per second, as a histogram. The running
--- task counts. Only the kernel knows this number, so a BPF program reads it.
---
---   profscript examples/runqlen.lua --duration 10
local SOURCE = [[
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define OF_KERNEL __attribute__((preserve_access_index))
struct rq { unsigned int nr_running; } OF_KERNEL;
struct cfs_rq { struct rq *rq; } OF_KERNEL;
struct sched_entity { struct cfs_rq *cfs_rq; } OF_KERNEL;
struct task_struct { struct sched_entity se; } OF_KERNEL;
__u64 lengths[64];

SEC("perf_event")
int sample(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u32 n = BPF_CORE_READ(task, se.cfs_rq, rq, nr_running);

	if (n < 64)
		__sync_fetch_and_add(&lengths[n], 1);
	return 0;
}
char LICENSE[] SEC("license") = "GPL";
]]

return {
  summary = 'Print the length of the run queues',
  metrics = { row = { tasks = 'label', samples = 'counter' } },
  start = function(_, out, session)
    local program = session.bpf { source = SOURCE }
    program:attach('sample', { type = 'software', config = 'cpu-clock', sample_freq = 99 })
    return { stop = function()
      local lengths = program:get 'lengths'
      for n = 0, 63 do
        if lengths[n] > 0 then out:row { 'tasks', n, 'samples', tonumber(lengths[n]) } end
      end
    end }
  end,
}
