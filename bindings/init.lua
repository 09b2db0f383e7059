-- SPDX-License-Identifier: GPL-2.0-only
--- The profscript command line: selects the command and loads only the modules that it needs. Returns a function that
--- takes the arguments and returns the exit code: 0, a code of bindings/base/failure.lua, or that of the workload.
require 'jit.opt'.start(
  'maxtrace=8000', -- many event classes make many side traces
  'maxrecord=16000', -- views with many fields are long chains of comparisons
  'maxirconst=2000',
  'maxside=1000',
  'maxmcode=65536'
)

-- Compiling code that runs only once is not worth it. The driver turns the compiler on for the event loop.
jit.off()

local failure = require 'bindings.base.failure'

--- Returns a module of scripts/lib/command/, by its place: what is needed before there is a script.
local function command(name) return require(('lib.command.%s'):format(name)) end

local function version()
  io.stdout:write('profscript ', require 'bindings.base.version', '\n')
  return 0
end

--- Runs `profscript -e EVENT help`, without a profiler. Returns nil for any other arguments.
local function explain_events(words, found)
  local asked = false
  for _, word in ipairs(words) do
    asked = asked or word == 'help'
  end
  if not asked then return end
  local options = require 'bindings.options.parser'
  local opt, rest = options.parse(options.explain_spec(), nil, words)
  if not opt or not opt.explain or #rest > 0 or #opt.event == 0 then return end
  return command('explain').run(nil, found, opt)
end

--- Makes of the words after `help NAME` those of `NAME -h` or, if they are options, of `NAME ... help`.
local function ask(spec, words)
  local of_events = spec.takes_events and (words[1] or ''):find '^%-'
  table.insert(words, of_events and #words + 1 or 1, of_events and 'help' or '-h')
end

--- Runs `profscript --complete LINE POINT BREAKS` for the shell's completion: prints the completion mode, then one
--- candidate per line.
local function print_completion(words, found)
  local complete, line = command 'complete', (words[2] or ''):sub(1, tonumber(words[3]))
  local result = complete.run(line, words[4] or '', complete.machine(found))
  io.stdout:write(result.mode, '\n')
  for _, word in ipairs(result.list) do
    io.stdout:write(word, '\n')
  end
  return 0
end

--- Runs `profscript --check`. The exit code is 0 if tracepoints work.
local function print_check()
  local check = command 'check'
  require('bindings.base.sys').check_mounts()
  local lines, works = check.render(check.lines(check.machine()))
  io.stdout:write(lines)
  return works and 0 or 1
end

local function main(words)
  if #words == 1 and (words[1] == '--version' or words[1] == '-V') then return version() end
  local scripts, sys = require 'bindings.options.scripts', require 'bindings.base.sys'
  local found = scripts.new(sys, arg.data_dir)
  if words[1] == '--complete' then return print_completion(words, found) end
  local explained = explain_events(words, found)
  if explained then return explained end
  local options = require 'bindings.options.parser'
  local global, rest = options.parse_global(words)
  if not global then failure.usage('%s', rest) end
  if global.version then return version() end
  if global.check then return print_check() end
  if global.symbols then rest = { 'symbols', '--', global.symbols, unpack(rest) } end
  local asks = rest[1] == 'help' and rest[2] and not rest[2]:find '^%-'
  if global.help or #rest == 0 or rest[1] == 'help' and not asks then
    local is_bare = #rest == 0 and not global.help
    io.stdout:write(command('help')[is_bare and 'start' or 'overview'](found:list()))
    return #rest == 0 and not global.help and 2 or 0
  end
  if asks then table.remove(rest, 1) end
  require('bindings.report.memory').limit()
  local explains = rest[1] == 'explain' and rest[2] and not rest[2]:find '^%-' and rest[2] ~= 'help'
  if explains then table.remove(rest, 1) end
  local script, message = found:load(table.remove(rest, 1))
  if not script then failure.usage('%s', message) end
  if asks then ask(script.spec, rest) end
  local opt, workload = options.parse(script.spec, script.name, rest, global, script.given)
  if not opt then failure.usage('%s', workload) end
  if explains then opt.dry_run, opt.explains = opt.dry_run or 'plan', true end
  opt.parse_again = function(new) return options.parse(new.spec, new.name, rest, global, script.given) end
  local explain = opt.explain and command 'explain'
  if explain and #explain.given(script.spec, opt) > 0 then
    return explain.run(script, found, opt)
  elseif opt.help or opt.explain then
    io.stdout:write(command('help').profiler(script.given or script.name, script.profiler, script.spec,
      opt.help == 'all'))
    return 0
  elseif opt.version then
    return version()
  end
  return require('bindings.run.driver').run(script, opt, workload, found)
end

local MAX_WORD = 300 -- bytes of a word in a message; longer words are cut

--- Shortens very long words, such as a value that a message repeats.
local function shorten(message)
  return (message:gsub("[^%s']+", function(word) return #word > MAX_WORD and word:sub(1, MAX_WORD) .. '...' or nil end))
end

return function(...)
  local verbose = false
  for _, word in ipairs { ... } do
    verbose = verbose or word:match '^%-v+$' ~= nil
  end
  local ok, result = xpcall(main, failure.traceback, { ... })
  if ok then return result end
  io.stdout:flush()
  if not failure.is(result) then -- without memory the message handler failed too
    io.stderr:write(('profscript: %s\n'):format(result))
    return 1
  end
  local message = require('bindings.base.text').lines(shorten(result.message:gsub('^profscript:? ', '')))
  local trace = verbose and result.traceback and result.traceback .. '\n' or ''
  require('bindings.print.output').complain(('profscript: %s\n%s'):format(message, trace))
  return result.code
end
