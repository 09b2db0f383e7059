-- SPDX-License-Identifier: GPL-2.0-only
--- Blocks a CPU for some seconds with interrupts disabled, from the next timer that expires there.
--- For guests.
return {
  summary = 'Hang a CPU',
  options = {
    cpu = { type = 'integer', default = -1, help = 'the CPU; -1: none' },
    ns = { type = 'duration', default = '5s', help = 'for how long' },
  },

  start = function(opt, out, session)
    local program = session.bpf {
      constants = { cpu = opt.cpu, time = opt.ns },
      source = [[
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile __s32 cpu = -1;
const volatile __u64 time = 0;
__u64 hung;

static long pass(__u32 i, __u64 *end)
{
	return bpf_ktime_get_ns() >= *end;
}

static long passes(__u32 i, __u64 *end)
{
	bpf_loop(1 << 20, pass, end, 0);
	return bpf_ktime_get_ns() >= *end;
}

SEC("raw_tp/hrtimer_expire_entry") /* with interrupts off, and no lock held */
int hang(void *ctx)
{
	__u64 end;

	if ((__s32)bpf_get_smp_processor_id() != cpu || hung)
		return 0;
	hung = 1;
	end = bpf_ktime_get_ns() + time;
	bpf_loop(1 << 20, passes, &end, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
]],
    }
    program:attach()
    return { stop = function() out:print('hung', program:get 'hung') end }
  end,
}
