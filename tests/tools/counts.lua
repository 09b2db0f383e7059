-- SPDX-License-Identifier: GPL-2.0-only
-- luajit counts.lua JSON: adds up the counts that stat printed, by event, as `uniq -c` prints them, with
-- the columns swapped. Fails if the counts of a row do not add up to its total.
local sums, lines = {}, {}
for line in io.lines(arg[1]) do
  local event, total, sum = line:match '"event":"(.-)"', tonumber(line:match '"total":(%d+)'), 0
  for count in line:match('"counts":%[(.-)%]'):gmatch '%d+' do
    sum = sum + count
  end
  assert(sum == total, line)
  sums[event] = (sums[event] or 0) + sum
end
for event, sum in pairs(sums) do
  if sum > 0 then lines[#lines + 1] = ('%s: %d'):format(event, sum) end
end
table.sort(lines)
print(table.concat(lines, '\n'))
