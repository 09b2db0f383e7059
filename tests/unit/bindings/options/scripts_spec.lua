-- SPDX-License-Identifier: GPL-2.0-only
local scripts = require 'bindings.options.scripts'

local root -- a separate directory for each test
local modes -- file mode by path, 0644 if not set
local environment

--- stat and readdir with Lua's functions: a file can be opened, a directory can be listed.
local sys = {
  getenv = function(name) return environment[name] end,
  readdir = function(path)
    local names = {}
    local pipe = assert(io.popen(("ls -A '%s' 2>/dev/null"):format(path)))
    for name in pipe:lines() do
      names[#names + 1] = name
    end
    pipe:close()
    return names
  end,
  stat = function(path)
    local file = io.open(path)
    if not file then return nil, 'No such file or directory' end
    local isdir = file:read(0) == nil and select(3, file:read(1)) == 21
    file:close()
    return { mode = modes[path] or tonumber('644', 8), uid = 0, isdir = isdir }
  end,
}

local function write(path, text)
  path = root .. '/' .. path
  os.execute(("mkdir -p '%s'"):format(path:match '(.*)/'))
  local file = assert(io.open(path, 'w'))
  file:write(text)
  file:close()
  return path
end

--- A valid profiler.
local function good(summary)
  return ("return { summary = '%s', start = function() return {} end }\n"):format(summary or 'S')
end

local function loaded()
  return scripts.new(sys, root .. '/data')
end

--- Loads a text as a script: returns its message without the path.
local function refusal(text)
  local path = write('x.lua', text)
  local script, message = loaded():load(path)
  assert.is_nil(script)
  assert.equal(path, message:sub(1, #path))
  return message:sub(#path + 1)
end

describe('scripts', function()
  before_each(function()
    root = os.tmpname()
    os.remove(root)
    modes = {}
    environment = { PROFSCRIPT_PATH = ('%s/a::%s/b'):format(root, root), HOME = root .. '/home' }
  end)
  after_each(function() os.execute(("rm -rf '%s'"):format(root)) end)

  it('are found by name, name.lua and path', function()
    local path = write('data/scripts/profilers/wakeups.lua', good 'Count')
    for _, given in ipairs { 'wakeups', 'wakeups.lua', path, (path:gsub('%.lua$', '')) } do
      local script = assert(loaded():load(given))
      assert.equal('wakeups', script.name)
      assert.equal(path, script.path)
      assert.equal('Count', script.profiler.summary)
      assert.truthy(script.spec.long.interval)
      assert.is_true(script.is_shipped)
    end
  end)

  it('come from the user\'s folder if the program has none', function()
    write('a/wakeups.lua', good 'Count')
    assert.is_false(assert(loaded():load 'wakeups').is_shipped)
    local path = write('data/scripts2/wakeups.lua', good 'Count')
    assert.is_false(assert(loaded():load(path)).is_shipped)
  end)

  it('are searched in the path, the configuration and the shipped directory', function()
    write('data/scripts/profilers/top.lua', good())
    assert.equal(root .. '/data/scripts/profilers/top.lua', loaded():find 'top')
    write('home/.config/profscript/top.lua', good())
    assert.equal(root .. '/home/.config/profscript/top.lua', loaded():find 'top')
    environment.XDG_CONFIG_HOME = root .. '/config'
    assert.equal(root .. '/data/scripts/profilers/top.lua', loaded():find 'top')
    write('config/profscript/top.lua', good())
    assert.equal(root .. '/config/profscript/top.lua', loaded():find 'top')
    write('b/top.lua', good())
    assert.equal(root .. '/b/top.lua', loaded():find 'top')
    write('a/top.lua', good())
    assert.equal(root .. '/a/top.lua', loaded():find 'top')
  end)

  it('are suggested for similar names', function()
    write('a/wakeups.lua', good())
    local path, message = loaded():find 'wakeup'
    assert.is_nil(path)
    assert.equal("profscript: no such profiler 'wakeup'; did you mean 'wakeups'?\ntry 'profscript -h'", message)
    path, message = loaded():find './no/such'
    assert.is_nil(path)
    assert.equal("profscript: no such file './no/such'", message)
    path, message = loaded():find 'wakeup.lua'
    assert.is_nil(path)
    assert.equal("profscript: no such file 'wakeup.lua'; did you mean 'wakeups'?", message)
  end)

  it('may have another name, unless a file has it', function()
    local lost = write('a/event-lost.lua', good 'Lost')
    assert.equal(lost, loaded():find 'event-care')
    assert.equal(lost, loaded():names()['event-care'])
    assert.same({ { name = 'event-lost', also = 'event-care', path = lost, summary = 'Lost' } }, loaded():list())
    local _, message = loaded():find 'event-car'
    assert.matches("did you mean 'event%-care'", message)
    local own = write('a/event-care.lua', good 'Mine')
    assert.equal(own, loaded():find 'event-care')
    assert.equal(own, loaded():names()['event-care'])
    assert.same({ 'event-care', 'event-lost' }, { loaded():list()[1].name, loaded():list()[2].name })
    assert.is_nil(loaded():list()[2].also)
  end)

  it('are listed with their summaries, broken ones with the reason', function()
    write('data/scripts/profilers/top.lua', good 'Shipped')
    write('data/scripts/profilers/trace.lua', good 'Print events')
    local top = write('a/top.lua', good 'Mine')
    local broken = write('b/broken.lua', 'return {')
    write('b/README', 'no script')
    write('b/.hidden.lua', 'no script')
    assert.same({
      { name = 'broken', path = broken, error = broken .. ":1: unexpected symbol near '<eof>'" },
      { name = 'top', path = top, summary = 'Mine' },
      { name = 'trace', path = root .. '/data/scripts/profilers/trace.lua', summary = 'Print events' },
    }, loaded():list())
  end)

  it('report a syntax error in one line, with the whole path', function()
    assert.equal(":2: '=' expected near 'x'", refusal 'local a\nlocl x = 1\n')
    local path = write(('deep/'):rep(30) .. 'x.lua', 'return {\n')
    local _, message = loaded():load(path)
    assert.equal(path .. ":2: unexpected symbol near '<eof>'", message)
    path = write(('deep/'):rep(30) .. 'y.lua', 'error("boom")\n')
    _, message = loaded():load(path)
    assert.equal(path .. ':1: boom', message)
  end)

  it('report an error while loading in one line', function()
    assert.equal(":1: module 'lib.nosuch' not found", refusal "local x = require 'lib.nosuch'\nreturn x\n")
    assert.equal(':1: error() was called with a table, not with text', refusal 'error({})')
  end)

  it('may begin with #!', function()
    local path = write('x.lua', '#!/usr/bin/env profscript\n' .. good())
    assert(loaded():load(path))
    assert.equal(':2: boom', refusal '#!/usr/bin/env profscript\nerror("boom")\n')
  end)

  it('may not be bytecode', function()
    assert.equal(': is bytecode, not Lua source', refusal(string.dump(function() end)))
  end)

  it('neither set nor read undeclared globals', function()
    assert.equal(":2: assignment to undeclared global 'count'; make it local", refusal 'local a = 1\ncount = a\n')
    assert.equal(":1: undeclared global 'pirnt'; did you mean 'print'?", refusal 'pirnt(1)\n')
    assert.equal(":2: assignment to undeclared global 'total'; make it local",
      refusal 'return { summary = "S", start = function()\n  total = 1\nend }\n')
    local path = write('x.lua', 'return { summary = "S", start = function()\n  return _G["total"]\nend }\n')
    local ok, message = pcall(assert(loaded():load(path)).profiler.start)
    assert.is_false(ok)
    assert.equal(path .. ":2: undeclared global 'total'", message)
  end)

  it('do not see changes of the standard globals by others', function()
    local first = write('x.lua', 'print = nil\nmath = 1\n' .. good())
    assert(loaded():load(first))
    local second = write('y.lua', 'assert(type(print) == "function" and math.huge)\n' .. good())
    assert(loaded():load(second))
  end)

  it('return a table with valid keys and types', function()
    assert.equal(': the file returns nothing, not a table with summary and start', refusal '')
    assert.equal(": missing 'start'", refusal 'return { summary = "S" }')
    assert.equal(": missing 'summary'", refusal 'return { start = function() end }')
    assert.equal(": unknown key 'sumary'; did you mean 'summary'?", refusal 'return { sumary = "S" }')
    assert.equal(": unknown key '1'", refusal 'return { "S" }')
    assert.equal(": 'summary' is a number, not a string", refusal 'return { summary = 1 }')
    assert.equal(": 'start' is a table, not a function", refusal 'return { summary = "S", start = {} }')
    assert.equal(": attributes: unknown event attribute 'kye'; did you mean 'key'?",
      refusal "return { summary = 'S', attributes = { 'kye' }, start = print }")
    assert.equal(": metrics: row.hits is 'count', not one of counter, gauge, histogram, label, none; "
      .. "did you mean 'counter'?",
      refusal "return { summary = 'S', metrics = { row = { hits = 'count' } }, start = print }")
    assert.equal(": metrics: '1' is not the name of a record with a table of its fields",
      refusal "return { summary = 'S', metrics = { 'hits' }, start = print }")
    assert.equal(": 'summary' is more than one line",
      refusal 'return { summary = "S\\nT", start = function() end }')
    assert.equal(": example 1 is not a table { 'command', 'description' }",
      refusal 'return { summary = "S", examples = { "x" }, start = function() end }')
    assert.equal(": option 'top': unknown type 'intger'; did you mean 'integer'?",
      refusal 'return { summary = "S", options = { top = { type = "intger", help = "h" } }, start = function() end }')
  end)

  it('that anyone may write are refused', function()
    local path = write('x.lua', good())
    modes[path] = tonumber('100666', 8)
    local script, message = loaded():load(path)
    assert.is_nil(script)
    assert.equal(("%s: refused because it is world-writable; run 'chmod o-w %s'"):format(path, path), message)
    modes[path] = tonumber('100664', 8)
    assert(loaded():load(path))
  end)

  it('are not directories', function()
    os.execute(("mkdir -p '%s/a/dir.lua'"):format(root))
    local script, message = loaded():load 'dir'
    assert.is_nil(script)
    assert.equal(root .. '/a/dir.lua: is a directory', message)
  end)
end)
