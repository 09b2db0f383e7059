-- SPDX-License-Identifier: GPL-2.0-only
-- The automata of globs match what fnmatch(3) matches.
local bit = require 'bit'
local glob = require 'bpf.gen.glob_automaton'
local libc = require 'bindings.base.libc'

local function matches(automaton, text)
  local function closed(states) return bit.bor(states, bit.lshift(bit.band(states, automaton.stars), 1)) end
  local states = closed(1ULL)
  for i = 1, #text do
    local next_states = bit.lshift(bit.band(states, automaton.table[text:byte(i)]), 1)
    states = closed(bit.bor(next_states, bit.band(states, automaton.stars)))
  end
  return bit.band(bit.rshift(states, automaton.last), 1) == 1
end

local function random(parts, most)
  local list = {}
  for i = 1, math.random(0, most) do list[i] = parts[math.random(#parts)] end
  return table.concat(list)
end

local PIECES = { '*', '?', 'a', 'b', '[', ']', '[ab]', '[!a]', '[^b]', '[]a]', '[a-c]', '\\*', '\\[', '-' }

it('agrees with fnmatch(3)', function()
  math.randomseed(7)
  local hits, n = 0, 0
  for _ = 1, 20000 do
    local pattern = random(PIECES, 7)
    local automaton = glob.automaton(pattern)
    for _ = 1, automaton and 5 or 0 do
      local text = random({ 'a', 'b', 'c', '[', ']', '*', '-', '\\', '\233' }, 6)
      local wanted = libc.fnmatch(pattern, text, 0) == 0
      assert.equal(wanted, matches(automaton, text), ('%s ~ %s'):format(text, pattern))
      hits, n = hits + (wanted and 1 or 0), n + 1
    end
  end
  assert(n > 90000 and hits > 2000, ('%d of %d match'):format(hits, n))
end)

it('refuses what it does not know', function()
  local function why(pattern) return select(2, glob.automaton(pattern)) end
  assert.equal('the glob: character classes such as [:alpha:]', why 'a[[:alpha:]]')
  assert.equal('the glob: the pattern ends with a backslash', why 'a\\')
  assert.equal('the glob has more than 62 elements', why(('a'):rep(63)))
  assert.is_nil(why(('a'):rep(62)))
  assert.is_nil(why(('*'):rep(100)))
end)
