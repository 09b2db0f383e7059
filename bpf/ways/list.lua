-- SPDX-License-Identifier: GPL-2.0-only
--- Ways: how programs take events in place of perf. A way is a module in this folder, and a line here. The planner
--- (bpf/plan/planner.lua) asks a way whether it would do; bpf/run/in_kernel.lua lets it load its programs.
---
--- `capture` is for single events. The others are for offers: a profiler that does not look at each event offers its
--- events to a way, which takes all of them or none.
---@class Way
---@field name string
---@field verb string in the names of its programs
---@field does? string what programs do with an event, in words: 'counted'; nil: they pass on all of it
---@field has_stacks? boolean it knows the stacks of its events
---@field lacks string[] the needs of options that it cannot give, see bpf/plan/needs.lua
---@field refuses? fun(facts: Facts, offer: OfferFacts|EventFacts, calls: integer): string? returns why it cannot take
--- the events, from the facts alone; calls: events of single system calls that are not taken yet. nil: it is only part
--- of another way

---@type table<string, Way>
local ways = {}

for _, way in ipairs {
  require 'bpf.ways.count',
  require 'bpf.ways.pair',
  require 'bpf.ways.outlier',
  require 'bpf.ways.window',
  require 'bpf.ways.states',
  require 'bpf.ways.cpu_times',
  require 'bpf.ways.waits',
  require 'bpf.ways.capture',
} do
  ways[way.name] = way
end

return ways
