-- SPDX-License-Identifier: GPL-2.0-only
--- Strings behind pointers in a run: which of them its scripts ask for (`ev:string 'filename'`, `str(filename)` in C
--- expressions), and the BPF programs that add them to the records of their events.
local asm = require 'bpf.gen.asm'
local contract = require 'bindings.options.contract'
local failure = require 'bindings.base.failure'
local kernel_strings = require 'bpf.gen.string_records'
local mentions = require 'bpf.handlers.mentions'
local names = require 'bindings.base.number_names'
local program = require 'bpf.gen.program'

local user_strings = {}

--- Adds the names that a text asks for: a C expression, or the Lua code of a one-liner.
local function want_text(wanted, text)
  for name in text:gmatch '%f[%w_]str%s*%(%s*([%a_][%w_]*)' do wanted[name] = true end
  for name in text:gmatch '%f[%w_]%a+%s*%(%s*%a+%s*[%->.]+%s*([%a_][%w_]*)' do wanted[name] = true end
  for name in text:gmatch ':%s*string%s*%(?%s*[\'"]([%a_][%w_]*)' do wanted[name] = true end
end

--- Adds the names that a profiler asks for, in its code or in its options.
---@param wanted table<string, boolean>
---@param start function
---@param opt table
function user_strings.want(wanted, start, opt)
  local function note(text)
    want_text(wanted, text)
    return false
  end
  mentions.option(opt, note)
  mentions.any({ start }, note, function(fn)
    for _, name in ipairs(contract.strings(fn)) do wanted[name] = true end
  end, mentions.is_library())
end

--- Returns why the strings of an event cannot be captured; nil if nothing is known to prevent it.
local function refuses(run, event)
  local request = event.request
  if run.opt.cgroups then return 'not with --cgroups' end
  if request.attr.freq ~= 0 or request.attr.sample_period > 1 then return 'not every event is sampled' end
end

local function load(run, event)
  local of = event.strings
  local nr = names.traced_syscall(of.call) or asm.refuse('the number of the system call is unknown (libseccomp)')
  local loaded, array, rooms = kernel_strings.load {
    tracepoint = of.tracepoint, nr = nr, type = tonumber(event.request.attr.config), fields = event.fields,
    arguments = of.arguments, strings = of.strings, numbers = of.numbers, is_exec = of.call:find '^execve' ~= nil,
    own_pid = run:own_pid(),
  }
  event.request.bpf_array = array.fd
  of.loaded = { loaded, array, rooms }
  if program.is_dry() then return true end
  if rooms then of.loaded[#of.loaded + 1] = program.attach(rooms) end
  of.loaded[#of.loaded + 1] = program.attach(loaded)
  return true
end

--- Loads and attaches the programs for all events with strings. Their events are then opened on all CPUs.
---@param run Run
function user_strings.capture(run)
  for _, event in ipairs(run.events.list) do
    if event.request.counted == 1 then event:set_strings(nil) end -- nobody sees its records
    if event.strings then
      local reason, _ = refuses(run, event), nil
      if not reason then _, reason = asm.attempt(function() return load(run, event) end) end
      if reason then
        local one = (event.strings.strings[1] or event.strings.numbers[1]).name
        failure.unavailable("%s: cannot read what is behind '%s' of %s: %s", run.name, one, event.name, reason)
      end
    end
  end
end

return user_strings
