-- SPDX-License-Identifier: GPL-2.0-only
--- Counts the records that a program makes of every Nth pass of a tracepoint.
return {
  summary = 'Records of a BPF program, counted',
  options = {
    every = { type = 'integer', default = 1, help = 'keep every so many' },
    tracepoint = { type = 'string', default = 'sys_enter', help = 'where the program runs' },
  },

  start = function(opt, out, session)
    local program = session.bpf {
      constants = { every = opt.every },
      source = [[
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct record { __u64 ktime; __u32 pid, cpu; __u64 number; };
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
	__type(value, struct record);
} records SEC(".maps");
__u64 passes, records_lost;
const volatile __u32 every = 1;

SEC("raw_tp")
int pass(void *ctx)
{
	struct record *r;
	__u64 number;

	__sync_fetch_and_add(&passes, 1); /* with a result only since 5.12 */
	number = passes;
	if (number % every)
		return 0;
	r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&records_lost, 1);
		return 0;
	}
	r->ktime = bpf_ktime_get_ns();
	r->pid = bpf_get_current_pid_tgid() >> 32;
	r->cpu = bpf_get_smp_processor_id();
	r->number = number;
	bpf_ringbuf_submit(r, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
]],
    }
    program:attach('pass', 'raw_tracepoint:' .. opt.tracepoint)
    local count, sum = 0, 0
    return {
      [program:events 'records'] = function(ev)
        count = count + 1
        sum = sum + ev.pid + ev.number % 7
      end,
      stop = function() out:print('records', count, 'passes', program:get 'passes', 'sum', sum) end,
    }
  end,
}
