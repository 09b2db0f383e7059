-- SPDX-License-Identifier: GPL-2.0-only
-- Which folder may use which: each only those before it. docs/internals.md explains the order.
local LUA_ROOMS = { 'bindings/base', 'bpf/plan', 'bindings/view', 'bindings/expr', 'bindings/print', 'bindings/bpf',
  'bpf/gen', 'bindings/select', 'bindings/pairs', 'bindings/options', 'bpf/ways', 'bindings/session',
  'bindings/run', 'bindings/command' }
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

  it('bpf/plan decides without the kernel: it uses no FFI', function()
    for _, use in ipairs(grep("require *\\(?'[a-z_0-9.]*", 'bpf/plan')) do
      assert(use.match:match "'bpf%.plan%." or use.match == "require 'bindings.base.nearest",
        ('%s: %s'):format(use.file, use.match))
    end
  end)

  it('of bindings/ leave the fields of a run to run.lua', function()
    local writes = grep("\\brun\\.([a-z_.]+, run\\.)*[a-z_.]+ = ", 'bindings scripts')
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
