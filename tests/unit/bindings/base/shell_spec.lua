-- SPDX-License-Identifier: GPL-2.0-only
local shell = require 'bindings.base.shell'

local CASES = {
  { '', '' },
  { '  ', '' },
  { 'a', 'a@1 touches' },
  { ' a  bc ', 'a@2 bc@5' },
  { [[x'a b'"c d"y]], 'xa bc dy@1 touches' },
  { [["" '']], '@1 @4 touches' },
  { [[a\ b c]], 'a b@1 c@6 touches' },
  { [[a "b c]], 'a@1 b c@3 unclosed@3 touches' },
  { [[--filter 'x == "y"' -N 3]], '--filter@1 x == "y"@10 -N@21 3@24 touches' },
}

describe('a line', function()
  for _, case in ipairs(CASES) do
    it(('is divided: <%s>'):format(case[1]), function()
      local words, columns, unclosed, touches = shell.split(case[1])
      local shown = {}
      for i, word in ipairs(words) do
        shown[i] = word .. '@' .. columns[i]
      end
      if unclosed then shown[#shown + 1] = 'unclosed@' .. unclosed end
      if touches then shown[#shown + 1] = 'touches' end
      assert.equal(case[2], table.concat(shown, ' '))
    end)
  end

  it('is made of words that it returns', function()
    local given = { 'plain', 'two words', "it's", 'a"b', '$x', '' }
    local quoted = {}
    for i, word in ipairs(given) do
      quoted[i] = shell.quote(word)
    end
    assert.same(given, (shell.split(table.concat(quoted, ' '))))
  end)
end)
