/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stores COUNT: COUNT times, writes to the eight bytes at 0x10000000 with one instruction after the
 * other, and then prints the value after each. stores COUNT RATE: adds one COUNT times.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include "go.h"

#define PLACE 0x10000000ul
#define MANY  64

static uint64_t values[MANY];

#ifdef __x86_64__
/* An instruction with the place in rdi, a number in rax and rdx, and its bit number in rcx. */
#define STORE(code, number)                                                     \
	do {                                                                    \
		uint64_t a = (number), d = (number), c = (number);              \
		uint64_t *to = p;                                               \
                                                                                \
		__asm__ volatile(code                                           \
				 : "+a"(a), "+d"(d), "+c"(c), "+D"(to)          \
				 :                                              \
				 : "memory", "cc", "rbx", "rsi", "r8", "xmm0"); \
		values[n++] = *p;                                               \
	} while (0)

static int stores(volatile uint64_t *at)
{
	uint64_t *p = (uint64_t *)at;
	int n = 0;

	STORE("movq %%rax,(%%rdi)", 0x1122334455667788);
	STORE("movl %%edx,4(%%rdi)", 0x99);
	STORE("movw %%dx,2(%%rdi)", 0xabcd);
	STORE("movb %%ah,7(%%rdi)", 0x4200);
	STORE("mov %%rdx,%%r8; movb %%r8b,(%%rdi,%%rcx,4)", 1);
	STORE("movabs %%rax,0x10000000", -7);
	STORE("movq $-2,(%%rdi)", 0);
	STORE("movl $0x12345678,(%%rdi)", 0);
	STORE("movw $0x1234,6(%%rdi)", 0);
	STORE("movb $5,(%%rdi)", 0);
	STORE("addq %%rdx,(%%rdi)", 0x100000000);
	STORE("addl $-3,(%%rdi)", 0);
	STORE("lock addq $1000,(%%rdi)", 0);
	STORE("subw $0x4321,(%%rdi)", 0);
	STORE("orb $0x40,5(%%rdi)", 0);
	STORE("lock andq $0xfffffff,(%%rdi)", 0);
	STORE("xorl %%eax,-16(%%rdi,%%rcx,8)", 2);
	STORE("incq (%%rdi)", 0);
	STORE("decb (%%rdi)", 0);
	STORE("notl (%%rdi)", 0);
	STORE("negq (%%rdi)", 0);
	STORE("shlq $5,(%%rdi)", 0);
	STORE("shrl (%%rdi)", 0);
	STORE("shll %%cl,(%%rdi)", 7);
	STORE("lock btsq $40,(%%rdi)", 0);
	STORE("lock btrq %%rdx,(%%rdi)", 40);
	STORE("btcl %%edx,-8(%%rdi)", 67);
	STORE("cmp $3,%%rax; sete (%%rdi)", 3);
	STORE("cmp $3,%%rax; setg (%%rdi)", 3);
	STORE("lock xaddq %%rax,(%%rdi)", 3);
	STORE("mov (%%rdi),%%rax; mov $77,%%rdx; lock cmpxchgq %%rdx,(%%rdi)", 0);
	STORE("lock cmpxchgl %%edx,(%%rdi)", 78);
	STORE("xchgq %%rax,(%%rdi)", 5);
	STORE("movnti %%rdx,(%%rdi)", 9);
	STORE("stosl", 0x33);
	values[n++] = (*p & ~0xfful) | 0x77; /* after the first of the two */
	STORE("mov $2,%%ecx; rep stosb", 0x77);
	STORE("movq %%rdx,%%xmm0; movq %%xmm0,(%%rdi)", 6);
	STORE("mov %%rsp,%%rbx; lea 8(%%rdi),%%rsp; push %%rdx; mov %%rbx,%%rsp", 0x5555);
	STORE("mov %%rsp,%%rbx; lea 8(%%rdi),%%rsp; push $-1; mov %%rbx,%%rsp", 0);
	return n;
}
#else
static int stores(volatile uint64_t *at)
{
	*at = 1;
	values[0] = 1;
	return 1;
}
#endif

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);
	volatile uint64_t *at =
		mmap((void *)PLACE, 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_POPULATE, -1, 0);
	int n = 0;

	if (at == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	workload_wait(&w);
	for (long i = 0; i < w.count; i++) {
		if (w.rate) {
			usleep(1000000 / w.rate);
			__atomic_fetch_add(at, 1, __ATOMIC_RELAXED);
		} else {
			n = stores(at);
		}
	}
	for (int i = 0; i < n; i++)
		printf("0x%lx\n", values[i]);
	return 0;
}
