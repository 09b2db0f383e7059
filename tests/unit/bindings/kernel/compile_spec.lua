-- SPDX-License-Identifier: GPL-2.0-only
-- Expressions compiled to BPF and run in the kernel: the results are those of the Lua code.
local cases = require 'tests.unit.bindings.expr.expr_cases'
local event = require 'tests.unit.bindings.expr.expr_event'
local expr = require 'bindings.expr.compile'
local run_bpf = require 'tests.unit.bindings.kernel.run_bpf'

local missing = run_bpf.missing()

--- The values of cases that are not compiled: those of strings, and what only profscript can do.
local REFUSED = {
  [' string$'] = 'an array or a string is not a number',
}

local function text_of(value) return (tostring(value):gsub('U?LL$', '')) end

describe('expressions in BPF', function()
  if missing then
    pending(missing)
    return
  end

  for _, case in ipairs(cases.VALUES) do
    it('gives ' .. case[1], function()
      local compiled = assert(expr.compile(case[1], event.fields))
      local loaded, why = run_bpf.load(compiled)
      if not loaded then error(case[1] .. ': ' .. why) end
      local value = run_bpf.run(loaded, event.RECORD)
      assert.equal((case[2]:gsub('U?LL', '')), text_of(value) .. ' ' .. loaded.type)
    end)
  end
end)
