-- SPDX-License-Identifier: GPL-2.0-only
local shades = require 'lib.shades'

--- Runs a function with a value of $NO_COLOR.
local function with_no_color(value, run)
  local getenv = os.getenv
  finally(function() rawset(os, 'getenv', getenv) end)
  rawset(os, 'getenv', function(name) return name == 'NO_COLOR' and value or getenv(name) end)
  return run()
end

describe('lib.shades', function()
  it('draws larger numbers with brighter colors, one code for equal ones', function()
    local line = with_no_color('', function() return shades.line({ 0, 1, 1, 100, 0, 100 }, 100) end)
    assert.equal(' \27[48;5;88m  \27[48;5;231m \27[m \27[48;5;231m \27[m', line)
  end)

  it('draws characters without colors', function()
    assert.equal(' .=@ @', with_no_color('1', function() return shades.line({ 0, 1, 16, 100, 0, 1000 }, 100) end))
  end)

  it('draws nothing of nothing', function()
    assert.equal('   ', with_no_color('', function() return shades.line({ 0, 0, 0 }, 0) end))
    assert.equal('', shades.line({}, 0))
  end)
end)
