-- SPDX-License-Identifier: GPL-2.0-only
--- Each getppid() of the workload three times: by the tracepoint, a ring buffer and a perf event array.
return {
  summary = 'Records of BPF programs among other events',
  options = {
    comm = { type = 'string', required = true, help = 'name of the workload' },
    every = { type = 'integer', default = 1, help = 'keep every so many' },
  },

  start = function(opt, out, session)
    local program = session.bpf {
      constants = { every = opt.every, wanted = opt.comm },
      source = [[
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct inner { short small; unsigned char bytes[3]; };
struct record {
	__u64 ktime;
	__u32 pid, tid, cpu;
	__s32 minus;
	__u64 number;
	char comm[16];
	enum { NONE, SOME = 5 } choice;
	struct inner inner;
	_Bool yes;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
	__type(value, struct record);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(value, struct record);
} array SEC(".maps");

const volatile __u32 every = 1;
__u64 calls, ring_lost;

const volatile char wanted[16] = {};

static __always_inline _Bool is_wanted(const char *comm)
{
	for (int i = 0; i < 16; i++)
		if (comm[i] != wanted[i])
			return 0;
	return 1;
}

SEC("tracepoint/syscalls/sys_enter_getppid")
int on_getppid(void *ctx)
{
	struct record r = {}, *slot;
	__u64 id = bpf_get_current_pid_tgid();

	bpf_get_current_comm(r.comm, sizeof(r.comm));
	if (!is_wanted(r.comm))
		return 1;
	r.number = calls++; /* there is one caller */
	if (r.number % every)
		return 1;
	r.pid = id >> 32;
	r.tid = id;
	r.cpu = bpf_get_smp_processor_id();
	r.minus = -(__s32)r.number;
	r.choice = SOME;
	r.inner.small = -2;
	r.inner.bytes[1] = 200;
	r.yes = 1;
	r.ktime = bpf_ktime_get_ns();
	slot = bpf_ringbuf_reserve(&ring, sizeof(*slot), 0);
	if (slot) {
		*slot = r;
		bpf_ringbuf_submit(slot, 0);
	} else {
		__sync_fetch_and_add(&ring_lost, 1);
	}
	bpf_perf_event_output(ctx, &array, BPF_F_CURRENT_CPU, &r, sizeof(r));
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
]],
    }
    program:attach()
    local count, last, wrong, backwards, reported = { 0, 0, 0 }, 0, 0, 0, 0
    local expected = 0

    local function check(which, ev)
      count[which] = count[which] + 1
      if ev._time < last then backwards = backwards + 1 end
      last = ev._time
    end
    local function check_record(which, ev)
      check(which, ev)
      if ev.number ~= expected or ev.minus ~= -ev.number or ev.comm ~= opt.comm or ev.choice ~= 5
        or ev.inner_small ~= -2 or ev.inner_bytes[1] ~= 200 or ev.yes ~= 1 or ev._pid ~= ev.pid
        or ev._tid ~= ev.tid or ev._cpu ~= ev.cpu or ev._comm ~= opt.comm then
        wrong = wrong + 1
      end
    end
    return {
      [program:events 'ring'] = function(ev) check_record(1, ev) end,
      [program:events 'array'] = function(ev)
        check_record(2, ev)
        expected = expected + opt.every
      end,
      ['syscalls:sys_enter_getppid'] = function(ev)
        if ev._comm == opt.comm then check(3, ev) end
      end,
      lost = function(gap) reported = reported + gap.lost end,
      stop = function()
        out:print('calls', program:get 'calls')
        out:print('ring', count[1], 'array', count[2], 'tracepoint', count[3])
        out:print('wrong', wrong, 'backwards', backwards)
        out:print('lost', reported, 'counted', program:get 'ring_lost')
      end,
    }
  end,
}
