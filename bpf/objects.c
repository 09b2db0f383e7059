/* SPDX-License-Identifier: GPL-2.0-only */
/* Embeds the compiled BPF programs. The Makefile defines OBJECTS as OBJECT(a) OBJECT(b)... */
#include "bpf/bpf.h"

#define OBJECT(name)                                                                     \
	__asm__(".section .rodata\n.balign 8\nbpf_" #name ": .incbin \"build/bpf/" #name \
		".bpf.o\"\n"                                                             \
		"bpf_" #name "_end: .previous");                                         \
	extern const char bpf_##name[], bpf_##name##_end[];
OBJECTS
#undef OBJECT

#define OBJECT(name) {#name, bpf_##name, bpf_##name##_end},
const struct bpf_object_file bpf_object_files[] = {OBJECTS{0}};
