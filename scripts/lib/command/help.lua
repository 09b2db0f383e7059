-- SPDX-License-Identifier: GPL-2.0-only
--- Help texts, generated from the same declarations as the parser uses.
local declarations = require 'bindings.options.declare'
local options = require 'bindings.options.parser'

local help = {}

local WIDTH = 80
local COLUMN = 28 -- start of the right column

--- Breaks a text at spaces so that its lines, indented by `indent`, fit the width.
---@param text string
---@param indent integer
---@return string lines the first line is not indented
local function wrap(text, indent)
  local lines, line = {}, nil
  for word in text:gmatch '%S+' do
    if not line then
      line = word
    elseif indent + #line + 1 + #word > WIDTH then
      lines[#lines + 1] = line
      line = word
    else
      line = line .. ' ' .. word
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, '\n' .. (' '):rep(indent))
end

--- Formats a row of two columns. After a wide left column the right one starts on the next line.
local function row(left, right, column)
  column = column or COLUMN
  local gap = #left + 2 <= column and (' '):rep(column - #left) or '\n' .. (' '):rep(column)
  return left .. gap .. wrap(right, column) .. '\n'
end

--- Describes an option.
---@param option opt.Option
---@return string left its syntax, such as "-F, --freq N"
---@return string text its help
function help.option(option)
  local argument = declarations.argument(option)
  local negatable = option.type == 'flag' and (option.default or option.either) and not option.always
  local letter = option.short and ('-%s, --'):format(option.short) or '--'
  local left = letter .. (negatable and '[no-]' or '') .. option.long
  if option.optional_value ~= nil or option.type == 'stacks' then
    left = left .. '[=' .. argument .. ']'
  elseif argument then
    left = left .. ' ' .. argument
  end
  local notes = {}
  if argument then notes[1] = option.type == 'duration' and not option.unit and 'ns' or option.unit end
  local default = declarations.default_text(option)
  if default then notes[#notes + 1] = 'default ' .. default end
  if option.multiple then notes[#notes + 1] = 'may be repeated' end
  if option.required then notes[#notes + 1] = 'required' end
  local tail = #notes > 0 and ' (' .. table.concat(notes, ', ') .. ')' or ''
  return left, option.help .. tail
end

local function option_row(option)
  local left, text = help.option(option)
  return row((option.short and '  ' or '      ') .. left, text)
end

---@param spec opt.Spec
---@param name? string the profiler
---@param is_shown? fun(option: opt.Option): boolean
---@return string
local function option_groups(spec, name, is_shown)
  local parts = {}
  for _, group in ipairs(declarations.groups) do
    local rows = {}
    for _, option in ipairs(spec.list) do
      if option.group == group.name and (not is_shown or is_shown(option)) then rows[#rows + 1] = option_row(option) end
    end
    if #rows > 0 then
      local title = group.name == 'script' and name .. ' options' or group.title
      parts[#parts + 1] = ('\n%s:\n%s'):format(title, table.concat(rows))
    end
  end
  return table.concat(parts)
end

---@param option opt.Option a positional
---@return string such as "EXPRESSION", "[PATTERN]" or "ADDRESS..."
local function positional_name(option)
  local name = declarations.argument(option) .. (option.multiple and '...' or '')
  return option.required and name or '[' .. name .. ']'
end

--- Returns the usage line of a profiler.
---@param name string
---@param spec opt.Spec
---@return string
function help.usage(name, spec)
  local usage = { 'profscript', name, '[options]' }
  for _, option in ipairs(spec.positional) do
    usage[#usage + 1] = positional_name(option)
  end
  if spec.workload then usage[#usage + 1] = '[--] [workload...]' end
  return table.concat(usage, ' ')
end

local MOST = 3 -- examples in the short help

--- Options that the short help only names.
local SHORT = { event = true, pids = true, interval = true, exit_n = true, duration = true, input = true, json = true }

--- Returns whether the short help explains an option: those of the profiler itself, without the looks of a flame graph.
local function is_own(option, own)
  if option.group == 'script' then return true end
  if option.group == 'flame' then return option.name == 'flame_graph' end
  local given = own[option.name]
  return given ~= nil and (given.help ~= nil or given.default ~= nil)
end

--- Returns a description without the output that it shows.
local function without_output(description)
  local paragraphs = {}
  for paragraph in (description:gsub('%s+$', '') .. '\n\n'):gmatch '(.-)\n\n' do
    if paragraph:find '^  %$ ' then break end
    paragraphs[#paragraphs + 1] = paragraph
  end
  return table.concat(paragraphs, '\n\n')
end

--- Returns the help of one profiler.
---@param name string
---@param profiler table returned by its file
---@param spec opt.Spec
---@param all? boolean with all common options
---@return string
function help.profiler(name, profiler, spec, all)
  local parts = { 'usage: ', help.usage(name, spec), '\n\n', wrap(profiler.summary, 0), '\n' }
  if profiler.examples then
    parts[#parts + 1] = '\nexamples:\n'
    for i, example in ipairs(profiler.examples) do
      if i > MOST and not all then break end
      parts[#parts + 1] = ('  %s\n      %s\n'):format(example[1], wrap(example[2], 6))
    end
  end
  if #spec.positional > 0 then
    parts[#parts + 1] = '\narguments:\n'
    for _, option in ipairs(spec.positional) do
      parts[#parts + 1] = row('  ' .. positional_name(option), option.help)
    end
  end
  local own, common = profiler.options or {}, {}
  parts[#parts + 1] = option_groups(spec, name, function(option)
    local is_shown = all or is_own(option, own)
    if not is_shown and SHORT[option.name] then common[#common + 1] = help.option(option):gsub('.*(%-%-)', '%1') end
    return is_shown
  end)
  local description = (profiler.description or ''):gsub('%s+$', '')
  local shown = all and description or without_output(description)
  if shown ~= '' then parts[#parts + 1] = '\n' .. shown .. '\n' end
  if not all then
    local list = #common > 0 and table.concat(common, ', ') .. ' and other' or 'The'
    local output = shown ~= description and ', with what it prints' or ''
    parts[#parts + 1] = '\n' .. wrap(("%s common options: 'profscript %s --help=all'%s."):format(list, name, output),
      0) .. '\n'
  end
  return table.concat(parts)
end

local QUESTIONS = {
  { 'what happens, and how often',
    'trace exec repl sql top num-dist stat percpu-stat hrcount hrtimer signal event-lost misc' },
  { 'how long from one event to another', 'multi-trace syscalls rundelay nested-trace kvm-exit bpf:kvm_exit' },
  { 'who uses the CPUs', 'profile oncpu offcpu task-state sched sched-migrate cpu-util irq-off watchdog lock' },
  { 'who talks over the network', 'tcp udp drops epoll' },
  { 'files and disks', 'files iostat blktrace' },
  { 'memory', 'page-faults pagecache reclaim oom kmemleak kmemprof breakpoint kvmmmu' },
  { 'hardware', 'hwstat llcstat tlbstat ldlat-loads ldlat-stores split-lock' },
}

--- Returns what `profscript` without arguments prints: the profilers by question, and how to begin.
---@param entries { name: string, is_tool?: boolean }[]
---@return string
function help.start(entries)
  local parts, known, others = { [[
usage: profscript [-v] [-q] NAME [options] [--] [workload...]

to begin with:
  profscript trace -e sched:sched_process_exec
      every program that starts
  profscript exec -e raw_syscalls:sys_enter 'count(syscall(ev.id))' --top 20
      which system calls are made most
  profscript rundelay --than 5ms --detail=samecpu
      who waited for a CPU, and what ran there meanwhile

profilers by question:
]] }, {}, {}
  for _, one in ipairs(QUESTIONS) do
    for name in one[2]:gmatch '%S+' do known[name] = true end
    parts[#parts + 1] = ('  %s\n      %s\n'):format(one[1], wrap(one[2], 6))
  end
  for _, entry in ipairs(entries) do
    if not known[entry.name] and not entry.is_tool then others[#others + 1] = entry.name end
  end
  if #others > 0 then parts[#parts + 1] = ('  others\n      %s\n'):format(wrap(table.concat(others, ' '), 6)) end
  parts[#parts + 1] = [[

'profscript NAME --help' explains one, 'profscript --help' lists all of them and
the other commands, 'profscript list' the events of this machine, and
'profscript --check' what this kernel and this user can trace.
]]
  return table.concat(parts)
end

--- Returns the usage and the list of profilers, for `profscript --help`.
---@param entries { name: string, summary?: string, error?: string, is_tool?: boolean }[]
---@return string
function help.overview(entries)
  local column = 0
  for _, entry in ipairs(entries) do
    column = math.max(column, #entry.name + 4)
  end
  column = math.min(column, COLUMN)

  local parts = { 'usage: profscript [-v] [-q] NAME [options] [--] [workload...]\n' }
  local function list(title, is_tool)
    parts[#parts + 1] = ('\n%s:\n'):format(title)
    local before = #parts
    for _, entry in ipairs(entries) do
      if entry.is_tool == is_tool then
        local summary = entry.summary and entry.summary .. (entry.also and ('; also called ' .. entry.also) or '')
        parts[#parts + 1] = row('  ' .. entry.name, summary or 'cannot load: ' .. entry.error, column)
      end
    end
    if #parts == before then parts[#parts] = not is_tool and parts[#parts] .. '  none found\n' or '' end
  end
  list('profilers', nil)
  list('other commands', true)
  parts[#parts + 1] = option_groups(options.global_spec, 'profscript')
  parts[#parts + 1] = "\n'profscript NAME -h' explains one profiler and its options,\n"
    .. "'profscript NAME -e EVENT help' the fields and attributes of an event.\n"
  return table.concat(parts)
end

return help
