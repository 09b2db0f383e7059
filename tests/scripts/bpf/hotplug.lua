-- SPDX-License-Identifier: GPL-2.0-only
--- By CPU, the getppid() calls of a program as records of a perf event array, and its page faults, counted by a
--- program on a perf event of each CPU.
return {
  summary = 'What BPF programs see of CPUs that come and go',
  options = { comm = { type = 'string', required = true, help = 'name of the workload' } },

  start = function(opt, out, session)
    local program = session.bpf {
      constants = { wanted = opt.comm },
      source = [[
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct record { __u32 pid, cpu; };
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(value, struct record);
} calls SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} faults SEC(".maps");
const volatile char wanted[16] = {};

static __always_inline _Bool is_wanted(void)
{
	char comm[16] = {}; /* some kernels write no more than the name */

	bpf_get_current_comm(comm, sizeof(comm));
	for (int i = 0; i < 16; i++)
		if (comm[i] != wanted[i])
			return 0;
	return 1;
}

SEC("tracepoint/syscalls/sys_enter_getppid")
int on_getppid(void *ctx)
{
	struct record r = {.pid = bpf_get_current_pid_tgid() >> 32, .cpu = bpf_get_smp_processor_id()};

	if (is_wanted())
		bpf_perf_event_output(ctx, &calls, BPF_F_CURRENT_CPU, &r, sizeof(r));
	return 1;
}

SEC("perf_event")
int on_fault(void *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u64 *n = bpf_map_lookup_elem(&faults, &cpu);

	if (n && is_wanted())
		__sync_fetch_and_add(n, 1);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
]],
    }
    program:attach 'on_getppid'
    program:attach('on_fault', { config = 'page-faults', sample_period = 1 })
    local calls, lost = {}, 0
    return {
      [program:events 'calls'] = function(ev) calls[ev._cpu] = (calls[ev._cpu] or 0) + 1 end,
      lost = function(gap) lost = lost + gap.lost end,
      stop = function()
        local faults = program:map 'faults'
        for cpu = 0, 63 do
          if calls[cpu] then out:print('calls', cpu, calls[cpu]) end
          if faults:get(cpu) > 0 then out:print('faults', cpu, faults:get(cpu)) end
        end
        out:print('lost', lost)
      end,
    }
  end,
}
