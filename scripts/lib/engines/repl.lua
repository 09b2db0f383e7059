-- SPDX-License-Identifier: GPL-2.0-only
--- The prompt of `profscript repl`: programs in the language of exec that come and go while events flow.
local contract = require 'bindings.options.contract'
local event_fields = require 'lib.engines.event_fields'
local event_list = require 'lib.events'
local facade = require 'bindings.base.facade'
local failure = require 'bindings.base.failure'
local line_reader = require 'lib.run.line_reader'
local nearest = require 'lib.nearest'
local oneliner = require 'lib.engines.oneliner'
local public_event = require 'bindings.view.public_event'
local reload = require 'bindings.run.reload'
local sorted = require 'lib.sorted'
local sys = require 'bindings.base.sys'
local views = require 'bindings.view.views'

local repl = {}

local PROMPT = '> '
local SAMPLES, SAMPLE_EVERY = 5, 1e8 -- kept events of each kind, for examples of values; ns between them

--- Commands: name, arguments, help.
local COMMANDS = {
  { 'show', '[N]', 'print what the programs have collected' },
  { 'list', '', 'list the programs' },
  { 'clear', '[N]', 'forget what they have collected' },
  { 'remove', 'N', 'remove a program' },
  { 'events', '', 'list the events, and how many there were' },
  { 'run', '', 'run the programs over the recording, again and again' },
  { 'help', '', 'print this' },
  { 'quit', '', 'end the run, as Ctrl-D and Ctrl-C do' },
}
local IS_COMMAND = {}
for _, one in ipairs(COMMANDS) do IS_COMMAND[one[1]] = true end

--- A program: code that runs for some events.
---@class repl.Program
---@field text string
---@field program oneliner.Program
---@field run fun(ev: Ev)
---@field events integer[] indexes of its events
---@field event? string the event that it names

--- What remains when the events are opened again.
---@class repl.Kept
---@field added string[] events beside those of -e
---@field programs { number: integer, text: string, event?: string }[]
---@field state table<string, any> variables of the programs
---@field last integer number of the last program
---@field runs? boolean the recording is to be read at once
---@field has_run? boolean it has been read
---@field reader? LineReader

---@class Repl
---@field programs table<integer, repl.Program> by number
local Repl = {}
Repl.__index = Repl

-- Reading a line ---------------------------------------------------------------------------------

--- Returns what a line asks for.
---@param line string
---@return { kind: string, argument?: string, number?: integer, event?: string }? action nil: nothing
function repl.parse(line)
  line = line:match '^%s*(.-)%s*$'
  if line == '' then return end
  if line:sub(1, 1) == '?' then return { kind = 'explain', argument = line:match '^%?%s*(.*)$' } end
  if line:sub(1, 1) == '=' then return { kind = 'value', argument = line:sub(2) } end
  if line:sub(1, 1) == '+' then return { kind = 'add', argument = line:match '^%+%s*(.*)$' } end
  local word, rest = line:match '^(%l+)%s*(.*)$'
  if IS_COMMAND[word] and (rest == '' or rest:find '^%d+$') then
    return { kind = word, number = tonumber(rest) }
  end
  local number, code = line:match '^(%d+)%s*:%s*(.+)$'
  if number then return { kind = 'program', number = tonumber(number), argument = code } end
  local event
  event, code = line:match '^([%w_:.-]+):%s+(.+)$'
  if event then return { kind = 'program', event = event, argument = code } end
  return { kind = 'program', argument = line }
end

--- Returns the events of a name: its whole name or its alias.
function Repl:_named(name)
  local found = {}
  for i, event in ipairs(self._events) do
    if event.name == name or event.alias == name or event.name:match ':(.*)$' == name then found[#found + 1] = i end
  end
  return found
end

function Repl:_event_names()
  local names = {}
  for _, event in ipairs(self._events) do names[#names + 1] = event.name:match ':(.*)$' or event.name end
  return names
end

-- Programs ---------------------------------------------------------------------------------------

--- Returns the events that have the fields that a program reads.
---@return integer[]? events
---@return string? message
function Repl:_events_for(run, among)
  local found, descriptions = {}, {}
  for _, i in ipairs(among) do
    local real = public_event.real(self._events[i])
    local description = { name = real.name, fields = real.view.names }
    descriptions[#descriptions + 1] = description
    if not contract.check_fields(run, { description }, views.METHODS) then found[#found + 1] = i end
  end
  if #found > 0 then return found end
  local message = contract.check_fields(run, descriptions, views.METHODS)
  return nil, message or 'no event has all of these fields'
end

--- Returns the program of a text.
---@param text string
---@param event? string
---@return repl.Program? program
---@return string? message
function Repl:_compile(text, event)
  local among = event and self:_named(event) or self._all
  if #among == 0 then
    return nil, ("no such event '%s'%s"):format(event, nearest.hint(event, self:_event_names()))
  end
  local program, message = oneliner.compile(text, self._session, nil, self.state)
  if not program then return nil, message end
  if program.stacks and not self._has_stacks then return nil, 'for stacks, start the prompt with -g' end
  local env = setmetatable(program.env, { __index = self._scope })
  local code
  code, message = oneliner.load({ program.source }, env, self.state)
  if not code then return nil, message end
  local events
  events, message = self:_events_for(code[1], among)
  if not events then return nil, message end
  for _, i in ipairs(events) do program:find_addresses(public_event.real(self._events[i])) end
  return { text = text, program = program, run = code[1], events = events, event = event }
end

--- Makes for each event a function that runs its programs: calls of fixed functions stay in compiled code, unlike a
--- loop over them. `at` holds the number of the program that runs.
function Repl:_distribute()
  for i in ipairs(self._events) do
    local names, functions, calls = { 'at' }, { self._at }, {}
    for _, number in ipairs(sorted.keys(self.programs)) do
      local one = self.programs[number]
      for _, event in ipairs(one.events) do
        if event == i then
          names[#names + 1], functions[#functions + 1] = 'run_' .. number, one.run
          calls[#calls + 1] = ('at[1] = %d run_%d(ev)'):format(number, number)
        end
      end
    end
    local source = ('local %s = ...\nreturn function(ev) %s end'):format(table.concat(names, ', '),
      table.concat(calls, ' '))
    self._active[i] = #calls > 0 and assert(loadstring(source, '=programs'))(unpack(functions)) or false
  end
end

function Repl:_describe(number)
  local one, names = self.programs[number], {}
  for i, event in ipairs(one.events) do names[i] = self._events[event].name end
  return ('%d: %s  (%s)\n'):format(number, one.text, table.concat(names, ', '))
end

--- Compiles the programs that remain from before. Returns lines about those that do not fit any more.
---@param list { number: integer, text: string, event?: string }[]
---@return string
function Repl:_restore(list)
  local lines = {}
  for _, one in ipairs(list) do
    local program, message = self:_compile(one.text, one.event)
    self.programs[one.number] = program
    if not program then lines[#lines + 1] = ('%d: removed: %s\n'):format(one.number, message) end
  end
  self:_distribute()
  return table.concat(lines)
end

--- Called for an error in the program that runs: removes it.
function Repl:_fail(problem)
  local number = self._at[1]
  self.programs[number] = nil
  self._out:write(('%d: removed: %s\n'):format(number, (tostring(problem):gsub('exec:%d+: ', ''))))
  self:_distribute()
end

--- Keeps a sample of an event.
function Repl:_keep(i, ev)
  self._wanted[i] = false
  table.insert(self._samples[i], 1, ev:keep())
  self._samples[i][SAMPLES + 1] = nil
end

--- Returns the handler of an event.
function Repl:_handler(i)
  local active, seen, wanted = self._active, self._seen, self._wanted
  return function(ev)
    seen[i] = seen[i] + 1
    if wanted[i] then self:_keep(i, ev) end
    local run = active[i]
    if run then
      local ok, problem = pcall(run, ev)
      if not ok then self:_fail(problem) end
    end
  end
end

-- Commands ---------------------------------------------------------------------------------------

local actions = {}

function actions.program(self, action)
  local number = action.number
  if number and not self.programs[number] then return ('there is no program %d\n'):format(number) end
  local new, message = self:_compile(action.argument, action.event)
  if not new then
    local word, is_word = action.argument:match '^([%a_]+)%s*%d*$', action.argument:find '^[%w_+-]+%s*[%w_]*$'
    if word then
      local hint = nearest.hint(word, nearest.keys(IS_COMMAND))
      return ("no such command '%s'%s\n"):format(word, hint ~= '' and hint or '; `help` lists what can be typed')
    end
    return (message:gsub('exec:%d+: ', '')) .. (is_word and '; `help` lists what can be typed' or '') .. '\n'
  end
  if not number then
    self._last = self._last + 1
    number = self._last
  end
  self.programs[number] = new
  self:_distribute()
  return self:_describe(number)
end

function actions.value(self, action)
  local env = setmetatable({}, { __index = self._scope })
  local code, message = oneliner.load({ 'return ' .. action.argument }, env, self.state)
  if not code then return (message:gsub('exec:%d+: ', '')) .. '\n' end
  local results = { pcall(code[1]) }
  if results[1] and oneliner.is_map(results[2]) then
    self._scope.print(results[2])
    return ''
  end
  for i = 2, math.max(#results, 2) do results[i] = tostring(results[i]):gsub('^exec:%d+: ', '') end
  return table.concat(results, '\t', 2) .. '\n'
end

--- Calls each(number, program) for the programs that a command is about. Returns a message if there are none.
local function each_program(self, action, each)
  if action.number and not self.programs[action.number] then
    return ('there is no program %d\n'):format(action.number)
  end
  local numbers = action.number and { action.number } or sorted.keys(self.programs)
  if #numbers == 0 then return 'there are no programs; type code such as count(ev._comm)\n' end
  for _, number in ipairs(numbers) do each(number, self.programs[number]) end
  return ''
end

function actions.show(self, action)
  return each_program(self, action, function(number, one)
    self._out:write(self:_describe(number))
    one.program:print(self._out)
  end)
end

function actions.list(self, action)
  local lines = {}
  local message = each_program(self, action, function(number) lines[#lines + 1] = self:_describe(number) end)
  return table.concat(lines) .. message
end

function actions.clear(self, action)
  return each_program(self, action, function(_, one) one.program:clear() end)
end

function actions.remove(self, action)
  if not action.number then return 'remove takes the number of a program\n' end
  return each_program(self, action, function(number)
    self.programs[number] = nil
    self:_distribute()
  end)
end

function actions.events(self)
  local lines = {}
  for i, event in ipairs(self._events) do lines[i] = ('%-40s %d\n'):format(event.name, self._seen[i]) end
  return table.concat(lines)
end

function actions.help(self)
  local lines = { 'Lua code runs for each event, as in profscript exec. EVENT: CODE runs for one kind of event,\n'
    .. 'N: CODE replaces program N, = VALUE prints a value now. Names that code assigns keep their values.\n\n',
    oneliner.help(), '\n' }
  for _, one in ipairs(COMMANDS) do
    lines[#lines + 1] = ('  %-32s %s\n'):format((one[1] .. ' ' .. one[2]):match '^(.-)%s*$', one[3])
  end
  lines[#lines + 1] = ('  %-32s %s\n'):format('+EVENT', 'add an event, as for -e')
  lines[#lines + 1] = ('  %-32s %s\n'):format('?EVENT.FIELD', 'explain an event, a field, or a function')
  lines[#lines + 1] = ('\nevents: %s\n'):format(table.concat(self:_event_names(), ', '))
  return table.concat(lines)
end

--- Adds an event: all are opened again.
function actions.add(self, action)
  local text, refused = action.argument, reload.refuses(self._run)
  if text == '' then return '+ takes an event, as in + sched:sched_wakeup\n' end
  if refused then return refused .. '\n' end
  local ok, problem = pcall(event_fields.of, { text }, { name = 'repl', input = self._run.opt.input })
  if not ok then
    local message = failure.is(problem) and problem.message or tostring(problem)
    return (message:gsub('^profscript: ', '')) .. '\n'
  end
  for _, added in ipairs(self._kept.added) do
    if added == text then return text .. ' has been added already\n' end
  end
  table.insert(self._kept.added, text)
  self._reopens = ('opened %s, and the programs begin anew'):format(text)
  return ''
end

function actions.run(self)
  if not self._run.is_recorded then return 'the events are live: run is for a recording\n' end
  local refused = self._kept.has_run and reload.refuses(self._run)
  if refused then return refused .. '\n' end
  self._runs = true
  return ''
end

function actions.quit(self)
  self._quits = true
  return ''
end

-- Explaining -------------------------------------------------------------------------------------

--- Returns distinct values of a field in the kept events.
function Repl:_values(i, name)
  local values, seen = {}, {}
  for _, ev in ipairs(self._samples[i]) do
    local ok, value = pcall(function() return ev[name] end)
    local text = ok and type(value) == 'string' and ('%q'):format(value) or ok and type(value) ~= 'userdata'
      and tostring(value):gsub('U?LL$', '')
    if text and not seen[text] then values[#values + 1], seen[text] = text, true end
  end
  return values
end

function Repl:_field_text(i, field)
  local unit, values = event_fields.unit(field.name), self:_values(i, field.name)
  return ('  %-16s %s: %s, %d bytes%s%s\n'):format(field.name, field.type, field.kind, field.size,
    unit and ', ' .. unit or '', #values > 0 and '; such as ' .. table.concat(values, ' ') or '')
end

--- Returns the text about an event, or one of its fields; nil if it has no such field.
function Repl:_event_text(i, name)
  local event, lines, own = self._events[i], {}, {}
  for _, field in pairs(event.fields) do
    if name and field.name == name or not name and not field.name:find '^common_' then own[#own + 1] = field end
  end
  table.sort(own, function(a, b) return a.offset < b.offset end)
  for _, field in ipairs(own) do lines[#lines + 1] = self:_field_text(i, field) end
  for _, word in ipairs(views.SAMPLE_WORDS) do
    if word == name then
      local values = table.concat(self:_values(i, word), ' ')
      lines[#lines + 1] = ('  %-16s of each sample; such as %s\n'):format(word, values)
    end
  end
  if name and #lines == 0 then return end
  if not name and #lines == 0 then lines[1] = '  it has no fields of its own\n' end
  return ('%s, %d seen\n%s'):format(event.name, self._seen[i], table.concat(lines))
end

function Repl:_field_names()
  local names = {}
  for _, event in ipairs(self._events) do
    for _, name in ipairs(public_event.real(event).view.names) do names[name] = true end
  end
  return nearest.keys(names)
end

function actions.explain(self, action)
  local what = action.argument:gsub('%(.*', ''):gsub('^ev%.', '')
  if what == '' then return actions.help(self) end
  for _, one in ipairs(oneliner.FUNCTIONS) do
    if one[1] == what then return ('  %-32s %s\n'):format(one[2], one[3]) end
  end
  for _, one in ipairs(COMMANDS) do
    if one[1] == what then return ('  %-32s %s\n'):format(one[1] .. ' ' .. one[2], one[3]) end
  end
  local event, name = what:match '^(.-)%.(.+)$'
  local among = self:_named(event or what)
  if #among == 0 and not event then among, name = self._all, what end
  local texts = {}
  for _, i in ipairs(among) do texts[#texts + 1] = self:_event_text(i, name) end
  if #texts > 0 then return table.concat(texts) end
  if #among == 0 then return ("no such event '%s'%s\n"):format(event, nearest.hint(event, self:_event_names())) end
  local names = self:_field_names()
  for _, known in ipairs(self:_event_names()) do names[#names + 1] = known end
  for _, one in ipairs(oneliner.FUNCTIONS) do names[#names + 1] = one[1] end
  for _, one in ipairs(COMMANDS) do names[#names + 1] = one[1] end
  return ("no such event, field or function '%s'%s\n"):format(name, nearest.hint(name, names))
end

-- Completion -------------------------------------------------------------------------------------

--- Returns all words that may stand in the place of the last one.
function Repl:_words(before, token)
  local list = {}
  local event = token:match '^%?(.-)%.[%w_]*$'
  if event then
    for _, i in ipairs(self:_named(event)) do
      for name in pairs(self._events[i].fields) do list[#list + 1] = ('?%s.%s'):format(event, name) end
    end
  elseif token:sub(1, 1) == '?' then
    for _, name in ipairs(self:_event_names()) do list[#list + 1] = '?' .. name end
    for _, one in ipairs(oneliner.FUNCTIONS) do list[#list + 1] = '?' .. one[1] end
  elseif token:find '^ev%.' then
    for _, name in ipairs(self:_field_names()) do list[#list + 1] = 'ev.' .. name end
  else
    list[1] = 'ev.'
    for _, one in ipairs(oneliner.FUNCTIONS) do list[#list + 1] = one[1] .. '(' end
    for name in pairs(self.state) do list[#list + 1] = name end
    if before:find '^%s*$' then
      for _, one in ipairs(COMMANDS) do list[#list + 1] = one[1] end
      for _, name in ipairs(self:_event_names()) do list[#list + 1] = name .. ': ' end
    end
  end
  return list
end

--- Completes the last word of a text.
---@param text string up to the cursor
---@return string insert what all candidates have in common after it
---@return string[] candidates sorted
function Repl:complete(text)
  local before, token = text:match '^(.-)([%w_.?]*)$'
  local found, seen = {}, {}
  for _, word in ipairs(self:_words(before, token)) do
    if word:sub(1, #token) == token and not seen[word] then found[#found + 1], seen[word] = word, true end
  end
  table.sort(found)
  local common = found[1] or token
  for _, word in ipairs(found) do
    while word:sub(1, #common) ~= common do common = common:sub(1, -2) end
  end
  return common:sub(#token + 1), found
end

-- The run ----------------------------------------------------------------------------------------

--- Executes a line.
---@param line string
function Repl:execute(line)
  local action = repl.parse(line)
  if action then self._out:write(actions[action.kind](self, action)) end
end

--- Called by the driver before the session starts: lines end its waits.
---@package
function Repl:offer(run)
  self._run = run
  run:wake_on(line_reader.STDIN)
end

--- Called by the driver when the session has started.
---@package
function Repl:open()
  local kept = self._kept
  local function complete(text) return self:complete(text) end
  if kept.reader then
    kept.reader:use(self._out, complete)
  else
    kept.reader = line_reader.new(self._out, PROMPT, complete)
    if kept.reader.is_terminal then self._out:write('`help` lists what can be typed, Ctrl-D ends\n') end
  end
  self._reader = kept.reader
  self._out.has_prompt = kept.reader.is_terminal
  self._out:write(self:_restore(kept.programs))
  kept.programs = {}
  if self._run.is_recorded then
    for i in ipairs(self._events) do self._wanted[i] = true end -- it may have only one batch
    if not kept.runs then self:_ask() end
  end
  kept.runs = nil
end

--- Executes lines until one of them wants something of the run. A pipe ends with the first run.
function Repl:_ask()
  local reader = self._reader
  reader:print()
  while not (self._runs or self._reopens or self._quits) do
    local line = reader:wait()
    if not line then
      self._runs = reader.ended and not reader.is_terminal and not self._kept.has_run
      self._quits = not self._runs
      return
    end
    self:execute(line)
    reader:print()
  end
end

--- Called by the driver when the events have ended. Returns with which events they begin again; nil: they do not.
---@return { events: string[], changes?: string }?
---@package
function Repl:again()
  local kept, is_recorded = self._kept, self._run.is_recorded
  if is_recorded and not self._reopens and not self._quits then
    kept.has_run, self._runs = true, false
    if next(self.programs) then self._out:write(actions.show(self, {})) end
    self:_ask()
  end
  if self._quits or not (self._runs or self._reopens) then return end
  for _, number in ipairs(sorted.keys(self.programs)) do
    local one = self.programs[number]
    table.insert(kept.programs, { number = number, text = one.text, event = one.event })
  end
  kept.last, kept.runs = self._last, self._runs
  if is_recorded then kept.state = {} end
  return { events = kept.added, changes = not is_recorded and self._reopens or nil }
end

--- Asks for samples of the events, now and then.
function Repl:_sample()
  local now = sys.now(self._began)
  if now < self._sample_at then return end
  self._sample_at = now + SAMPLE_EVERY
  for i in ipairs(self._events) do self._wanted[i] = true end
end

--- Called by the driver between batches. True ends the run.
---@return boolean?
---@package
function Repl:poll()
  local reader, was_open = self._reader, not self._reader.ended
  if self._quits or self._reopens then return true end
  self:_sample()
  if self._run.is_recorded then return end
  local line = reader:next()
  while line do
    self:execute(line)
    if self._quits or self._reopens then return true end
    if reader.is_terminal then reader:print() end
    line = reader:next()
  end
  if reader.is_terminal and self._out:has_pending() then reader:print() end
  reader:show()
  if reader.ended and was_open then
    self._run:wake_on(-1)
    return reader.is_terminal or next(self.programs) == nil
  end
end

--- Ends the prompt, and prints what the programs have collected.
function Repl:finish()
  if self._reader then self._reader:close() end
  if next(self.programs) and not self._run.is_recorded then self._out:write(actions.show(self, {})) end
end

--- Returns the handlers of the events, by event.
---@return table<Event, fun(ev: Ev)>
function Repl:handlers()
  local handlers = {}
  for i, event in ipairs(self._events) do handlers[event] = self:_handler(i) end
  return handlers
end

--- Prints what the programs have collected in an interval, and clears it.
function Repl:report()
  if next(self.programs) then self._out:write(actions.show(self, {}) .. actions.clear(self, {})) end
end

local public = facade.class('prompt', Repl, { 'handlers', 'report', 'finish', 'execute', 'complete' })

--- Returns a prompt, a consumer for the handlers of a script.
---@param session Session
---@param out Output
---@param groups Event[][] the events
---@param settings { has_stacks: boolean, globals: table } has_stacks: samples have stacks; globals: of the code
---@return Repl
function repl.new(session, out, groups, settings)
  local kept = session.state('prompt', function() return { added = {}, programs = {}, state = {}, last = 0 } end)
  local self = setmetatable({
    programs = {}, state = kept.state, _kept = kept, _session = session, _out = out,
    _has_stacks = settings.has_stacks, _events = {}, _all = {}, _active = {}, _seen = {}, _wanted = {}, _samples = {},
    _at = { 0 }, _last = kept.last, _sample_at = 0, _began = sys.now(),
  }, Repl)
  for i, event in ipairs(event_list.list(groups)) do
    self._events[i], self._all[i] = event, i
    self._active[i], self._seen[i], self._wanted[i], self._samples[i] = false, 0, false, {}
  end
  self._scope = oneliner.globals(session, out, settings.globals)
  local print_values = self._scope.print
  function self._scope.print(...)
    local first = ...
    if type(first) == 'cdata' and pcall(views.event, first, 'print') then return out:print_event(first) end
    print_values(...)
  end
  return public(self)
end

return repl
