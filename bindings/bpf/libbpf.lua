-- SPDX-License-Identifier: GPL-2.0-only
--- libbpf: loads the library when a run needs it, opens object files and reports load errors. Scripts use it through
--- bindings/bpf/program.lua. Everything else works without libbpf.
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local libc = require 'bindings.base.libc'
local sys = require 'bindings.base.sys'
local text = require 'bindings.base.text'

ffi.cdef [[
struct bpf_object; struct bpf_program; struct bpf_map; struct bpf_link; struct bpf_insn; struct btf;
struct bpf_link_create_opts;

int libbpf_set_print(int (*print)(int level, const char *fmt, va_list args));
int libbpf_num_possible_cpus(void);

struct bpf_object_open_opts { size_t sz; const char *object_name; };
struct bpf_object *bpf_object__open_mem(const void *buf, size_t size, const struct bpf_object_open_opts *);
int bpf_object__load(struct bpf_object *);
void bpf_object__close(struct bpf_object *);
struct btf *bpf_object__btf(const struct bpf_object *);
struct bpf_program *bpf_object__next_program(const struct bpf_object *, struct bpf_program *);
struct bpf_map *bpf_object__next_map(const struct bpf_object *, const struct bpf_map *);

const char *bpf_program__name(const struct bpf_program *);
const char *bpf_program__section_name(const struct bpf_program *);
int bpf_program__fd(const struct bpf_program *);
struct bpf_link *bpf_program__attach(const struct bpf_program *);
struct bpf_link *bpf_program__attach_perf_event(const struct bpf_program *, int fd);
struct bpf_link *bpf_program__attach_tracepoint(const struct bpf_program *, const char *category, const char *name);
struct bpf_link *bpf_program__attach_raw_tracepoint(const struct bpf_program *, const char *name);
struct bpf_link *bpf_program__attach_kprobe(const struct bpf_program *, bool retprobe, const char *name);
struct bpf_uprobe_opts {
  size_t sz, ref_ctr_offset; uint64_t bpf_cookie; bool retprobe; const char *func_name; size_t rest;
};
struct bpf_link *bpf_program__attach_uprobe_opts(const struct bpf_program *, int pid, const char *path, size_t offset,
  const struct bpf_uprobe_opts *);
struct bpf_link *bpf_program__attach_usdt(const struct bpf_program *, int pid, const char *path, const char *provider,
  const char *name, const void *opts);
struct bpf_ksyscall_opts { size_t sz; uint64_t bpf_cookie; bool retprobe; size_t rest; };
struct bpf_link *bpf_program__attach_ksyscall(const struct bpf_program *, const char *name,
  const struct bpf_ksyscall_opts *);
int bpf_link__fd(const struct bpf_link *);
int bpf_link__destroy(struct bpf_link *);
int bpf_iter_create(int link);
int bpf_btf_get_next_id(uint32_t start, uint32_t *next);
int bpf_btf_get_fd_by_id(uint32_t id);
int bpf_obj_get_info_by_fd(int fd, void *info, uint32_t *size);
int bpf_link_create(int program, int target, int type, const struct bpf_link_create_opts *);

struct bpf_test_run_opts {
  size_t sz;
  const void *data_in; void *data_out; uint32_t data_size_in, data_size_out;
  const void *ctx_in; void *ctx_out; uint32_t ctx_size_in, ctx_size_out;
  uint32_t retval; int repeat; uint32_t duration, flags, cpu, batch_size;
};
int bpf_prog_test_run_opts(int program, struct bpf_test_run_opts *);

const char *bpf_map__name(const struct bpf_map *);
int bpf_map__fd(const struct bpf_map *);
int bpf_map__type(const struct bpf_map *);
uint32_t bpf_map__key_size(const struct bpf_map *);
uint32_t bpf_map__value_size(const struct bpf_map *);
uint32_t bpf_map__max_entries(const struct bpf_map *);
uint32_t bpf_map__btf_key_type_id(const struct bpf_map *);
uint32_t bpf_map__btf_value_type_id(const struct bpf_map *);
int bpf_map__set_key_size(struct bpf_map *, uint32_t);
int bpf_map__set_value_size(struct bpf_map *, uint32_t);
int bpf_map__set_max_entries(struct bpf_map *, uint32_t);
bool bpf_map__is_internal(const struct bpf_map *);
void *bpf_map__initial_value(struct bpf_map *, size_t *size);
int bpf_map_lookup_elem(int fd, const void *key, void *value);
int bpf_map_update_elem(int fd, const void *key, const void *value, uint64_t flags);
int bpf_map_delete_elem(int fd, const void *key);
int bpf_map_lookup_and_delete_batch(int fd, void *in_batch, void *out_batch, void *keys, void *values,
  uint32_t *count, const void *opts);
int bpf_map_get_next_key(int fd, const void *key, void *next);

struct bpf_prog_load_opts {
  size_t sz; int attempts, expected_attach_type; uint32_t prog_btf_fd, prog_flags, prog_ifindex, kern_version,
  attach_btf_id, attach_prog_fd, attach_btf_obj_fd; const int *fd_array;
  const void *func_info; uint32_t func_info_cnt, func_info_rec_size;
  const void *line_info; uint32_t line_info_cnt, line_info_rec_size;
  uint32_t log_level, log_size; char *log_buf;
};
int bpf_prog_load(int type, const char *name, const char *license, const struct bpf_insn *, size_t count,
  const struct bpf_prog_load_opts *);
struct bpf_map_create_opts {
  size_t sz; uint32_t btf_fd, btf_key_type_id, btf_value_type_id, btf_vmlinux_value_type_id, inner_map_fd, map_flags;
  uint64_t map_extra; uint32_t numa_node, map_ifindex; size_t rest;
};
int bpf_map_create(int type, const char *name, uint32_t key_size, uint32_t value_size, uint32_t max_entries,
  const struct bpf_map_create_opts *opts);
int bpf_raw_tracepoint_open(const char *name, int program);

const void *btf__raw_data(const struct btf *, uint32_t *size);
]]

local C = ffi.C
local libbpf = {}

local SONAME = 'libbpf.so.1'
local loaded

--- Loads the library on the first call.
---@return ffi.namespace*? lib, string? message
function libbpf.open()
  if loaded then return loaded end
  local ok, lib = pcall(ffi.load, SONAME)
  if not ok then return nil, ('%s is not installed (Debian: libbpf1)'):format(SONAME) end
  lib.libbpf_set_print(C.bpf_log_print)
  loaded = lib
  return lib
end

--- Returns the object file of a built-in program.
---@param name string NAME of bpf/NAME.bpf.c
---@return string? bytes, string? message
function libbpf.built_in(name)
  local file = ffi.cast('const struct bpf_object_file *', C.bpf_object_files)
  while file.name ~= nil do
    if ffi.string(file.name) == name then return ffi.string(file.start, file['end'] - file.start) end
    file = file + 1
  end
  return nil, "profscript was built without clang or libbpf's headers (Debian: clang, libbpf-dev)"
end

--- Takes the log of libbpf and the kernel's verifier as lines, without libbpf's decoration.
local function log_lines()
  local lines = {}
  for line in ffi.string(C.bpf_log_take()):gmatch '[^\n]+' do
    line = text.safe(line:gsub('^libbpf: ', ''))
    if not line:match '^%-%- ' then lines[#lines + 1] = line end
  end
  return lines
end

local NOISE = {
  '^permission error while', '^Failed to bump', '^Error in bpf_object__probe_loading', '^processed %d+ insns',
  '^failed to load', '^BPF program load failed',
}

local function is_noise(line)
  for _, pattern in ipairs(NOISE) do
    if line:match(pattern) or line:match('^prog .-: ' .. pattern:sub(2)) then return true end
  end
  return false
end

local MAX_LOG_LINES = 6

--- Describes why loading failed: libbpf's message, or the end of the verifier's log with the source line that it
--- rejected.
---@param name string
---@param code integer a positive errno
---@param sections table<string, string> SEC() by program
---@param source? { text: string, first: integer } source text and its first line number
---@return string
function libbpf.load_error(name, code, sections, source)
  local lines, at, program = {}, nil, nil
  for _, line in ipairs(log_lines()) do
    local quoted = line:match '^; (.*)$'
    program = program or line:match "^prog '(.-)': BPF program load failed"
    if quoted then at = quoted end
    if not is_noise(line) then lines[#lines + 1] = line end
  end
  local what = program and ("program '%s' (%s)"):format(program, sections[program]) or 'the programs'
  local message = { ('%s: the kernel rejects %s: %s'):format(name, what, sys.strerror(code)) }
  if code == libc.EPERM then
    message[1] = message[1] .. ' (needs root or CAP_BPF and CAP_PERFMON; the kernel may be configured to forbid it)'
  end
  if at then
    local code_text, where = at:match '^(.-)%s*@ (%S+:%d+)$'
    code_text = code_text or at
    local number = source and source.first or 1
    for line in ((not where and source) and source.text or ''):gmatch '([^\n]*)\n?' do
      if line:find(code_text, 1, true) then
        where = ('%s:%d'):format(name, number)
        break
      end
      number = number + 1
    end
    message[1] = ('%s: at %s: %s'):format(message[1], where or 'line', code_text)
  end
  for i = math.max(1, #lines - MAX_LOG_LINES + 1), #lines do
    message[#message + 1] = '  ' .. lines[i]
  end
  return table.concat(message, '\n')
end

--- Takes the log and returns its last line, for failures other than loading.
---@return string?
function libbpf.last_message()
  local lines = log_lines()
  return lines[#lines]
end

--- Collects the results of next(object, previous) in a list.
local function collect(next, object)
  local list, one = {}, nil
  while true do
    one = next(object, one)
    if one == nil then return list end
    list[#list + 1] = one
  end
end

--- Opens an object file without loading it.
---@param name string for messages
---@param bytes string
---@return ffi.cdata* object struct bpf_object *, closed when it is garbage collected
---@return table<string, ffi.cdata*> programs
---@return table<string, ffi.cdata*> maps
function libbpf.parse(name, bytes)
  local lib, missing = libbpf.open()
  if not lib then failure.unavailable('%s: %s', name, missing) end
  C.bpf_log_take()
  local opts = ffi.new('struct bpf_object_open_opts', { object_name = name })
  opts.sz = ffi.sizeof(opts)
  local object = lib.bpf_object__open_mem(bytes, #bytes, opts)
  if object == nil then
    local errno = ffi.errno()
    failure.raise('%s: not a BPF object that libbpf can read: %s', name, libbpf.last_message() or sys.strerror(errno))
  end
  object = ffi.gc(object, lib.bpf_object__close)
  local programs, maps = {}, {}
  for _, program in ipairs(collect(lib.bpf_object__next_program, object)) do
    programs[ffi.string(lib.bpf_program__name(program))] = program
  end
  for _, map in ipairs(collect(lib.bpf_object__next_map, object)) do
    maps[ffi.string(lib.bpf_map__name(map))] = map
  end
  return object, programs, maps
end

return libbpf
