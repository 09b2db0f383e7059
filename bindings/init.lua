-- SPDX-License-Identifier: GPL-2.0-only
--- The profscript command line: picks the profiler and runs it. Returns the exit code: 0, 1 for a
--- failure, 2 for a command line that cannot be meant.
require 'jit.opt'.start(
  'maxtrace=8000', -- many event classes make many side traces
  'maxrecord=16000', -- a view with many fields is a long chain of comparisons that folds away
  'maxirconst=2000',
  'maxside=1000',
  'maxmcode=65536'
)

-- Compiling what runs once costs more than it gives: the driver switches the compiler on for the
-- loop over the events.
jit.off()

local check = require 'bindings.check'
local complete = require 'bindings.complete'
local driver = require 'bindings.driver'
local explain = require 'bindings.explain'
local failure = require 'bindings.failure'
local help = require 'bindings.help'
local machine = require 'bindings.machine'
local options = require 'bindings.options'
local scripts = require 'bindings.scripts'
local sys = require 'bindings.sys'
local text = require 'bindings.text'
local version = require 'bindings.version'

--- `profscript -e EVENT help`: there is no profiler's name. Nil where the words say something else.
local function explain_events(words, found)
  local opt, rest = options.parse(options.explain_spec, nil, words)
  if not opt or not opt.explain or #rest > 0 or #opt.event == 0 then return end
  return explain.run(nil, found, opt)
end

--- `profscript --complete LINE POINT BREAKS`, which the completion of the shell runs: how to go on with
--- the line, then one candidate a line.
local function print_completion(words, found)
  local line = (words[2] or ''):sub(1, tonumber(words[3]))
  local result = complete.run(line, words[4] or '', machine.completion(found))
  io.stdout:write(result.mode, '\n')
  for _, word in ipairs(result.list) do
    io.stdout:write(word, '\n')
  end
  return 0
end

--- `profscript --check`. Exit code 0: tracepoints work.
local function print_check()
  local lines, works = check.render(check.lines(machine.checks()))
  io.stdout:write(lines)
  return works and 0 or 1
end

local function main(words)
  local found = scripts.new(sys, arg.data_dir)
  if words[1] == '--complete' then return print_completion(words, found) end
  if words[1] == 'help' then table.insert(words, table.remove(words, 1)) end
  local explained = explain_events(words, found)
  if explained then return explained end
  local global, rest = options.parse_global(words)
  if not global then failure.usage('%s', rest) end
  if global.version then
    io.stdout:write(help.version(version))
    return 0
  end
  if global.check then return print_check() end
  if global.symbols then rest = { 'symbols', '--', global.symbols, unpack(rest) } end
  if global.help or #rest == 0 or rest[1] == 'help' then
    io.stdout:write(help.overview(found:list()))
    return #rest == 0 and not global.help and 2 or 0
  end
  local script, message = found:load(table.remove(rest, 1))
  if not script then failure.usage('%s', message) end
  local opt, workload = options.parse(script.spec, script.name, rest, global)
  if not opt then failure.usage('%s', workload) end
  if opt.explain and #opt.event > 0 then
    return explain.run(script, found, opt)
  elseif opt.help or opt.explain then
    io.stdout:write(help.profiler(script.name, script.profiler, script.spec))
    return 0
  elseif opt.version then
    io.stdout:write(help.version(version))
    return 0
  end
  return driver.run(script, opt, workload, found)
end

local verbose = false
for _, word in ipairs { ... } do
  verbose = verbose or word:match '^%-v+$' ~= nil
end

local ok, result = xpcall(main, failure.traceback, { ... })
if ok then return result end
io.stdout:flush()
local message = text.lines((result.message:gsub('^profscript:? ', '')))
io.stderr:write('profscript: ', message, '\n')
if verbose and result.traceback then io.stderr:write(result.traceback, '\n') end
return result.code
