-- SPDX-License-Identifier: GPL-2.0-only
--- Manual pages (roff, man macros), generated from the same declarations as the parser and --help use.
local declarations = require 'bindings.options.declare'
local explain = require 'lib.command.explain'
local help = require 'lib.command.help'
local options = require 'bindings.options.parser'
local scripts = require 'bindings.options.scripts'
local selector = require 'bindings.select.selector'
local sys = require 'bindings.base.sys'
local version = require 'bindings.base.version'

local man = {}

--- Escapes a text for roff.
---@param text string
---@return string
function man.escape(text)
  text = text:gsub('\\', '\\e'):gsub('%-', '\\-'):gsub('\n([.\'])', '\n\\&%1')
  return (text:gsub('^[.\']', '\\&%0'))
end
local escape = man.escape

local function heading(title) return ('.SH %s\n'):format(escape(title:upper())) end

local function begin(name, summary)
  return ('.TH "%s" 1 "" "profscript %s" "profscript"\n%s%s \\- %s\n'):format(escape(name:upper()), version,
    heading 'name', escape(name), escape(summary))
end

local function tagged(tag, text) return ('.TP\n.B %s\n%s\n'):format(tag, escape(text)) end

--- Formats paragraphs. Paragraphs with indented lines are not filled.
local function prose(text)
  local parts = {}
  for paragraph in (text:gsub('%s+$', '') .. '\n\n'):gmatch '(.-)\n%s*\n' do
    local is_verbatim = ('\n' .. paragraph):find '\n%s'
    parts[#parts + 1] = is_verbatim and ('.PP\n.nf\n%s\n.fi\n'):format(escape(paragraph))
      or ('.PP\n%s\n'):format(escape(paragraph))
  end
  return table.concat(parts)
end

local function option_groups(spec, name)
  local parts = {}
  for _, group in ipairs(declarations.groups) do
    local entries = {}
    for _, option in ipairs(spec.list) do
      if option.group == group.name then
        local left, text = help.option(option)
        entries[#entries + 1] = tagged(escape(left), text)
      end
    end
    if #entries > 0 then
      local title = group.name == 'script' and name .. ' options' or group.title
      parts[#parts + 1] = ('.SS "%s"\n%s'):format(escape(title), table.concat(entries))
    end
  end
  return #parts > 0 and heading 'options' .. table.concat(parts) or ''
end

local function examples(list)
  local parts = { heading 'examples' }
  for _, example in ipairs(list) do
    parts[#parts + 1] = ('.PP\n%s:\n.PP\n.RS 4\n.nf\n%s\n.fi\n.RE\n'):format(escape(example[2]), escape(example[1]))
  end
  return table.concat(parts)
end

local function attributes(names)
  local parts = {}
  for _, name in ipairs(names) do
    parts[#parts + 1] = tagged(escape(explain.attribute(name)), selector.attributes[name].help)
  end
  return table.concat(parts)
end

--- Returns the page of one profiler.
---@param script scripts.Script
---@return string
function man.profiler(script)
  local profiler, spec = script.profiler, script.spec
  local usage = help.usage(script.name, spec)
  local parts = {
    begin('profscript-' .. script.name, profiler.summary),
    heading 'synopsis', '.B ', escape(usage), '\n',
    heading 'description', prose(profiler.description or profiler.summary .. '.'),
  }
  for _, option in ipairs(spec.positional) do
    parts[#parts + 1] = tagged(escape(declarations.argument(option)), option.help)
  end
  local own = explain.attributes(profiler)
  if #own > 0 then
    parts[#parts + 1] = heading 'attributes' .. '.PP\nEvent attributes in addition to those in\n.BR profscript (1):\n'
    parts[#parts + 1] = attributes(own)
  end
  parts[#parts + 1] = option_groups(spec, script.name)
  if profiler.examples then parts[#parts + 1] = examples(profiler.examples) end
  parts[#parts + 1] = heading 'see also' .. '.BR profscript (1)\n'
  return table.concat(parts)
end

local EVENTS = [[
An event is written as NAME, NAME/FILTER/ or NAME/FILTER/ATTRIBUTE/ATTRIBUTE/.... One -e takes
several events, separated by commas. Separators inside quotes or parentheses are ordinary text.

NAME is

  sys:name                a tracepoint; both parts may contain the wildcards * ? [...]
  page-faults, cycles...  a perf event, see 'profscript list'
  PMU/TERM,TERM.../       a PMU event, as printed by 'perf list'
  mem:ADDRESS/LENGTH:rw   a hardware breakpoint for reads (r), writes (w) or execution (x)
  PROFILER/OPTIONS/       the events of another profiler, opened with its own options and printed
                          in its format; its -N applies only to these events

FILTER selects the events for which it is true. It is a kernel filter or a C expression over the
event's fields and _cpu, _node, _pid, _tid, _time, _period, _comm, _cgroup and _container. The
kernel evaluates as much of it as possible.

ATTRIBUTE is one of the following or one of the profiler's own. EXPR is a C expression.]]

local ENDING = [[
.SH ENVIRONMENT
.TP
.B PROFSCRIPT_PATH
Directories with profilers, separated by colons. They are searched before ~/.config/profscript and
the shipped profilers.
.TP
.B PROFSCRIPT_MEMORY
Memory limit of a script, such as 512M. The default is a third of the available memory, at most 2G.
.SH EXIT STATUS
0: success; 1: failure; 2: invalid command line; 3: this kernel or machine lacks or forbids something
that the command needs, such as a tracepoint, a hardware PMU or BTF. If a workload ends by itself, the
exit status is that of the workload, as in a shell.
]]

--- Returns the page of the command.
---@param list scripts.Script[]
---@return string
function man.overview(list)
  local parts = {
    begin('profscript', 'run Lua scripts over the events of the Linux kernel'),
    heading 'synopsis', '.B profscript\n', escape('[-v] [-q] NAME [options] [--] [workload...]'), '\n.br\n',
    '.B profscript\n', escape('[NAME] -e EVENT help'), '\n.br\n',
    '.B profscript\n', escape('--symbols FILE'), '\n',
    heading 'description',
    prose [[
NAME is a profiler below or the path of a script. 'profscript NAME -h' explains its options;
'profscript NAME -e EVENT help' prints the fields and attributes of an event.]],
    heading 'profilers',
  }
  local also = {}
  for i, script in ipairs(list) do
    parts[#parts + 1] = tagged(escape(script.name), script.profiler.summary)
    also[i] = ('.BR %s (1)'):format(escape('profscript-' .. script.name))
  end
  local _, common = explain.attributes {}
  parts[#parts + 1] = heading 'events' .. prose(EVENTS) .. attributes(common)
  parts[#parts + 1] = option_groups(options.global_spec, 'profscript') .. ENDING
  also[#also + 1] = '.BR perf (1)'
  parts[#parts + 1] = heading 'see also' .. table.concat(also, ',\n') .. '\n'
  return table.concat(parts)
end

--- Returns the page of a profiler, or of the command.
---@param name? string the profiler; nil: the command
---@return string? page nil if the profiler cannot be loaded
---@return string? message
function man.page(name)
  local found = scripts.new(sys, arg.data_dir)
  if not name then return man.overview(found:load_all()) end
  local script, message = found:load((name:gsub('^profscript%-', '')))
  if not script then return nil, message end
  return man.profiler(script)
end

return man
