/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bpf COUNT: loads a BPF program named "traced" that runs at each getppid(2) of this process and
 * prints a line to the kernel's trace (an event of its own, bpf_trace:bpf_trace_printk), calls
 * getppid COUNT times, and unloads the program. Exits with 2 if the kernel does not allow that.
 */
#include <linux/bpf.h>
#include <sys/syscall.h>
#include "go.h"

#define INSN(op, dst, src, offset, value)    \
	((struct bpf_insn){.code = (op),     \
			   .dst_reg = (dst), \
			   .src_reg = (src), \
			   .off = (offset),  \
			   .imm = (value)})

/* A program on the entry of all system calls that selects ours. (A program of a perf event would
 * not do: no other perf events occur within it.) */
static int load(void)
{
	struct bpf_insn insns[] = {
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_6, BPF_REG_1, 8, 0), /* its number */
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_pid_tgid),
		INSN(BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_0, 0, 0, 32),
		INSN(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 6, getpid()),
		INSN(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_6, 0, 5, SYS_getppid),
		INSN(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, -8, 'x'),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_1, 0, 0, -8),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, 2),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_trace_printk),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
		.insn_cnt = sizeof(insns) / sizeof(insns[0]),
		.insns = (__u64)(unsigned long)insns,
		.license = (__u64)(unsigned long)"GPL",
		.prog_name = "traced",
	};

	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int attach(int program)
{
	union bpf_attr attr = {
		.raw_tracepoint = {(__u64)(unsigned long)"sys_enter", (__u32)program},
	};

	return (int)syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &attr, sizeof(attr));
}

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);
	int program, link;

	workload_wait(&w);
	program = load();
	link = program >= 0 ? attach(program) : -1;
	if (link < 0) {
		perror("bpf");
		return 2;
	}
	for (long i = 0; i < w.count; i++)
		syscall(SYS_getppid);
	close(link);
	close(program);
	return 0;
}
