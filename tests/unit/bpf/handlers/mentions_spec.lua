-- SPDX-License-Identifier: GPL-2.0-only
local facade = require 'bindings.base.facade'
local mentions = require 'bpf.handlers.mentions'

--- Returns whether what can be reached may use the name `secret`.
local function found(root)
  return mentions.any({ root }, function(text, is_code) return text == 'secret' or is_code and text == 'code' end)
end

--- Returns what a chunk returns. chunk: the name of its file; env: its globals.
local function compile(text, chunk, env)
  return setfenv(assert(loadstring(text, chunk or '@scripts/some.lua')), env or {})()
end

describe('mentions', function()
  it('finds constants of functions and of those inside them', function()
    assert.is_true(found(compile 'return function(ev) return ev.secret end'))
    assert.is_true(found(compile 'return function() return function(ev) return { ev["secret"] } end end'))
    assert.is_true(found(compile 'return function() return { "a", "secret" } end'))
    assert.is_true(found(compile 'return function() return { secret = 1 } end'))
    assert.is_false(found(compile 'return function(ev) return ev.secrets, 1, nil, true, ev.public end'))
  end)

  it('finds what functions reach', function()
    assert.is_true(found(compile 'local name = "secret" return function(ev) return ev[name] end'))
    assert.is_true(found(compile 'local list = { { 1, { "secret" } } } return function(ev) return ev[list[1]] end'))
    assert.is_true(found(compile([[
      local class = {} class.__index = class
      function class.read(_, ev) return ev.secret end
      local object = setmetatable({}, class)
      return function(ev) return object:read(ev) end]], nil, { setmetatable = setmetatable })))
    local env = {}
    env.helper = compile('return function(ev) return ev.secret end', nil, env)
    assert.is_true(found(compile('return function(ev) return helper(ev) end', nil, env)))
    local cycle = {}
    cycle.self = cycle
    assert.is_false(found(cycle))
  end)

  it('tells code from tables', function()
    assert.is_true(found(compile 'return function(ev) return ev.code end'))
    assert.is_false(found { code = 'code' })
  end)

  it("leaves out the host's own code and objects, but not the script's functions in them", function()
    local host = compile('local f = ... return function(ev) return ev.secret end', '@bindings/some.lua')
    assert.is_false(found(compile('local host = host return function(ev) return host(ev) end', nil, { host = host })))
    local Class = { secret = true }
    Class.__index = Class
    local object = setmetatable({ name = 'secret' }, Class)
    local public = facade.class('thing', Class, {})
    local made = public(object)
    assert.is_false(found { made })
    object.callback = compile 'return function(ev) return ev.secret end'
    assert.is_true(found { made })
  end)

  it('searches options', function()
    local function has(options) return mentions.option(options, function(text) return text:find 'secret' ~= nil end) end
    assert.is_true(has { key = 'secret & 1' })
    assert.is_true(has { events = { { 'a', 'secret' } } })
    assert.is_false(has { secret = 1, name = 'none', flag = true })
  end)
end)
