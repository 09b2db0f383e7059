-- SPDX-License-Identifier: GPL-2.0-only
--- Manual pages (roff, man macros), made from the declarations that the parser and --help use.
local declarations = require 'bindings.options.declare'
local explain = require 'bindings.command.explain'
local help = require 'bindings.command.help'
local options = require 'bindings.options.parser'
local scripts = require 'bindings.options.scripts'
local selector = require 'bindings.select.selector'
local sys = require 'bindings.base.sys'
local version = require 'bindings.base.version'

local man = {}

--- Text as roff prints it unchanged.
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

--- Paragraphs; one that has indented lines keeps its lines.
local function prose(text)
  local parts = {}
  for paragraph in (text:gsub('%s+$', '') .. '\n\n'):gmatch '(.-)\n%s*\n' do
    local as_it_is = ('\n' .. paragraph):find '\n%s'
    parts[#parts + 1] = as_it_is and ('.PP\n.nf\n%s\n.fi\n'):format(escape(paragraph))
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

--- The page of one profiler.
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
    parts[#parts + 1] = heading 'attributes' .. '.PP\nOf events, besides those in\n.BR profscript (1):\n'
    parts[#parts + 1] = attributes(own)
  end
  parts[#parts + 1] = option_groups(spec, script.name)
  if profiler.examples then parts[#parts + 1] = examples(profiler.examples) end
  parts[#parts + 1] = heading 'see also' .. '.BR profscript (1)\n'
  return table.concat(parts)
end

local EVENTS = [[
An event is written as NAME, NAME/FILTER/ or NAME/FILTER/ATTRIBUTE/ATTRIBUTE/...; several stand
behind one -e with commas between them. A separator inside of quotes or parentheses is text.

NAME is

  sys:name                a tracepoint; both may have the wildcards * ? [...]
  page-faults, cycles...  an event of perf, see 'profscript list'
  PMU/TERM,TERM.../       an event of a PMU, as 'perf list' prints it
  mem:ADDRESS/LENGTH:rw   a breakpoint of the hardware, for reads (r), writes (w) or execution (x)
  PROFILER/OPTIONS/       the events of another profiler, opened by its own options and printed as
                          it does; its -N ends just these

FILTER keeps the events for which it is true: a filter of the kernel, or a C expression over the
event's fields and _cpu, _pid, _tid, _time, _period and _comm. What the kernel can evaluate it does.

ATTRIBUTE is one of these, or what the profiler adds. EXPR is a C expression.]]

local ENDING = [[
.SH ENVIRONMENT
.TP
.B PROFSCRIPT_PATH
Folders with profilers, separated by colons. They are searched before ~/.config/profscript and
those that are shipped.
.SH EXIT STATUS
0: it ran; 1: it failed; 2: the command line is wrong; 3: this kernel or machine lacks or forbids what it takes, such as
a tracepoint, a hardware PMU or BTF. With a workload that ended by itself: its exit status, as a shell gives it.
]]

--- The page of the command.
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
NAME is a profiler below, or the path of a script. 'profscript NAME -h' explains its options;
with -e EVENT and the word help it prints the event's fields and what can be asked of it.]],
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

--- The page of a profiler, or that of the command.
---@param name? string
---@return string? page, string? message
function man.page(name)
  local found = scripts.new(sys, arg.data_dir)
  if not name then return man.overview(found:load_all()) end
  local script, message = found:load((name:gsub('^profscript%-', '')))
  if not script then return nil, message end
  return man.profiler(script)
end

return man
