-- SPDX-License-Identifier: GPL-2.0-only
-- Which folder may use which: each only those before it. docs/internals.md explains the order.
local LUA_ROOMS = { 'bindings/base', 'bpf/plan', 'bindings/view', 'bindings/expr', 'bindings/print', 'bindings/bpf',
  'bpf/gen', 'bpf/stacks', 'bpf/tasks', 'bpf/groups', 'bpf/handlers', 'bpf/pointers', 'bindings/select',
  'bindings/pairs', 'bindings/options', 'bpf/ways', 'bindings/session', 'bindings/report', 'bpf/run', 'bindings/run' }
-- Those of scripts/lib. Scripts of users reach the last one only.
local LIB_ROOMS = { 'web', 'sql', 'export', 'export/formats', 'serve', 'run', 'followers', 'command', '' }
-- What depends on whether events are recorded, of threads, or a source's. Other modules leave that to these.
local ASKING = { threads = true, events = true, syscalls = true, ratios = true, kvm = true, sql = true, nested = true,
  run_queue = true, cpu_time = true, task_state = true, block_requests = true, arrivals = true, stores = true,
  waits = true, calls = true, requests = true }
local LARGE = { ['scripts/lib'] = true, ['scripts/profilers'] = true } -- where scripts and users look for names
local MAX_FILES = 30
local C_FOLDERS = { 'os', 'process', 'clocks', 'formats', 'decode', 'symbols', 'stacks', 'relations', 'probes', 'bpf',
  'recording', 'wire', 'serve', 'push', 'live', 'pull', 'session', 'sql' }

--- Lines of `grep -rno PATTERN PATH...`: file, match.
local function grep(pattern, paths)
  local found = {}
  local pipe = assert(io.popen(("grep -rEo --include='*.[chl]*' \"%s\" %s"):format(pattern, paths)))
  for line in pipe:lines() do
    local file, match = line:match '^(.-):(.*)$'
    found[#found + 1] = { file = file, match = match }
  end
  pipe:close()
  assert(#found > 0, 'grep found nothing')
  return found
end

local function places(names)
  local at = {}
  for i, name in ipairs(names) do at[name] = i end
  return at
end

--- The folders of a list of files below a path, each once.
local function check_all_are_ranked(path, at)
  local pipe = assert(io.popen(('find %s -mindepth 1 -maxdepth 1 -type d'):format(path)))
  for dir in pipe:lines() do
    assert(at[dir:gsub('^runtime/', '')], dir .. ' has no place in the order')
  end
  pipe:close()
end

describe('folders', function()
  it('of bindings/ and bpf/ use only those below them', function()
    local at = places(LUA_ROOMS)
    check_all_are_ranked('bindings', at)
    check_all_are_ranked('bpf', at)
    for _, use in ipairs(grep("require *\\(?'(bindings|bpf)\\.[a-z_0-9.]*", 'bindings bpf')) do
      local from, to = use.file:match '^(.*)/', use.match:match "'(.*)%."
      if at[from] then assert(at[to:gsub('%.', '/')] <= at[from], ('%s: %s'):format(use.file, use.match)) end
    end
  end)

  it('of bindings/ and bpf/ do not use the scripts', function()
    for _, use in ipairs(grep("require *\\(?'[a-z_0-9.]*", 'bindings bpf')) do
      assert.falsy(use.match:match "'lib%.", ('%s: %s'):format(use.file, use.match))
    end
  end)

  it('of scripts/lib use only those below them', function()
    local at = places(LIB_ROOMS)
    for _, dir in ipairs { '', '/off_cpu', '/locks', '/sched', '/net', '/files', '/disks', '/memory' } do
      at['engines' .. dir] = at['']
    end
    local pipe = assert(io.popen 'cd scripts/lib && find * -type d')
    for dir in pipe:lines() do assert(at[dir], dir .. ' has no place in the order') end
    pipe:close()
    for _, use in ipairs(grep("require *\\(?'lib\\.[a-z_0-9.]*", 'scripts/lib')) do
      local from, to = use.file:match '^scripts/lib/?(.-)/?[^/]*$', use.match:match("'lib%.?(.*)%.") or ''
      assert(at[to:gsub('%.', '/')] <= at[from], ('%s: %s'):format(use.file, use.match))
    end
  end)

  it('of scripts/ use FFI only where docs/internals.md says so', function()
    local documented, used = {}, {}
    for line in io.lines 'docs/internals.md' do
      for room in (line:match '^%- FFI: (.*)%.$' or ''):gmatch '`([%w_/]+)/`' do documented[room] = true end
    end
    for _, use in ipairs(grep("require *\\(?'ffi'", 'scripts')) do
      used[use.file:match '^scripts/lib/(.*)/' or use.file] = true
    end
    assert.same(documented, used)
  end)

  it('of profilers, commands and examples use what scripts of users can use', function()
    for _, use in ipairs(grep("require *\\(?'[a-z_0-9.]*", 'scripts/profilers scripts/commands examples')) do
      local name = use.match:match "'(.*)$"
      assert(not name:find '^bindings' and not name:find '^bpf%.' and name ~= 'ffi', use.file)
      assert(not name:find '^lib%.' or name:find '^lib%.[%w_]+$' or name:find '^lib%.engines%.', use.file)
    end
  end)

  it('of profilers and examples do not ask where they run', function()
    local pattern = '(opt|session)\\.(input|is_source|per_thread|named_threads|recorded|inherits|is_in_kernel)\\b'
      .. '|:(is_)?in_kernel\\('
    grep(pattern, 'scripts/lib') -- finds what it looks for
    local pipe = assert(io.popen(("grep -rnE '%s' scripts/profilers examples"):format(pattern)))
    local found = pipe:read '*a'
    pipe:close()
    assert.equal('', found)
  end)

  it('of scripts/lib ask where they run only in these modules', function()
    local asking = {}
    for _, use in ipairs(grep('session\\.(is_source|per_thread|named_threads|recorded|inherits)\\b|:is_in_kernel\\(',
      'scripts/lib')) do
      asking[use.file:match '([^/]+)%.lua$'] = true
    end
    assert.same(ASKING, asking)
  end)

  it('hold at most 30 files', function()
    local n = {}
    local pipe = assert(io.popen "find bindings bpf docs examples native runtime scripts -type f -name '[^.]*'")
    for path in pipe:lines() do
      local folder = path:match '^(.*)/'
      n[folder] = (n[folder] or 0) + 1
    end
    pipe:close()
    for folder, files in pairs(n) do
      assert(files <= MAX_FILES or LARGE[folder], ('%s: %d files'):format(folder, files))
    end
  end)

  it('bpf/plan decides without the kernel: it uses no FFI', function()
    for _, use in ipairs(grep("require *\\(?'[a-z_0-9.]*", 'bpf/plan')) do
      assert(use.match:match "'bpf%.plan%." or use.match == "require 'bindings.base.nearest",
        ('%s: %s'):format(use.file, use.match))
    end
  end)

  it('of bindings/ and bpf/ leave the fields of a run to run.lua', function()
    local writes = grep("\\brun\\.([a-z_.]+, run\\.)*[a-z_.]+ = ", 'bindings bpf scripts')
    for _, write in ipairs(writes) do
      assert(write.file == 'bindings/run/run.lua', ('%s: %s'):format(write.file, write.match))
    end
  end)

  it('of runtime/ use only those below them', function()
    local at = places(C_FOLDERS)
    check_all_are_ranked('runtime', at)
    for _, use in ipairs(grep('#include .[a-z_0-9/]*', 'runtime')) do
      local from, to = use.file:match '^runtime/([a-z]+)/', use.match:match '"([a-z]+)/'
      if to and from then assert(at[to] and at[to] <= at[from], ('%s: %s'):format(use.file, use.match)) end
      assert(from or not to, ('%s, which all folders use: %s'):format(use.file, use.match))
    end
  end)

  it('in C do not use Lua', function()
    for _, use in ipairs(grep('#include .[a-z_0-9/]*', 'runtime native')) do
      assert.falsy(use.match:match '[<"]l?u?a?[ux]?lib?$' or use.match:match '[<"]lua', use.file)
    end
  end)

  it('native/ does not know runtime/', function()
    for _, use in ipairs(grep('#include .[a-z_0-9/]*', 'native')) do
      assert.falsy(use.match:match '/' and use.match:match '"', ('%s: %s'):format(use.file, use.match))
    end
  end)
end)
