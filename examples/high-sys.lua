-- SPDX-License-Identifier: GPL-2.0-only
--- Captures kernel stacks of the moments when a CPU spends much of its time in the kernel.
---
--- A BPF program samples all CPUs. Every 100 ms it sends the stacks of a CPU, but only if more than --than percent of
--- its samples are in the kernel. This process sleeps until then.
---
---   profscript examples/high-sys.lua --than 30 --duration 1h | profscript flamegraph - sys.svg
local SOURCE = [[
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

enum { STACKS = 128 };

struct moment {
	__u64 ktime;
	__u32 cpu, samples, nr_stacks;
	__s32 stacks[STACKS]; /* IDs of the kernel stacks */
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct moment);
} running SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 16384);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 127 * sizeof(__u64));
} stacks SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
	__type(value, struct moment);
} moments SEC(".maps");
__u64 moments_lost;
const volatile __u32 window = 100, than = 30; /* samples; percent */

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	__u32 zero = 0;
	struct moment *m = bpf_map_lookup_elem(&running, &zero);
	int stack = -1;

	if (!m)
		return 0;
	/* Fails in user mode. IDs are reused, so user space must read the stacks at once. */
	if (bpf_get_current_pid_tgid()) /* not idle */
		stack = bpf_get_stackid(ctx, &stacks, BPF_F_REUSE_STACKID);
	if (stack >= 0 && m->nr_stacks < STACKS)
		m->stacks[m->nr_stacks++ & (STACKS - 1)] = stack;
	if (++m->samples < window)
		return 0;
	if (m->nr_stacks * 100 > than * window) {
		m->ktime = bpf_ktime_get_ns();
		m->cpu = bpf_get_smp_processor_id();
		if (bpf_ringbuf_output(&moments, m, sizeof(*m), 0))
			__sync_fetch_and_add(&moments_lost, 1);
	}
	m->samples = m->nr_stacks = 0;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
]]

return {
  summary = 'Print kernel stacks of the moments when a CPU is busy in the kernel',
  options = {
    than = { type = 'integer', default = 30, min = 0, max = 99, unit = '%', help = 'threshold of kernel time' },
  },

  start = function(opt, out, session)
    local program = session.bpf { source = SOURCE, constants = { window = 100, than = opt.than } }
    program:attach('sample', { type = 'software', config = 'cpu-clock', sample_freq = 1000 })
    local stacks, counts = program:map 'stacks', {}

    local function folded(id)
      local names = {}
      for _, frame in ipairs(stacks:stack(id) or {}) do
        table.insert(names, 1, frame.symbol or 'unknown')
      end
      return table.concat(names, ';')
    end

    return {
      [program:events 'moments'] = function(ev)
        out:warn(('CPU %d: %d %% in the kernel in 0.1 s'):format(ev.cpu, ev.nr_stacks))
        for i = 0, ev.nr_stacks - 1 do
          local stack = folded(ev.stacks[i])
          counts[stack] = (counts[stack] or 0) + 1
        end
      end,
      stop = function()
        for stack, count in pairs(counts) do out:printf('%s %d\n', stack, count) end
      end,
    }
  end,
}
