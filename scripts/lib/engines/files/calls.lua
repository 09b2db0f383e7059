-- SPDX-License-Identifier: GPL-2.0-only
--- Operations on files, from the system calls that make them.
local array = require 'lib.array'
local bit = require 'bit'
local open_files = require 'lib.engines.files.open_files'
local threads = require 'lib.threads'

local calls = {}

local band, tonumber = bit.band, tonumber
local MAX = threads.MAX
local MAX_CALLS = 1024 -- numbers are less
local CWD = -100 -- in place of a descriptor
local O_CLOEXEC, F_DUPFD, F_DUPFD_CLOEXEC, CLOSE_RANGE_CLOEXEC = 0x80000, 0, 1030, 4
local FAILED, RESTARTS_FROM, RESTARTS_TO = -4095, -516, -512 -- no program sees the latter: the call begins again

-- Operations, then other kinds of calls, in the order of CALLS.
local READ, WRITE, OPEN, CLOSE, LAST = 1, 2, 3, 4, 7
local OPENAT, OPENAT2, COPY, SEND, DUP3, FCNTL, RANGE, FCHDIR, MAKE = 8, 9, 10, 11, 13, 14, 15, 16, 17
local NAMES = { 'read', 'write', 'open', 'close', 'sync', 'list', 'resize' }
local CALLS = {
  { 'read', 'pread64', 'readv', 'preadv', 'preadv2' }, { 'write', 'pwrite64', 'writev', 'pwritev', 'pwritev2' },
  { 'open', 'creat' }, { 'close' }, { 'fsync', 'fdatasync', 'sync_file_range', 'syncfs' },
  { 'getdents', 'getdents64' }, { 'ftruncate', 'fallocate' },
  { 'openat' }, { 'openat2' }, { 'copy_file_range', 'splice' }, { 'sendfile' }, { 'dup', 'dup2' }, { 'dup3' },
  { 'fcntl' }, { 'close_range' }, { 'fchdir' },
}
local OTHER_FILES = { -- calls that return descriptors, and how /proc names these
  socket = 'socket', accept = 'socket', accept4 = 'socket', eventfd2 = 'anon_inode:[eventfd]',
  epoll_create1 = 'anon_inode:[eventpoll]', timerfd_create = 'anon_inode:[timerfd]',
  signalfd4 = 'anon_inode:[signalfd]', inotify_init1 = 'anon_inode:inotify',
  perf_event_open = 'anon_inode:[perf_event]',
}
local HALF = 2 ^ 32 -- both descriptors of a pipe are one number
local PIPES = { pipe = 'fildes', pipe2 = 'fildes', socketpair = 'usockvec' } -- calls that make two
local NAMED = { 'open', 'openat', 'openat2' } -- their `filename` is read when they end

--- Returns the name of an operation.
---@param operation integer
---@return string
function calls.name(operation) return NAMES[operation] end

--- Returns the kind of each call by its number, 0 for others, and the filters of both events.
---@param ended table<string, boolean> calls that other events end: they are not in the second one
local function selection(session, ended)
  local kinds, by_name, starts, ends = array.new(MAX_CALLS), {}, {}, {}
  for kind, names in ipairs(CALLS) do
    for _, name in ipairs(names) do by_name[name] = kind end
  end
  for name in pairs(OTHER_FILES) do by_name[name] = MAKE end
  for nr = 0, MAX_CALLS - 1 do
    local name = session.syscall_name(nr)
    local kind = by_name[name]
    if kind then
      kinds[nr] = kind
      starts[#starts + 1] = 'id == ' .. nr
      if not ended[name] then ends[#ends + 1] = starts[#starts] end
    end
  end
  return kinds, table.concat(starts, ' || '), table.concat(ends, ' || ')
end

--- What threads do in their calls, by thread.
local function new_state()
  return { since = array.new(MAX), pids = array.new(MAX), file = array.new(MAX), source = array.new(MAX),
    fd = array.new(MAX), folder = array.new(MAX), closes = array.new(MAX), known_from = -1 }
end

--- Returns the handler of calls that begin.
local function enter_handler(state, kinds, files)
  local since, pids, file, source = state.since, state.pids, state.file, state.source
  local fds, folder, closes = state.fd, state.folder, state.closes
  return function(ev)
    local tid, pid, kind, args = ev._tid, ev._pid, kinds[ev.id], ev.args
    if tid <= 0 or tid >= MAX then return end
    local fd = tonumber(args[0])
    since[tid], pids[tid] = ev._time + 1, pid -- 0: no call
    if kind == OPEN then
      folder[tid], closes[tid] = CWD, band(tonumber(args[1]), O_CLOEXEC)
    elseif kind <= LAST then
      file[tid] = files:at(pid, fd)
      if kind == CLOSE then files:close(pid, fd) end
    elseif kind == OPENAT then
      folder[tid], closes[tid] = band(fd, -1), band(tonumber(args[2]), O_CLOEXEC)
    elseif kind == OPENAT2 then
      folder[tid], closes[tid] = band(fd, -1), 1 -- its flags are in memory
    elseif kind == SEND then
      file[tid], source[tid] = files:at(pid, fd), files:at(pid, tonumber(args[1]))
    elseif kind == COPY then
      file[tid], source[tid] = files:at(pid, tonumber(args[2])), files:at(pid, fd)
    elseif kind == RANGE then
      files:close_range(pid, fd, tonumber(args[1]), band(tonumber(args[2]), CLOSE_RANGE_CLOEXEC) ~= 0)
    else
      fds[tid], closes[tid] = fd, tonumber(args[kind == FCNTL and 1 or 2])
    end
  end
end

--- A call that makes a copy of a descriptor has ended.
local function duplicated(state, files, tid, kind, ret)
  local how = state.closes[tid]
  if ret < 0 or kind == FCNTL and how ~= F_DUPFD and how ~= F_DUPFD_CLOEXEC then return end
  local is_closed = kind == DUP3 and band(how, O_CLOEXEC) ~= 0 or kind == FCNTL and how == F_DUPFD_CLOEXEC
  files:dup(state.pids[tid], state.fd[tid], ret, is_closed)
end

--- Returns the function that ends a call: it returns when that began, nil: that is not known.
local function ender(state)
  local since = state.since
  return function(tid)
    if tid <= 0 or tid >= MAX then return end
    local began = since[tid] - 1
    since[tid] = 0
    if began > state.known_from then return began end
  end
end

--- Returns the handler of calls that end.
local function exit_handler(state, kinds, files, add, name_of)
  local began_at, pids, file, source = ender(state), state.pids, state.file, state.source
  return function(ev)
    local tid, ret, kind = ev._tid, ev.ret, kinds[ev.id]
    local began = began_at(tid)
    if not began or ret >= RESTARTS_FROM and ret <= RESTARTS_TO then return end
    local ns = ev._time - began
    if kind <= LAST and kind ~= OPEN then
      add(ev, pids[tid], file[tid], kind, ns, ret)
    elseif kind == COPY or kind == SEND then
      add(ev, pids[tid], source[tid], READ, ns, ret)
      add(ev, pids[tid], file[tid], WRITE, ns, ret)
    elseif kind == OPEN or kind == OPENAT or kind == OPENAT2 then
      add(ev, pids[tid], files:open(pids[tid], ret, nil, CWD, state.closes[tid] ~= 0), OPEN, ns, ret)
    elseif kind == FCHDIR and ret == 0 then
      files:chdir(pids[tid], nil, state.fd[tid])
    elseif kind == MAKE and ret >= 0 then
      files:put(pids[tid], ret, OTHER_FILES[name_of(ev.id)])
    elseif kind < RANGE then
      duplicated(state, files, tid, kind, ret)
    end
  end
end

--- Returns the handler of calls that have named a file.
local function named_handler(state, files, add, name_of)
  local began_at = ender(state)
  return function(ev)
    local tid, ret = ev._tid, ev.ret
    local began = began_at(tid)
    if not began then return end
    local pid = state.pids[tid]
    add(ev, pid, files:open(pid, ret, name_of(ev), state.folder[tid], state.closes[tid] ~= 0), OPEN,
      ev._time - began, ret)
  end
end

--- Returns the event that ends a call; nil: it lacks what the program's pointer leads to.
---@param field string that a recording has then
local function with_memory(settings, name, field)
  name = 'syscalls:sys_exit_' .. name
  if settings.opt.cgroups or not settings.session.supports(name) then return end
  local event = settings.session.event { name }
  return (not settings.opt.input or event.fields[field]) and event or nil
end

--- Returns the handler of a call that makes two descriptors.
local function pipe_handler(files, ends_of, name)
  local what = name == 'socketpair' and 'socket' or 'pipe'
  return function(ev)
    local ends = ev.ret == 0 and ends_of(ev)
    if not ends then return end
    files:put(ev._pid, ends % HALF, what)
    files:put(ev._pid, math.floor(ends / HALF), what)
  end
end

--- Adds the handlers of what processes do to their files without these calls.
local function follow_processes(handlers, settings, state, files)
  local session = settings.session
  local pids = state.pids
  handlers.fork = function(ev)
    local parent = ev._parent
    if parent <= 0 or parent >= MAX then return end
    files:fork(ev._pid, pids[parent] > 0 and pids[parent] or parent)
    if ev._tid > 0 and ev._tid < MAX then pids[ev._tid] = ev._pid end
  end
  handlers.exit = function(ev)
    local tid = ev._tid
    if tid > 0 and tid < MAX then state.since[tid], pids[tid] = 0, 0 end
    if tid == ev._pid then files:exit(tid) end
  end
  local chdir = with_memory(settings, 'chdir', '__filename_val')
  if chdir then
    handlers[chdir] = function(ev)
      if ev.ret == 0 then files:chdir(ev._pid, settings.name_of(ev)) end
    end
  end
  for name, pointer in pairs(PIPES) do
    local event = with_memory(settings, name, ('__%s_u64'):format(pointer))
    if event then handlers[event] = pipe_handler(files, settings.ends_of[pointer], name) end
  end
  local exec = session.event { 'sched:sched_process_exec' }
  if exec then handlers[exec] = function(ev) files:exec(ev._pid) end end
end

---@class FileCallSettings
---@field opt table
---@field session Session
---@field add FileAdder
---@field name_of fun(ev: Ev): string reads the `filename` of a call
---@field ends_of table<string, fun(ev: Ev): number?> functions that read two descriptors, by the name of the pointer

--- Returns the handlers that find the operations.
---@param settings FileCallSettings
---@return table handlers
---@return OpenFiles
function calls.follow(settings)
  local opt, session, add = settings.opt, settings.session, settings.add
  local files, state, handlers, ended = open_files.new(not opt.input, opt.all), new_state(), {}, {}
  local named = {}
  for _, name in ipairs(NAMED) do
    local event = with_memory(settings, name, '__filename_val')
    if event then named[#named + 1], ended[name] = event, true end
  end
  local kinds, starts, ends = selection(session, ended)
  local function failing(ev, pid, id, operation, ns, ret)
    if id ~= open_files.NONE then add(ev, pid, id, operation, ns, ret, ret < 0 and ret >= FAILED) end
  end
  local enter, exit = session.event { 'raw_syscalls:sys_enter' }, session.event { 'raw_syscalls:sys_exit' }
  enter:set { filter = starts }
  exit:set { filter = ends }
  handlers[enter] = enter_handler(state, kinds, files)
  handlers[exit] = exit_handler(state, kinds, files, failing, session.syscall_name)
  for _, event in ipairs(named) do handlers[event] = named_handler(state, files, failing, settings.name_of) end
  follow_processes(handlers, settings, state, files)
  function handlers.lost(gap)
    state.known_from = math.max(state.known_from, gap.to)
    files:forget()
  end
  if session.named_threads and not opt.cgroups then
    for _, pid in ipairs(opt.pids or {}) do files:look_up(pid) end
    if not (opt.pids or opt.tids) then
      function handlers.targets(tids) files:launched(tids[1]) end
    end
  else
    files:look_up_all()
  end
  return handlers, files
end

return calls
