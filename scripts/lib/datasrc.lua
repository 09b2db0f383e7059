-- SPDX-License-Identifier: GPL-2.0-only
--- Text of `ev._data_src`, the source of a sampled memory access, as `perf script` prints it.
local datasrc = {}

-- Bit fields of the word: first bit, number of bits, meaning of each bit.
local LEVEL = { 5, 14, { 'N/A', 'hit', 'miss', 'L1', 'LFB/MAB', 'L2', 'L3', 'Local RAM', 'Remote RAM (1 hop)',
  'Remote RAM (2 hops)', 'Remote Cache (1 hop)', 'Remote Cache (2 hops)', 'I/O', 'Uncached' } }
local SNOOP = { 19, 5, { 'N/A', 'None', 'Hit', 'Miss', 'HitM' } }
local LOCK = { 24, 2, { 'N/A', 'Yes' } }
local TLB = { 26, 7, { 'N/A', 'hit', 'miss', 'L1', 'L2', 'Walker', 'Fault' } }
local SNOOPX = { 38, 2, { 'Fwd', 'Peer' } }
local BLOCK = { 40, 3, { 'N/A', 'Data', 'Addr' } }
-- Bit fields that hold numbers: first bit, number of bits.
local LEVEL_NUMBER, REMOTE, HOPS = { 33, 4 }, { 37, 1 }, { 43, 3 }
local LEVELS = { 'L1', 'L2', 'L3', 'L4', 'L2 MHB', 'MemSide Cache', nil, 'Uncached', 'CXL', 'I/O', 'Any cache',
  'LFB/MAB', 'RAM', 'PMEM' }
local DISTANCES = { 'core, same node', 'node, same socket', 'socket, same board', 'board' }

--- Returns the value of a bit field. The defined bits, 46, are exact in a Lua number.
local function value(word, field) return math.floor(word / 2 ^ field[1]) % 2 ^ field[2] end

--- Returns the names of the bits that are set, except hit and miss, which are the second result.
local function names(word, field)
  local found, outcome, bits = {}, '', value(word, field)
  for i, name in ipairs(field[3]) do
    if math.floor(bits / 2 ^ (i - 1)) % 2 == 1 then
      if name == 'hit' or name == 'miss' then outcome = outcome .. ' ' .. name else found[#found + 1] = name end
    end
  end
  return found, outcome
end

local function text_of(found, outcome)
  return (#found > 0 and table.concat(found, ' or ') or 'N/A') .. (outcome or '')
end

local function level(word)
  local found, outcome = names(word, LEVEL)
  local name = LEVELS[value(word, LEVEL_NUMBER)]
  if not name then return text_of(found, outcome) end
  local distance = DISTANCES[value(word, HOPS)]
  if value(word, REMOTE) == 1 then
    name = ('Remote %s%s'):format(distance and distance .. ' ' or '', name)
  end
  return name .. outcome
end

--- Decodes the memory level, snoop, TLB, lock and block bits.
---@param word number `ev._data_src`
---@return string text "L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK N/A"
function datasrc.text(word)
  local snoop, tlb, outcome = names(word, SNOOP), names(word, TLB)
  for _, name in ipairs((names(word, SNOOPX))) do snoop[#snoop + 1] = name end
  local lock = value(word, LOCK) == 0 and 'No' or text_of((names(word, LOCK)))
  return ('%s|SNP %s|TLB %s|LCK %s|BLK %s'):format(level(word), text_of(snoop), text_of(tlb, outcome), lock,
    text_of((names(word, BLOCK))))
end

return datasrc
