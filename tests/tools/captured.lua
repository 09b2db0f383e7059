-- SPDX-License-Identifier: GPL-2.0-only
-- Compares the events that BPF programs capture with perf's samples of the same events, on each CPU in their order:
-- all fields, and those of the sample. Each event is given twice, the second time with the attribute cpus=, so that
-- perf samples it. Prints for each event how many were equal; how many differed only in what another CPU may change
-- between the two, bits of common_flags and the state of a task that has exited; how many differed otherwise, with the
-- first differences (the state changes in one direction, so the rarer direction is one); how many only perf had; how
-- many only the program: the kernel drops samples of perf while other programs run; and how many only perf had before
-- the first and after the last that both had.
local MAX_SHOWN, LOOK = 5, 32
local SAMPLE = { '_pid', '_tid', '_cpu', '_comm', '_period' }

-- What can be compared: numbers and texts as they are.
local function plain(value)
  if type(value) ~= 'cdata' then return value end
  if tonumber(value) then return tostring(value) end
  local parts = {}
  for i = 0, #value - 1 do parts[i + 1] = tostring(value[i]) end
  return table.concat(parts, ' ')
end

-- A parent that collects its child changes it from a zombie to dead, perhaps between the two. Which of them is first is
-- the same for all events of a tracepoint: the kernel calls its tracers in their order.
local ZOMBIE, DEAD = 32, 16
local FIRST = { [ZOMBIE] = { [DEAD] = 'perf_first' }, [DEAD] = { [ZOMBIE] = 'captured_first' } } -- by perf's state

local function without_need(flags)
  local bits = tonumber(flags)
  for _, bit in ipairs { 0x20, 0x04, 0x02 } do
    if bits % (2 * bit) >= bit then bits = bits - bit end
  end
  return bits
end

return {
  summary = 'Compare captured events with those of perf',
  options = { apart = { type = 'duration', default = 500000000, help = 'how much later the second may be' } },
  start = function(opt, out)
    local lists, order, handlers = {}, {}, {}
    local function show(of, ...)
      of.shown = of.shown + 1
      if of.shown <= MAX_SHOWN then out:print(('%s: %s: perf %s, captured %s'):format(of.name, ...)) end
    end
    --- Returns 'equal', 'flags' or 'different'; and which was first, if that is known.
    local function relation(of, one, other)
      local result, first = 'equal', nil
      for i = 1, #of.names do
        if one[i] ~= other[i] then
          local reaped = of.names[i] == 'prev_state' and (FIRST[one[i]] or {})[other[i]]
          first = reaped or first
          if not reaped and (of.names[i] ~= 'common_flags' or without_need(one[i]) ~= without_need(other[i])) then
            return 'different'
          end
          result = 'flags'
        end
      end
      return math.abs(one.time - other.time) < opt.apart and result or 'different', first
    end
    local function drop(queue, n)
      for _ = 1, n do
        queue[queue.first] = nil
        queue.first = queue.first + 1
      end
    end
    local function compare(of, cpu, at_end)
      local perf, bpf = of.perf[cpu], of.bpf[cpu]
      local spare = at_end and 0 or LOOK
      while perf.first + spare <= perf.n and bpf.first + spare <= bpf.n do
        local result, first = relation(of, perf[perf.first], bpf[bpf.first])
        for k = 1, result == 'different' and LOOK or 0 do
          local later, early = perf[perf.first + k], bpf[bpf.first + k]
          if later and relation(of, later, bpf[bpf.first]) ~= 'different' then
            drop(perf, k)
            local count = perf.has_begun and 'missing' or 'around'
            of[count], result = of[count] + k, nil
            break
          elseif early and relation(of, perf[perf.first], early) ~= 'different' then
            drop(bpf, k)
            of.more, result = of.more + k, nil
            break
          end
        end
        if result then
          if result == 'different' then
            for i, name in ipairs(of.names) do
              if perf[perf.first][i] ~= bpf[bpf.first][i] then
                show(of, name, perf[perf.first][i], bpf[bpf.first][i])
              end
            end
          end
          of[result] = of[result] + 1
          if first and result == 'flags' then of[first] = of[first] + 1 end
          perf.has_begun = true
          drop(perf, 1)
          drop(bpf, 1)
        end
      end
      if at_end then
        of.around, of.more = of.around + perf.n - perf.first + 1, of.more + bpf.n - bpf.first + 1
      end
    end
    for _, group in ipairs(opt.event) do
      for _, event in ipairs(group) do
        local of = lists[event.name]
        if not of then
          of = { name = event.name, perf = {}, bpf = {}, names = {}, equal = 0, flags = 0, different = 0, missing = 0,
            more = 0, around = 0, shown = 0, perf_first = 0, captured_first = 0 }
          for name in pairs(event.fields) do of.names[#of.names + 1] = name end
          table.sort(of.names)
          for _, name in ipairs(SAMPLE) do of.names[#of.names + 1] = name end
          if event.attrs.stack then of.names[#of.names + 1] = '_stack' end
          lists[event.name], order[#order + 1] = of, of
        end
        local into = event.attrs.cpus and 'perf' or 'bpf'
        handlers[event] = function(ev)
          local cpu = ev._cpu
          if not of.perf[cpu] then of.perf[cpu], of.bpf[cpu] = { first = 1, n = 0 }, { first = 1, n = 0 } end
          local queue, list = of[into][cpu], { time = ev._time }
          for i, name in ipairs(of.names) do list[i] = plain(ev[name]) end
          queue.n = queue.n + 1
          queue[queue.n] = list
          compare(of, cpu)
        end
      end
    end
    handlers.stop = function()
      for _, of in ipairs(order) do
        for cpu in pairs(of.perf) do compare(of, cpu, true) end
        local reversed = math.min(of.perf_first, of.captured_first)
        of.flags, of.different = of.flags - reversed, of.different + reversed
        out:print(('%s: %d equal, %d differ in flags, %d differ, %d missing, %d more, %d around'):format(of.name,
          of.equal, of.flags, of.different, of.missing, of.more, of.around))
      end
    end
    return handlers
  end,
}
