-- SPDX-License-Identifier: GPL-2.0-only
-- Parser of event selectors: `NAME[/FILTER[/ATTR[/...]]]`, separated by commas. It does not check whether the events
-- exist, and does not interpret filters and attributes.
--
-- A separator inside quotes or parentheses is plain text. Inside quotes, a backslash escapes a quote or a backslash.
-- Before any other character it is kept, so that "printf(\"a\n\")" reaches the expression compiler with its \n. One
-- pair of quotes around a whole name, path, filter or value is removed, even if the quotes inside are not escaped, as
-- in "printf("a\n")".
--
-- The names of the machine's PMUs distinguish `PMU/TERMS/` (perf's syntax) from `PROFILER/OPTIONS/`. In both, commas
-- between the first two slashes are plain text.

local cpu_list = require 'bindings.base.cpu_list'
local diagnostic = require 'bindings.base.diagnostic'
local perf_events = require 'bindings.view.perf_events'

local selector = {}

---@class SelectorAttr
---@field name string canonical: 'top-by' for top_by
---@field value string|integer|boolean true for a flag, a number for an integer, otherwise text
---@field column integer of the name

---@class Selector
---@field kind 'event'|'pmu'|'profiler' an 'event' `a:b` may still be a profiler of that name
---@field system string|nil tracepoint system; kprobe, kretprobe, uprobe, uretprobe, usdt; software,
---  hardware, hw-cache, raw, breakpoint; nil for a glob without colon, a PMU and a profiler
---@field name string tracepoint, glob, event, PMU or profiler name; `[module:]func[+off]` of a probe;
---  `provider:name` of usdt
---@field path string|nil text after the '@' of a uprobe or usdt probe
---@field args string|nil text in the parentheses at the end of a probe
---@field is_perf_event boolean|nil it is one of perf's own events; SYSTEM:NAME never is
---@field glob boolean the name or system contains `*`, `?` or `[`
---@field text string the whole selector as typed
---@field column integer
---@field filter string|nil filter of an event, terms of a PMU, options of a profiler
---@field filter_column integer|nil
---@field attrs SelectorAttr[]

-- kind: flag (no value), expr (C expression), string, int, cpulist. optional: the value may be omitted.
-- repeats: may be given more than once. common: valid for all profilers. min: minimum value.
local ATTRIBUTES = {
  ['stack'] = { kind = 'flag', common = true, help = 'record the stack of each event' },
  ['max-stack'] = { kind = 'int', optional = true, common = true, help = 'record stacks of at most N frames' },
  ['alias'] = { kind = 'string', common = true, help = 'name of the event in tables' },
  ['cpus'] = { kind = 'cpulist', common = true, help = 'only on these CPUs' },
  ['period'] = { kind = 'int', min = 1, common = true, help = 'sample every Nth event' },
  ['freq'] = { kind = 'int', min = 1, common = true, help = 'take N samples per second' },
  ['pull'] = { kind = 'string', repeats = true, common = true,
    help = 'take the event from other machines: PORT, HOST:PORT, unix:PATH, vsock:CID:PORT, FILE' },
  ['vm'] = { kind = 'string', common = true,
    help = "with pull=: the sender is this guest (UUID, pid or name), whose CPUs are threads here" },
  ['push'] = { kind = 'string', repeats = true, common = true,
    help = "send the event to PORT, HOST:PORT, unix:PATH, vsock:PORT, a device or file, not to the profiler" },
  ['untraced'] = { kind = 'flag', help = 'print the event only in details' },
  ['trigger'] = { kind = 'flag', help = 'print a report at this event' },
  ['exec'] = { kind = 'expr', common = true, help = 'evaluate for each event; may print with printf()' },
  ['top-by'] = { kind = 'expr', repeats = true, help = 'add a column and sort by it' },
  ['top-variance'] = { kind = 'expr', help = 'add a column with the variance of this, and sort by it' },
  ['top-add'] = { kind = 'expr', repeats = true, help = 'add a column' },
  ['comm'] = { kind = 'expr', help = 'string to print with the key' },
  ['key'] = { kind = 'expr', help = 'value by which events are grouped or paired' },
  ['printkey'] = { kind = 'expr', help = "expression that prints the key, given as 'key'" },
  ['role'] = { kind = 'expr', help = 'bit 0: can be the first event of a pair; bit 1: can be the second' },
  ['num'] = { kind = 'expr', help = 'value to aggregate' },
  ['ptr'] = { kind = 'expr', help = 'address of the allocation' },
  ['size'] = { kind = 'expr', help = 'size of the allocation in bytes' },
  ['index'] = { kind = 'string', help = 'field by which queries find and sort events' },
}
selector.attributes = ATTRIBUTES

local NAMES = {}
for name in pairs(ATTRIBUTES) do NAMES[#NAMES + 1] = name end
table.sort(NAMES)

local SPELLINGS = { top_by = 'top-by', top_add = 'top-add', top_variance = 'top-variance', max_stack = 'max-stack' }

local PROBES = { kprobe = true, kretprobe = true, uprobe = true, uretprobe = true, usdt = true }

local function fail(text, column, message, hint)
  error(diagnostic.new('event', text, column, message, hint), 0)
end

-- Returns the position after the quoted string that starts at i.
local function skip_quotes(text, i)
  local quote = text:sub(i, i)
  local at = i + 1
  while true do
    at = text:find('[\\' .. quote .. ']', at)
    if not at then fail(text, i, 'unclosed quote ' .. quote) end
    if text:sub(at, at) == quote then return at + 1 end
    at = at + 2
  end
end

-- Returns the position of the first separator in text[i..stop] outside quotes and parentheses, nil if there is none.
-- The pattern matches all separators, so that the search never runs far beyond stop.
local function find(text, i, stop, separator)
  local open = {}
  while true do
    i = text:find('[\'"(),/=@]', i)
    if not i or i > stop then break end
    local char = text:sub(i, i)
    if char == "'" or char == '"' then
      i = skip_quotes(text, i)
    else
      if char == '(' then
        open[#open + 1] = i
      elseif char == ')' then
        open[#open] = nil
      elseif char == separator and #open == 0 then
        return i
      end
      i = i + 1
    end
  end
  if #open > 0 then fail(text, open[#open], "unclosed parenthesis '('") end
  return nil
end

-- Calls each(from, to) for every part of text[i..stop]. An empty part has to < from. skip(i) may return a position
-- before which the part that begins at i cannot end.
local function split(text, i, stop, separator, each, skip)
  while true do
    local at = find(text, skip and skip(i) or i, stop, separator)
    each(i, (at or stop + 1) - 1)
    if not at then return end
    i = at + 1
  end
end

local function trim(text, from, to)
  from = text:find('%S', from) or to + 1
  while to >= from and text:find('^%s', to) do to = to - 1 end
  return from, to
end

-- Returns whether the quoted string text[from..after - 1] has unclosed parentheses. It is then not a string, but the
-- beginning of an expression that is quoted as a whole.
local function is_unbalanced(text, from, after)
  local quoted = text:sub(from, after - 1)
  return select(2, quoted:gsub('%(', '')) > select(2, quoted:gsub('%)', ''))
end

-- Returns text[from..to] without the blanks and the pair of quotes around it, and its column.
local function content(text, from, to)
  from, to = trim(text, from, to)
  local quote = text:match('^[\'"]', from)
  local after = quote and from < to and skip_quotes(text, from)
  if after == to + 1 then
    return (text:sub(from + 1, to - 1):gsub('\\([\\' .. quote .. '])', '%1')), from + 1
  elseif after and text:sub(to, to) == quote and is_unbalanced(text, from, after) then
    return text:sub(from + 1, to - 1), from + 1
  end
  return text:sub(from, to), from
end

local function check_cpulist(text, value, column)
  local ranges, at = cpu_list.parse(value)
  if ranges then return end
  fail(text, column + at - 1, ("invalid CPU list '%s'"):format(value), 'expected e.g. 0-3,7')
end

---@type table<string, fun(text: string, value: string, column: integer, attribute: table): any>
local CHECKS = {
  cpulist = check_cpulist,
  int = function(text, value, column, attribute)
    local min = attribute.min or 0
    if not value:find('^%d+$') or #value > 12 or tonumber(value) < min then
      fail(text, column, ("'%s' is not an integer >= %d"):format(value, min))
    end
    return tonumber(value)
  end,
}

local function parse_attr(text, from, to, attrs)
  from, to = trim(text, from, to)
  if to < from then fail(text, from, 'empty attribute') end
  local equals = find(text, from, to, '=')
  local _, name_end = trim(text, from, (equals or to + 1) - 1)
  local typed = text:sub(from, name_end)
  local name = SPELLINGS[typed] or typed
  local spec = ATTRIBUTES[name]
  if not spec then
    local hint = diagnostic.suggest(typed, NAMES)
    local last = attrs[#attrs]
    if not hint and last and type(last.value) == 'string' then
      hint = ("quote the value of '%s' if the '/' is part of it"):format(last.name)
    end
    fail(text, from, ("unknown attribute '%s'"):format(typed), hint)
  end
  for _, attr in ipairs(attrs) do
    if attr.name == name and not spec.repeats then
      fail(text, from, ("attribute '%s' is given twice"):format(name))
    end
  end

  local attr = { name = name, column = from, value = true }
  attrs[#attrs + 1] = attr
  if spec.kind == 'flag' then
    if equals then fail(text, equals, ("attribute '%s' takes no value"):format(name)) end
    return
  end
  if not equals and spec.optional then
    attr.value = 0
    return
  end
  local value, column = '', to + 1
  if equals then value, column = content(text, equals + 1, to) end
  if not value:find('%S') then
    local hint = equals == to and text:find('^/[^/,]', to + 1) and "quote it if it contains a '/'" or nil
    fail(text, equals or from, ("attribute '%s' needs a value"):format(name), hint)
  end
  local check = CHECKS[spec.kind]
  attr.value = check and check(text, value, column, spec) or value
end

-- Cuts "(args)" off the end of text[from..to] and returns the new end. A quoted path may contain parentheses, too.
local function cut_args(text, sel, from, to)
  local quote = text:match('^%s*()["\']', from)
  local after = quote and skip_quotes(text, quote) or from
  local open, args = text:sub(1, to):match('^[^(]*()(%b())%s*$', after)
  if not open then return to end
  sel.args = args:sub(2, -2)
  return open - 1
end

-- Parses func@path(args), and func(args) of a kprobe. A '(' before the '@' belongs to the name (C++ signatures).
-- is_sent: somebody else has set the probe, so that func is enough.
local function parse_probe(text, sel, from, to, is_sent)
  local at = find(text, from, to, '@')
  if at then
    sel.path = content(text, at + 1, cut_args(text, sel, at + 1, to))
    to = at - 1
    if sel.path == '' then fail(text, at, "missing file after '@'") end
  elseif not is_sent and sel.system ~= 'kprobe' and sel.system ~= 'kretprobe' then
    fail(text, to + 1, ('%s needs a file'):format(sel.system), 'use NAME@"/path"')
  end
  if sel.system == 'kprobe' or sel.system == 'kretprobe' then to = cut_args(text, sel, from, to) end
  sel.name = content(text, from, to)
end

local function parse_name(text, sel, from, to, is_recorded)
  local typed = text:sub(from, to)
  -- "func@path" may be quoted as a whole: uprobe:"func@path".
  local system, start = typed:match('^([%w_-]+):()')
  if system and PROBES[system] then
    sel.system = system
    local name_from = from + start - 1
    if text:find('^["\']', name_from) and skip_quotes(text, name_from) == to + 1 then
      name_from, to = name_from + 1, to - 1
    end
    local is_sent = is_recorded
    for _, attr in ipairs(sel.attrs) do is_sent = is_sent or attr.name == 'pull' end
    parse_probe(text, sel, name_from, to, is_sent)
  else
    local name = content(text, from, to)
    system, start = name:match('^([^:]*):()')
    sel.glob = name:find('[*?[]') ~= nil
    if system then
      sel.system, sel.name = system, name:sub(start)
      if system == '' then fail(text, from, "missing event system before ':'") end
    else
      sel.name = name
      -- page-faults is a perf event and a profiler. With options or 'untraced' it is the profiler.
      local options = sel.filter and sel.filter:find('^%s*%-')
      for _, attr in ipairs(sel.attrs) do
        options = options or attr.name == 'untraced'
      end
      local event = not options and perf_events.find(name)
      sel.system = event and event.kind or nil
      sel.is_perf_event = event ~= nil and event ~= false
      if not sel.system and not sel.glob then sel.kind = 'profiler' end
    end
  end
  if sel.name == '' then fail(text, from + (start or 1) - 1, 'missing event name') end
end

-- Returns the PMU whose terms begin at i, and the position of the slash after them.
local function find_terms(text, i, pmus)
  local name, slash = text:match('^%s*([%w_.-]+)%s*()/', i)
  if name and pmus[name] then return name, text:find('/', slash + 1, true) or #text end
end

-- Returns the position after a "mem:ADDRESS[/LENGTH][:ACCESS]" that begins at i, nil if there is none.
local function find_breakpoint(text, i)
  local after = text:match('^mem:%w+/%d+()', i) or text:match('^mem:%w+()', i)
  return after and (text:match('^:%a+()', after) or after)
end

local function parse_event(text, from, to, pmus, is_recorded)
  from, to = trim(text, from, to)
  if to < from then fail(text, math.min(from, #text + 1), 'missing event name') end
  local sel = { kind = 'event', glob = false, text = text:sub(from, to), column = from, attrs = {} }
  local breakpoint = find_breakpoint(text, from)
  local slash = find(text, breakpoint or from, to, '/')
  if slash then
    local probe = text:sub(from, slash - 1):match('^(%w+):.*@%s*%.?%.?$')
    if probe and PROBES[probe] then
      fail(text, slash, 'an unquoted path ends at its first slash', 'quote it: @"/path"')
    end
    local part = 0
    split(text, slash + 1, to, '/', function(first, last)
      part = part + 1
      if part == 1 then
        local filter, column = content(text, first, last)
        if filter ~= '' then sel.filter, sel.filter_column = filter, column end
      elseif last < to or first <= last then -- nothing follows the closing slash
        parse_attr(text, first, last, sel.attrs)
      end
    end)
  end
  local _, name_end = trim(text, from, (slash or to + 1) - 1)
  if name_end < from then fail(text, from, 'missing event name') end
  local pmu = find_terms(text, from, pmus)
  if pmu then
    sel.kind, sel.name = 'pmu', pmu
  elseif breakpoint then
    local name = text:sub(from, name_end)
    local event, message = perf_events.breakpoint(name)
    if not event then fail(text, from + 4, message) end
    sel.system, sel.name, sel.is_perf_event = event.kind, name, true
  else
    parse_name(text, sel, from, name_end, is_recorded)
  end
  return sel
end

-- Returns the position of the slash after the options of the profiler at i.
local function find_options(text, i, profilers)
  local name, slash = text:match('^%s*([%w_.-]+)%s*()/', i)
  if name and profilers[name] then return find(text, slash + 1, #text, '/') end
end

--- Parses a list of event selectors.
---@param text string
---@param pmus? table<string, boolean> by name
---@param profilers? table<string, any> by name
---@param is_recorded? boolean the events are those of a recording
---@return Selector[]|nil
---@return Diagnostic|nil error
function selector.parse(text, pmus, profilers, is_recorded)
  local list = {}
  pmus, profilers = pmus or {}, profilers or {}
  local function skip(i) return select(2, find_terms(text, i, pmus)) or find_options(text, i, profilers) end
  local ok, err = pcall(split, text, 1, #text, ',', function(from, to)
    list[#list + 1] = parse_event(text, from, to, pmus, is_recorded)
  end, skip)
  if ok then return list end
  if type(err) ~= 'table' then error(err, 0) end
  return nil, err
end

selector.caret = diagnostic.caret

return selector
