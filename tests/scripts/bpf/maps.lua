-- SPDX-License-Identifier: GPL-2.0-only
--- Maps of every kind that scripts can read: each counts the getppid() calls of the workload.
local cpu_list = require 'lib.cpu_list'

local function online(cpus)
  return cpus and 1 or #cpu_list.numbers(io.open('/sys/devices/system/cpu/online'):read '*l')
end

return {
  summary = 'Maps of BPF programs',

  options = { comm = { type = 'string', required = true, help = 'name of the workload' } },

  start = function(opt, out, session)
    local program = session.bpf {
      constants = { wanted = opt.comm, getppid = io.popen('uname -m'):read '*l' == 'x86_64' and 110 or 173 },
      source = [[
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct key { __u32 odd; char name[8]; };
struct value { __u64 calls; __u32 twice[2]; struct { __s16 minus; } in; __u32 low : 3, high : 5; };

#define MAP(name, kind, size, k, v)                                     \
	struct {                                                        \
		__uint(type, BPF_MAP_TYPE_##kind);                      \
		__uint(max_entries, size);                              \
		__type(key, k);                                         \
		__type(value, v);                                       \
	} name SEC(".maps")

MAP(hash, HASH, 16, struct key, struct value);
MAP(array, ARRAY, 4, __u32, __u64);
MAP(percpu_hash, PERCPU_HASH, 16, __u64, __u32);
MAP(percpu_array, PERCPU_ARRAY, 2, __u32, __u64);
MAP(lru, LRU_HASH, 1024, __s32, __u64);
MAP(lru_percpu, LRU_PERCPU_HASH, 1024, __u32, __u64);
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 64);
	__uint(key_size, 4);
	__uint(value_size, 127 * 8);
} stacks SEC(".maps");
MAP(by_stack, HASH, 64, __s32, __u64);

#define ADD(map, k, type)                                               \
	do {                                                            \
		type zero = 0, *v;                                      \
		bpf_map_update_elem(&map, &k, &zero, BPF_NOEXIST);      \
		v = bpf_map_lookup_elem(&map, &k);                      \
		if (v)                                                  \
			*v += 1;                                        \
	} while (0)

__u64 calls;
__u32 step = 0;
const volatile __u64 getppid = 0;

const volatile char wanted[16] = {};

static __always_inline _Bool is_wanted(const char *comm)
{
	for (int i = 0; i < 16; i++)
		if (comm[i] != wanted[i])
			return 0;
	return 1;
}

__u64 runs;

SEC("raw_tp")
int on_each(void *ctx)
{
	__sync_fetch_and_add(&runs, 1);
	return 0;
}

SEC("raw_tp/sys_enter")
int on_enter(struct bpf_raw_tracepoint_args *ctx)
{
	struct key key = {};
	struct value zero = {}, *value;
	char comm[16] = {}; /* older kernels leave what is behind the NUL */
	__u32 first = 1, cpu = 1;
	__u64 wide;
	__s32 stack, minus;

	bpf_get_current_comm(comm, sizeof(comm));
	if (!is_wanted(comm) || ctx->args[1] != getppid)
		return 0;
	calls += step;
	key.odd = calls & 1;
	key.name[0] = 'o' - 10 * !key.odd;
	bpf_map_update_elem(&hash, &key, &zero, BPF_NOEXIST);
	value = bpf_map_lookup_elem(&hash, &key);
	if (value) {
		value->calls++;
		value->twice[1] += 2;
		value->in.minus = -7;
		value->low = 5;
		value->high = 17;
	}
	ADD(array, first, __u64);
	wide = 0x8000000000000001ull;
	ADD(percpu_hash, wide, __u32);
	ADD(percpu_array, cpu, __u64);
	minus = -(__s32)(calls % 8);
	ADD(lru, minus, __u64);
	ADD(lru_percpu, first, __u64);
	stack = bpf_get_stackid(ctx, &stacks, 0);
	ADD(by_stack, stack, __u64);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
]],
    }
    program:set('step', 1)
    program:attach 'on_enter'

    local function sum(values)
      local total = 0
      for cpu = 0, #values do
        total = total + values[cpu]
      end
      return total
    end

    return {
      stop = function()
        local hash = program:map 'hash'
        for _, name in ipairs { 'even', 'odd' } do
          local v = hash:get { odd = name == 'odd' and 1 or 0, name = name:sub(1, 1) }
          out:print('hash', name, v.calls, v.twice[0], v.twice[1], v['in'].minus, v.low, v.high)
        end
        local n = 0
        for key, value in hash:pairs() do
          n = n + 1
          hash:set({ odd = 7, name = key.name .. key.odd }, { calls = value.calls, twice = { [1] = 3 } })
        end
        out:print('pairs', n, hash:get({ odd = 7, name = 'e0' }).twice[1], hash:delete { odd = 7, name = 'e0' },
          hash:delete { odd = 7, name = 'e0' }, hash:get { odd = 7, name = 'e0' })
        local taken, rest = hash:take(), 0
        for _, entry in ipairs(taken) do rest = rest + (entry.key.odd == 7 and entry.value.calls or 0) end
        out:print('taken', #taken, rest, #hash:take())
        hash:set({ odd = 1, name = 'o' }, { calls = 1 })
        hash:clear()
        out:print('cleared', (hash:pairs()()))
        program:set('runs', 0)
        program:run 'on_each'
        out:print('runs', program:get 'runs' == online(opt.cpus))
        local array = program:map 'array'
        out:print('array', array:get(0), array:get(1), array:get(4))
        array:clear()
        out:print('cleared', array:get(1))
        out:print('percpu_hash', sum(program:map 'percpu_hash':get(0x8000000000000001ULL)))
        out:print('percpu_array', sum(program:map 'percpu_array':get(1)))
        local percpu = program:map 'percpu_array'
        percpu:set(0, { [0] = 5 })
        out:print('percpu_array', percpu:get(0)[0], sum(percpu:get(0)))
        out:print('between CPUs', (select(2, pcall(percpu.set, percpu, 0, { [0.5] = 5 })):match 'no CPU 0.5'))
        local keys, total = {}, 0
        for key, value in program:map 'lru':pairs() do
          keys[#keys + 1], total = key, total + value
        end
        table.sort(keys)
        out:print('lru', keys[1], keys[#keys], total)
        out:print('lru_percpu', sum(program:map 'lru_percpu':get(1)))
        local stacks, best = program:map 'stacks', 'none'
        for id, calls in program:map 'by_stack':pairs() do
          local frames = id >= 0 and stacks:stack(id) or {}
          if #frames > 0 then
            for _, frame in ipairs(frames) do
              if frame.symbol and frame.symbol:match 'syscall' then best = 'syscall' end
            end
          elseif calls > 0 then
            best = best .. ' ' .. id
          end
        end
        out:print('stack', best)
      end,
    }
  end,
}
