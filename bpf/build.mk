# SPDX-License-Identifier: GPL-2.0-only
# The BPF programs, embedded in profscript. The layout of kernel structures is looked up when a
# program is loaded (CO-RE), so building needs neither kernel headers nor BTF. Without clang or
# libbpf's headers, profscript is built without the programs; options that need them report it.

DEPS       += clang libbpf-dev
BPF_CFLAGS := -target bpf -g -O2 -Wall $(WERROR) -I/usr/include/$(shell $(CC) -print-multiarch) \
	-D__TARGET_ARCH_$(subst aarch64,arm64,$(subst x86_64,x86,$(shell uname -m)))
ifneq ($(shell clang $(BPF_CFLAGS) -include linux/types.h -include bpf/bpf_core_read.h \
	-fsyntax-only -xc /dev/null 2>/dev/null && echo found),)
BPF_OBJECTS := $(patsubst %.c,build/%.o,$(wildcard bpf/*.bpf.c))
endif

build/bpf/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h) Makefile bpf/build.mk
	$(call quiet,BPF)mkdir -p $(@D) && clang $(BPF_CFLAGS) -c -o $@ $<

$(BUILD)/bpf/objects.o: EXTRA = -D'OBJECTS=$(patsubst build/bpf/%.bpf.o,OBJECT(%),$(BPF_OBJECTS))'
$(BUILD)/bpf/objects.o: $(BPF_OBJECTS) bpf/build.mk
