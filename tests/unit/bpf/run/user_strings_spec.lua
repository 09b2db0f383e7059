-- SPDX-License-Identifier: GPL-2.0-only
local oneliner = require 'lib.engines.oneliner'
local user_strings = require 'bpf.run.user_strings'

--- Returns the names of the strings that a script asks for.
local function wanted(text, opt, upvalue)
  local names, start = {}, assert(loadstring('local upvalue = ... return ' .. text, '@some.lua'))(upvalue)
  user_strings.want(names, start, opt or {})
  return names
end

describe('strings behind pointers are wanted', function()
  it('by calls', function()
    assert.same({ filename = true }, wanted "function() return { function(ev) return ev:string 'filename' end } end")
    assert.same({}, wanted "function() return { function(ev) return ev.filename, 'filename' end } end")
  end)

  it('by expressions in the script and in options', function()
    assert.same({ filename = true }, wanted [[function(session) session.event { 'open/str(filename) == "a"/' } end]])
    assert.same({ path = true }, wanted('function() end', { event = { 'open/str(path) == "a"/' } }))
  end)

  it('not by what the library says', function()
    local help
    for _, one in ipairs(oneliner.FUNCTIONS) do help = help or one[2]:match '^str%(' end
    assert.equal('str(', help)
    assert.same({}, wanted('function() return upvalue.FUNCTIONS end', {}, oneliner))
  end)
end)
