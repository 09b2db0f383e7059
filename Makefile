# SPDX-License-Identifier: GPL-2.0-only
# `make help` lists the targets. V=1 shows the commands, ASAN=1 builds the sanitizer variant.

PREFIX ?= /usr/local
CFLAGS ?= -O2 -g
WERROR ?= -Werror
MAKEFLAGS += --no-print-directory

BUILD   = build
PROGRAM = profscript
datadir = $(PREFIX)/share/profscript
ifneq ($(ASAN)$(FUZZ),)
BUILD    = build/$(if $(FUZZ),fuzz,asan)
PROGRAM  = $(BUILD)/profscript
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer \
	$(FUZZ:%=-fsanitize=fuzzer-no-link)
CC      := $(if $(FUZZ),clang,$(CC))
datadir  = $(CURDIR)
endif

DEPS = gcc make pkg-config libluajit-5.1-dev luajit libtraceevent-dev libelf-dev libdw-dev libzstd-dev \
	liblzma-dev nettle-dev libsqlite3-dev libedit-dev libmicrohttpd-dev libcurl4-gnutls-dev libiberty-dev xz-utils libcmocka-dev lua-busted lua-cjson python3-jsonschema linux-perf \
	node-d3-scale node-d3-axis node-d3-brush
pkg       = $(shell pkg-config $1 2>/dev/null)
INCLUDES := -iquote . -iquote runtime -iquote native $(call pkg,--cflags libtraceevent)
LIBS     := $(call pkg,--libs libtraceevent libelf libdw libzstd liblzma nettle sqlite3 libedit luajit)
WARNINGS  = -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wundef $(WERROR)
COMPILE   = $(if $(LIBS),,$(error libraries are missing: run `sudo make deps`))$(CC) -std=gnu11 \
	-D_GNU_SOURCE= $(INCLUDES) $(EXTRA) $(WARNINGS) $(CFLAGS) $(SANITIZE)
quiet     = $(if $(V),,@printf '  %-7s %s\n' $1 '$(@:$(BUILD)/%=%)';)
SUBMAKE   = +@$(MAKE) $(if $(V),,-s) $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

SCRIPTS_API := $(wildcard docs/*.lua scripts/lib/*.lua bindings/*/*.lua bpf/*/*.lua)
BYTECODE    := $(BUILD)/stubs.bc.o $(BUILD)/web.bc.o $(patsubst %.lua,$(BUILD)/%.bc.o,$(wildcard bindings/*.lua bindings/*/*.lua bpf/*/*.lua))
# The modules of D3 that the page of --serve contains, each after those that it uses.
D3          := $(foreach m,array collection color dispatch ease timer format time time-format interpolate scale selection \
	drag transition axis brush,/usr/share/nodejs/d3-$m/dist/d3-$m.min.js)
WEB_FILES   := $(wildcard scripts/lib/web/*.html scripts/lib/web/*.css scripts/lib/web/*.js)
ARCHIVES     = $(BUILD)/libruntime.a $(BUILD)/libnative.a
LINKED       = $(ARCHIVES) $(PERF_LIBS) $(LIBS) -liberty -lm -pthread
WORKLOADS   := $(patsubst tests/%.c,build/%,$(wildcard tests/workloads/*.c))
BENCHES     := $(patsubst tests/%.c,$(BUILD)/%,$(wildcard tests/bench/*.c))
UNIT_TESTS  := $(patsubst tests/%.c,$(BUILD)/%,$(shell find tests/unit -name '*_test.c'))
FUZZERS     := $(patsubst tests/%.c,build/fuzz/%,$(wildcard tests/fuzz/*_fuzz.c))
C_FILES     := $(shell find runtime native bindings bpf scripts tests -name '*.[ch]')
# What ffi.cdef reads: plain declarations only.
FFI_HEADERS := $(addsuffix .h,$(addprefix runtime/,error event event_request nearest bpf/bpf bpf/btf_types \
	clocks/clock_axis decode/records decode/sample formats/formats formats/tracepoint live/capture_ring \
	live/capture_window live/count_sums live/live os/cgroups os/clock os/cpus os/inode_path \
	os/own_file os/splitlock os/support os/threads \
	probes/binary probes/elf probes/probe probes/usdt process/line_editor process/output process/quit \
	process/signals process/watchdog pull/remote push/excerpt push/push recording/recording relations/history \
	relations/pairs relations/timeline serve/http_sender serve/http_server session/session session/tasks \
	sql/columns sql/database sql/functions sql/rows sql/tables stacks/frame_tables stacks/maps stacks/resolve stacks/stacks \
	symbols/demangle symbols/srcline symbols/symbols) \
	$(addprefix native/,bytes hist intern objects text) bindings/limits)
# And these of the kernel's headers. (LuaJIT has no bit fields of 64 bits.)
FFI_KERNEL   = struct.perf_event_attr enum.perf_type_id enum.perf_event_sample_format enum.bpf_map_type

.DELETE_ON_ERROR:
.PHONY: all deps demo test bench lint headers fuzz corpus api site gallery man install clean help programs FORCE

all: $(PROGRAM) ## build ./profscript (the default); with ASAN=1 build/asan/profscript

# libperf: the installed one where it comes with its internal headers, else the kernel source's.
ifneq ($(shell $(CC) $(call pkg,--cflags libperf) -include internal/evlist.h -fsyntax-only \
	-xc /dev/null 2>/dev/null && echo found),)
PERF_CFLAGS := $(call pkg,--cflags libperf)
PERF_LIBS   := $(call pkg,--libs libperf) -lapi
else
DEPS        += linux-source-6.1
TOOLS        = build/linux/tools
PERF_BUILT   = $(TOOLS)/lib/perf/libperf.a
PERF_LIBS    = $(PERF_BUILT) $(TOOLS)/lib/api/libapi.a
PERF_CFLAGS := $(addprefix -isystem $(TOOLS)/,lib/perf/include lib include \
	arch/$(subst aarch64,arm64,$(subst x86_64,x86,$(shell uname -m)))/include)
LINUX_TAR   := $(lastword $(sort $(wildcard /usr/src/linux-source-6.*.tar.xz)))

$(PERF_BUILT): # unpacking takes seconds (xz), so it is done once and only for what is needed
	$(if $(LINUX_TAR),,$(error neither libperf nor the kernel source: run `sudo make deps`))
	$(call quiet,LIBPERF)rm -rf build/linux && mkdir -p build/linux && xz -dcT0 $(LINUX_TAR) | \
		tar x -C build/linux --strip-components=1 --wildcards $(patsubst %,'*/tools/%',\
		lib/perf/* lib/api/* lib/*.c include/* arch/*/include/* scripts/* build/*) && \
		env -i PATH="$$PATH" $(firstword $(MAKE)) -s -C $(TOOLS)/lib/perf >/dev/null
endif

include bpf/build.mk

$(PROGRAM): $(BUILD)/bindings/main.o $(BUILD)/bindings/limits.o $(BUILD)/ffi_headers.o $(BUILD)/bpf/objects.o $(BYTECODE) $(ARCHIVES) | $(PERF_BUILT)
	$(call quiet,LINK)$(CC) $(SANITIZE) -Wl,-E -o $@ $(filter %.o,$^) -Wl,--whole-archive \
		$(ARCHIVES) -Wl,--no-whole-archive $(LDFLAGS) $(filter-out $(ARCHIVES),$(LINKED))

$(BUILD)/libruntime.a: $(patsubst %.c,$(BUILD)/%.o,$(wildcard runtime/*.c runtime/*/*.c))
$(BUILD)/libnative.a: $(patsubst %.c,$(BUILD)/%.o,$(wildcard native/*.c))
$(ARCHIVES):
	$(call quiet,AR)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/%.o: %.c Makefile
	$(call quiet,CC)mkdir -p $(@D) && $(COMPILE) -MMD -MP -c -o $@ $<

# Only evset.c sees libperf's headers (they hide some of the system's), only main.c and limits.c those of Lua.
$(BUILD)/runtime/live/evset.o: EXTRA := $(PERF_CFLAGS)
$(BUILD)/runtime/live/evset.o: | $(PERF_BUILT)
$(BUILD)/bindings/main.o $(BUILD)/bindings/limits.o: EXTRA = $(call pkg,--cflags luajit)
$(BUILD)/bindings/main.o: EXTRA += -DPROFSCRIPT_DATADIR='"$(datadir)"'
$(BUILD)/bindings/main.o: $(BUILD)/datadir
$(BUILD)/datadir: FORCE
	@mkdir -p $(@D); echo '$(datadir)' | cmp -s - $@ || echo '$(datadir)' >$@
# The text of these headers without the preprocessor's lines, which main.c gives to ffi.cdef.
$(BUILD)/ffi_headers.h: $(FFI_HEADERS) Makefile
	@mkdir -p $(@D) && { echo 'typedef uint64_t __u64; typedef uint32_t __u32; typedef int32_t __s32;'; \
		echo 'typedef uint16_t __u16;'; \
		$(CC) -E -P -include linux/perf_event.h -include linux/bpf.h -xc /dev/null | sed -n $(FFI_KERNEL:%=-e '/^% {/,/^};/p') | \
			sed 's/__u64\( [a-z_]* *: 1,\)/__u32\1/'; \
		sed '/^#/d' $(FFI_HEADERS); } >$@
$(BUILD)/ffi_headers.o: $(BUILD)/ffi_headers.h
	$(call quiet,CC){ echo 'extern const char ffi_headers[]; const char ffi_headers[] ='; \
		sed -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $<; echo ';'; } | $(COMPILE) -c -o $@ -xc -

# bindings/ and bpf/ as bytecode with its line numbers, which require() finds as luaJIT_BC_FOLDER_ROOM_NAME.
$(BUILD)/%.bc.o: %.lua
	$(call quiet,LUA)mkdir -p $(@D) && luajit -bg -t c -n $(subst /,.,$*) $< - | $(CC) -O0 -c -o $@ -xc -

# The definition files of `profscript stubs`, as the module lib.engines.stub_files.
$(BUILD)/stubs.lua: $(SCRIPTS_API)
	@mkdir -p $(@D) && luajit docs/stubs.lua >$@
$(BUILD)/stubs.bc.o: $(BUILD)/stubs.lua
	$(call quiet,LUA)luajit -bg -t c -n lib.engines.stub_files $< - | $(CC) -O0 -c -o $@ -xc -

# What browsers read, as the module lib.web.files.
$(BUILD)/web.lua: scripts/lib/web/pack.lua $(WEB_FILES)
	@mkdir -p $(@D) && luajit $^ $(D3) >$@
$(BUILD)/web.bc.o: $(BUILD)/web.lua
	$(call quiet,LUA)luajit -bg -t c -n lib.web.files $< - | $(CC) -O0 -c -o $@ -xc -

build/workloads/%: tests/workloads/%.c tests/workloads/go.h Makefile
	$(call quiet,CC)mkdir -p $(@D) && $(CC) -std=gnu11 -O2 -g -fomit-frame-pointer $(WARNINGS) $(EXTRA) -o $@ $< -pthread
# It sends events.
build/workloads/callers: EXTRA := -fno-omit-frame-pointer
build/workloads/vmclock: tests/workloads/vmstream.h runtime/wire/preamble.c runtime/wire/own_records.h
build/workloads/vmclock: EXTRA := -D_GNU_SOURCE -Iruntime runtime/wire/preamble.c

$(BUILD)/bench/%: tests/bench/%.c $(ARCHIVES) | $(PERF_BUILT)
	$(call quiet,CC)mkdir -p $(@D) && $(COMPILE) -MMD -MP -MF $@.d -MT $@ -o $@ $< $(LINKED)
$(BUILD)/unit/%: tests/unit/%.c $(ARCHIVES) | $(PERF_BUILT)
	$(call quiet,CC)mkdir -p $(@D) && $(COMPILE) -MMD -MP -MF $@.d -MT $@ -o $@ $< -lcmocka $(LINKED)
build/fuzz/fuzz/%: tests/fuzz/%.c $(ARCHIVES) | $(PERF_BUILT)
	$(call quiet,CC)mkdir -p $(@D) && $(COMPILE) -fsanitize=fuzzer -o $@ $< $(LINKED)

deps: ## install the Debian packages that are missing (as root)
	@.ci/deps $(DEPS)

demo: deps ## three seconds of live tracing (as root), or of a recording where that is forbidden
	$(SUBMAKE) ASAN= all build/workloads/pingpong
	@tests/demo.sh

test: DEPS += bpftool strace qemu-system-x86 busybox-static cpio kmod binutils libdebuginfod1 chromium groff-base python3 \
	libtraceevent1-plugin protobuf-compiler python3-jsonschema python3-prometheus-client sqlite3
test: deps ## all tests, plain and under ASan/UBSan; T='WORD...' selects by path
	$(SUBMAKE) ASAN= programs
	$(SUBMAKE) ASAN=1 programs
	@tests/run.sh $(T)
programs: all $(UNIT_TESTS) $(WORKLOADS) $(BENCHES)

bench: deps ## one line each: name ours_ns peer_ns ratio; PERF_PROF=path adds those with perf-prof
	$(SUBMAKE) ASAN= all $(WORKLOADS) $(BENCHES)
	@tests/bench.sh

lint: DEPS += clang-format cppcheck lua-check eslint node-css tidy
lint: export NODE_PATH = /usr/share/nodejs
lint: deps ## formatting, cppcheck, luacheck, what browsers read, and headers that compile alone
	@echo '  LINT    clang-format'; clang-format --dry-run -Werror $(C_FILES)
	@echo '  LINT    cppcheck'; cppcheck -q --std=c11 --language=c --error-exitcode=1 --inline-suppr -I. --enable=warning \
		$(addprefix --suppress=,uninitvar arrayIndexThenCheck ctunullpointer) \
		-D'perf_evlist__for_each_entry(l, e)=for (e = l; e;)' $(filter-out tests/unit/% bpf/% scripts/%,$(C_FILES))
	@echo '  LINT    luacheck'; luacheck -q --no-color bindings bpf scripts examples tests docs
	@echo '  LINT    eslint'; eslint -f unix scripts/lib/web
	@echo '  LINT    css'; node -e \
		'process.argv.slice(1).forEach(f => require("css").parse(require("fs").readFileSync(f, "utf8"), { source: f }))' \
		$(filter %.css,$(WEB_FILES))
	@echo '  LINT    tidy'; tidy -q -e $(filter %.html,$(WEB_FILES))
	$(SUBMAKE) ASAN= headers
headers:
	@echo '  LINT    headers'; set -e; for h in $(wildcard runtime/*.h runtime/*/*.h native/*.h bindings/*.h); do \
		$(COMPILE) -include $$h -fsyntax-only -xc /dev/null; done

fuzz: DEPS += clang libclang-rt-14-dev
fuzz: deps ## run every fuzz target for FUZZ_TIME seconds (30)
	$(SUBMAKE) FUZZ=1 WERROR= $(FUZZERS)
	@set -e; for f in $(FUZZERS); do echo "  FUZZ    $$f"; mkdir -p $$f.corpus; \
		$$f -verbosity=0 -print_final_stats=1 -max_total_time=$(or $(FUZZ_TIME),30) \
			-artifact_prefix=$$f. $$f.corpus tests/recordings tests/fuzz/corpus; done

corpus: all ## compare how profscript and perf read the recordings below DIR
	@tests/tools/corpus.py '$(or $(DIR),$(error DIR=FOLDER names a folder with recordings))'

site: DEPS += mkdocs
site: deps ## a searchable site of the documentation, in build/site
	@rm -rf build/site build/site.md && luajit docs/site.lua build && mkdocs build -q -s -f build/site.yml

api: all ## docs/api.md, from the annotations in the code
	./$(PROGRAM) --lua docs/api.lua >docs/api.md

gallery: all ## the page of --serve and all pictures at three widths, in build/gallery/index.html
	@tests/tools/gallery.sh build/gallery

man: all ## the manual pages and the shell's completion, into build/share
	@rm -rf build/share && mkdir -p build/share/man/man1 build/share/bash-completion/completions
	@set -e; for n in '' event-care $(basename $(notdir $(wildcard scripts/profilers/*.lua scripts/commands/*.lua))); do \
		env -i ./$(PROGRAM) man $$(echo "$$n" | sed 's/^bpf-/bpf:/') >build/share/man/man1/profscript$${n:+-$$n}.1; done
	@env -i ./$(PROGRAM) completion bash >build/share/bash-completion/completions/profscript

install: man ## into PREFIX (/usr/local), under DESTDIR
	install -Dm755 $(PROGRAM) '$(DESTDIR)$(PREFIX)/bin/profscript'
	@set -e; for f in $(shell find scripts -path '*/web' -prune -o '(' -name '*.lua' -o -name '*.bpf.c' ')' -print) $(wildcard examples/*.lua); do \
		install -Dm644 $$f '$(DESTDIR)$(datadir)'/$$f; done
	@cd build && find share -type f -exec install -Dm644 '{}' '$(DESTDIR)$(PREFIX)/{}' ';'

clean: ## remove everything that was built
	rm -rf build profscript

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' Makefile

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
