-- SPDX-License-Identifier: GPL-2.0-only
--- Command line parser with perf's rules: attached or separate values, bundled letters, unambiguous abbreviations. An
--- underscore in a declared name is a dash on the command line: `only_than` is `--only-than`, and `--only_than` works,
--- too. Parsed times are in ns.
local declarations = require 'bindings.options.declare'
local nearest = require 'bindings.base.nearest'
local types = require('bindings.options.types').types

local options = { declare = declarations.declare }

---@class opt.Parser
---@field spec opt.Spec
---@field words string[]
---@field at integer index of the next word
---@field opts table<string, any>
---@field given table<string, boolean> options seen on this command line
---@field filled integer number of positionals that have a value
---@field ignored string[] options taken without effect
---@field notes string[] lines about doubtful values

--- Stores a value given by the user. The first use replaces the default. Later uses of a list append.
local function store(p, option, value)
  local name, kind = option.name, types[option.type]
  if option.is_ignored then
    p.ignored[#p.ignored + 1] = option.long
    return
  end
  if kind.list or option.multiple then
    local list = p.given[name] and p.opts[name] or {}
    local seen = {}
    for _, element in ipairs(list) do
      seen[element] = true
    end
    for _, element in ipairs(kind.list and value or { value }) do
      if not kind.sorted or not seen[element] then list[#list + 1] = element end
      seen[element] = true
    end
    if kind.sorted then table.sort(list, kind.sorted) end
    value = list
  elseif kind.joined and p.given[name] then
    value = p.opts[name] .. ',' .. value
  end
  p.given[name] = true
  p.opts[name] = value
end

--- Returns whether the next word is the value of a switch with an optional value.
local function claims_next(p, kind)
  for _, pattern in ipairs(kind.claims) do
    if (p.words[p.at] or ''):find(pattern) then return true end
  end
  return false
end

--- Returns a line about a time that is hardly meant: --than without a unit is in ns, while -i is in ms and --duration
--- in s. Nearly all latencies are longer than a microsecond.
local function doubt(option, text, value)
  local is_limit = option.type == 'duration' and (option.name == 'than' or option.name == 'only_than')
  if is_limit and not option.unit and value > 0 and value < 1000 and not text:find '%a' then
    return ('--%s %s is %sns; give a unit for more, such as --%s %sms'):format(option.long, text, text, option.long,
      text)
  end
end

--- Parses one option. Its value is attached to the letter or follows '=', or is the next word.
---@param p opt.Parser
---@param option opt.Option
---@param shown string as written by the user
---@param attached? string
---@return string? message
local function take(p, option, shown, attached)
  local kind, is_long = types[option.type], shown:sub(1, 2) == '--'
  shown = ("option '%s'"):format(shown)
  if kind.switch and not (kind.claims and is_long and (attached or claims_next(p, kind))) then
    if attached then return ('%s takes no value'):format(shown) end
    store(p, option, option.type == 'count' and p.opts[option.name] + 1 or true)
    return
  end
  if not attached and option.optional_value ~= nil then
    store(p, option, option.optional_value)
    return
  end
  local text = attached
  if not text then
    text = p.words[p.at]
    if not text then return ('%s needs a value (%s)'):format(shown, declarations.argument(option)) end
    p.at = p.at + 1
  end
  local value, message = kind.parse(text, option)
  if value == nil then return ('%s: %s'):format(shown, message) end
  p.notes[#p.notes + 1] = doubt(option, text, value)
  store(p, option, value)
end

--- Returns the options that a long name can mean: an exact match, a negated flag, or all options that it abbreviates.
---@param spec opt.Spec
---@param name string without leading dashes
---@return { option: opt.Option, negated: boolean, long: string }[]
local function long_matches(spec, name)
  local matches = {}
  for _, option in ipairs(spec.list) do
    local forms = { option.long }
    if types[option.type].negatable and not option.always and name:sub(1, 3) == 'no-' then
      forms[2] = 'no-' .. option.long
    end
    for i, long in ipairs(forms) do
      local match = { option = option, negated = i == 2, long = long }
      if long == name then return { match } end
      if long:sub(1, #name) == name then matches[#matches + 1] = match end
    end
  end
  return matches
end

--- Returns the message for an unknown option: not supported by this profiler, misplaced, or misspelled.
local function unknown(spec, shown, matches)
  for _, option in ipairs(declarations.common) do
    if matches(option) then
      return spec.global and ("option '%s' must follow the profiler's name"):format(shown)
        or ("option '%s' does not apply to this profiler"):format(shown)
    end
  end
  return ("unknown option '%s'"):format(shown)
end

---@param p opt.Parser
---@param word string starts with two dashes
---@return string? message
local function take_long(p, word)
  local typed, attached = word:match '^%-%-([^=]*)=?(.*)$'
  if not word:find('=', 1, true) then attached = nil end
  local name = typed:gsub('_', '-')
  local matches = name ~= '' and long_matches(p.spec, name) or {}
  if #matches == 0 and name ~= '' then matches = long_matches(p.spec, name:lower()) end -- perf-prof has --exit-N
  if #matches == 0 and name ~= '' then matches = long_matches(p.spec.ignored, name) end
  if #matches > 1 then
    return ("ambiguous option '--%s': --%s or --%s"):format(typed, matches[1].long, matches[2].long)
  end
  local match = matches[1]
  if not match then
    local message = unknown(p.spec, '--' .. typed, function(option) return option.long == name end)
    local suggestion = message:find '^unknown' and nearest.find(name, nearest.keys(p.spec.long))
    return suggestion and ("%s; did you mean '--%s'?"):format(message, suggestion) or message
  end
  local stands_for = match.option.stands_for
  if stands_for and not attached then
    p.notes[#p.notes + 1] = match.option.note
    return take_long(p, '--' .. stands_for)
  end
  if match.negated then
    if attached then return ("option '--%s' takes no value"):format(match.long) end
    store(p, match.option, false)
    return
  end
  return take(p, match.option, '--' .. match.long, attached)
end

--- Parses a word of option letters: switches may be bundled, and the value of an option is the rest of the word.
---@param p opt.Parser
---@param word string starts with one dash
---@return string? message
local function take_short(p, word)
  local long = word:match('^%-([^=]*)'):gsub('_', '-')
  if #long > 1 and p.spec.long[long] then -- otherwise -order would write to a file "rder"
    return ("unknown option '-%s'; did you mean '--%s'?"):format(long, long)
  end
  local i = 2
  while i <= #word do
    local letter = word:sub(i, i)
    local option = p.spec.short[letter] or p.spec.ignored.short[letter]
    local message
    if not option then
      message = unknown(p.spec, '-' .. letter, function(common) return common.short == letter end)
    elseif types[option.type].switch then
      message = take(p, option, '-' .. letter)
    else
      local attached = i < #word and word:sub(i + 1) or nil
      message = take(p, option, '-' .. letter, attached)
      i = #word
    end
    if message then return message end
    i = i + 1
  end
end

--- Parses a word as the next positional.
---@param p opt.Parser
---@param word string
---@return boolean taken false if all positionals have a value
---@return string? message
local function take_positional(p, word)
  local option = p.spec.positional[p.filled + 1]
  if not option then
    option = p.spec.positional[p.filled]
    if not option or not option.multiple then return false end
  else
    p.filled = p.filled + 1
  end
  local value, message = types[option.type].parse(word, option)
  if value == nil then return true, ('%s: %s'):format(declarations.argument(option), message) end
  store(p, option, value)
  return true
end

--- Parses the words after "--": the positionals that are still missing, up to an optional second "--".
---@param p opt.Parser
---@return string? message
local function take_rest(p)
  if p.filled == #p.spec.positional then return end
  while p.words[p.at] and p.words[p.at] ~= '--' do
    local taken, message = take_positional(p, p.words[p.at])
    if not taken or message then return message end
    p.at = p.at + 1
  end
  if p.words[p.at] then p.at = p.at + 1 end
end

--- Returns whether the first word of a command line could only be a workload.
local function is_plain(spec) return spec.workload and not spec.global and #spec.positional == 0 end

---@param p opt.Parser
---@return string? message
---@return integer? at index of the invalid word
local function take_all(p)
  while p.words[p.at] do
    local word, first = p.words[p.at], p.at
    local message
    if word == '--' then
      p.at = p.at + 1
      return take_rest(p), p.at
    elseif word == 'help' and (p.spec.takes_events or first == 1 and is_plain(p.spec)) then
      p.opts[p.spec.takes_events and 'explain' or 'help'] = true
      p.at = p.at + 1
    elseif word:sub(1, 1) == '-' and word ~= '-' then
      p.at = p.at + 1
      message = (word:sub(2, 2) == '-' and take_long or take_short)(p, word)
    else
      local taken
      taken, message = take_positional(p, word)
      if not taken then return end
      p.at = p.at + 1
    end
    if message then return message, math.max(first, p.at - 1) end
  end
end

--- Checks the complete command line: missing options and positionals, unexpected words.
---@param p opt.Parser
---@return string? message
local function check_whole(p)
  for _, option in ipairs(p.spec.list) do
    if option.required and not p.given[option.name] then
      local letter = option.short and '-' .. option.short or '--' .. option.long
      return ("option '%s %s' is required"):format(letter, declarations.argument(option))
    end
  end
  for i = p.filled + 1, #p.spec.positional do
    local option = p.spec.positional[i]
    if option.required then
      return ('missing %s: %s'):format(declarations.argument(option), option.help)
    end
  end
  if not p.spec.workload and p.words[p.at] then
    return ("unexpected argument '%s'"):format(p.words[p.at])
  end
end

local function copy(value)
  if type(value) ~= 'table' then return value end
  local list = {}
  for i, element in ipairs(value) do
    list[i] = element
  end
  return list
end

--- Parses the words after a profiler's name. Parsing stops at the first word that is neither an option nor a
--- positional: it is the beginning of the workload.
---@param spec opt.Spec
---@param words string[]
---@param base? table parsed global options, initial values of verbose and quiet
---@return table? opts by name, with defaults; `explain` is set if the word help was given; `ignored`: options
--- without effect; `notes`: lines about doubtful values
---@return string[]|string workload the remaining words, or the message
---@return table<string, boolean>|integer? given the options on this line, or the index of the invalid word
function options.parse_words(spec, words, base)
  local p = { spec = spec, words = words, at = 1, opts = {}, given = {}, filled = 0, ignored = {}, notes = {} }
  for _, list in ipairs { spec.list, spec.positional } do
    for _, option in ipairs(list) do
      p.opts[option.name] = copy(option.default)
    end
  end
  if base then
    p.opts.verbose, p.opts.quiet = base.verbose, base.quiet
  end

  local message, at = take_all(p)
  if not message and not (p.opts.help or p.opts.version or p.opts.explain) then message = check_whole(p) end
  if message then return nil, message, at end
  if #p.ignored > 0 then p.opts.ignored = p.ignored end
  if #p.notes > 0 then p.opts.notes = p.notes end
  local rest = {}
  for i = p.at, #words do
    rest[#rest + 1] = words[i]
  end
  return p.opts, rest, p.given
end

--- Parses the same words of a command line. The message has a second line that points to the help.
---@param spec opt.Spec
---@param name? string the profiler, for messages
---@param words string[]
---@param base? table
---@param given? string how the user named the profiler, if not by its name
---@return table? opts
---@return string[]|string workload
function options.parse(spec, name, words, base, given)
  local opts, rest = options.parse_words(spec, words, base)
  if opts then return opts, rest end
  local command = 'profscript' .. (name and ' ' .. name or '')
  return nil, ("%s: %s\ntry '%s -h'"):format(command, rest, given and 'profscript ' .. given or command)
end

local global_spec = assert(declarations.declare {
  unsupported = { 'event', 'attach', 'run', 'ring' },
  options = {
    check = { type = 'flag', help = 'print what this kernel and this user can trace' },
    symbols = { type = 'string', argument = 'FILE', help = 'symbolize addresses read from stdin' },
  },
})
global_spec.workload = true -- the profiler and its words
global_spec.global = true
options.global_spec = global_spec

local explain_spec

--- Returns the options of `profscript -e EVENT help`.
---@return opt.Spec
function options.explain_spec()
  explain_spec = explain_spec or assert(declarations.declare {
    unsupported = { 'attach', 'run', 'ring' },
    options = { input = {}, format = {}, json = {}, csv = {} },
  })
  return explain_spec
end

--- Parses a whole command line up to the profiler's name: `[-v] [-q] [-V] [-h] NAME ...`.
---@param words string[]
---@return table? opts verbose, quiet, version, help, check, symbols
---@return string[]|string rest NAME and the words after it, or the message
function options.parse_global(words)
  return options.parse(global_spec, nil, words)
end

return options
