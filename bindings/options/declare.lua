-- SPDX-License-Identifier: GPL-2.0-only
--- Declarations of options: the common ones, and those of a profiler's table. Parsing, help and
--- completion all read the spec made here, so they agree.
local nearest = require 'bindings.base.nearest'
local value_types = require 'bindings.options.types'

local types = value_types.types
local declarations = {}

--- One option. A script declares it as `name = { type = ..., help = ..., ... }`.
---@class opt.Option
---@field name string key in the parsed table
---@field long string name on the command line, without dashes
---@field short? string letter
---@field type string a key of the table in option_types
---@field default? any in the type's own form; text is parsed like the user's
---@field help string
---@field argument? string how help calls the value
---@field unit? string of a bare number: for a duration one of ns us ms s min h, else shown in help only
---@field values? string[] of an enum
---@field min? number
---@field max? number
---@field multiple? boolean may be repeated; the parsed value is a list
---@field optional_value? any stored when the option is given without `=VALUE`
---@field required? boolean
---@field always? boolean a flag without a negated form
---@field own? boolean a common option that means what the script makes of it, and nothing else
---@field either? boolean a flag that is nil when it is not given
---@field is_ignored? boolean the value is not stored
---@field stands_for? string another option and its value, as on the command line without dashes
---@field group string

--- All that one profiler accepts.
---@class opt.Spec
---@field list opt.Option[] in the order of help
---@field long table<string, opt.Option>
---@field short table<string, opt.Option>
---@field positional opt.Option[]
---@field dropped table<string, boolean> groups, other sets and single options the profiler has no use for
---@field ignored opt.Spec options without a meaning for the profiler that it takes anyway, with a warning
---@field takes_events? boolean an option selects events
---@field workload boolean whether it takes a command to run
---@field global? boolean the options before the name of a profiler

-- Option groups in the order of help; `script` is what the profiler itself declares, under its name.
declarations.groups = {
  { name = 'script' },
  { name = 'flame', title = 'flame graph options' },
  { name = 'event', title = 'event options' },
  { name = 'attach', title = 'attach options' },
  { name = 'run', title = 'run and output options' },
  { name = 'ring', title = 'ring buffer options' },
  { name = 'verbosity', title = 'general options' },
}
local group_names = { positional = true }
for _, group in ipairs(declarations.groups) do group_names[group.name] = true end
local DROPPABLE = { event = true, attach = true, run = true, ring = true }
-- Options of several groups that go together, where a profiler has no use for what they are about.
local ABOUT = {
  samples = { -- where the kernel only counts
    'freq', 'call_graph', 'user_callchain', 'kernel_callchain', 'srcline', 'irqs_disabled', 'tif_need_resched',
    'nr_running_min', 'nr_running_max', 'exclude_pid', 'sched_policy', 'prio', 'perfeval_cpus', 'perfeval_pids',
    'sampling_limit',
  },
  threads = { 'pids', 'tids', 'inherit', 'ptrace' }, -- and a workload
  modes = { 'exclude_user', 'exclude_kernel', 'exclude_host', 'exclude_guest' },
}

-- How samples are read and bounded: nothing changes if a profiler that only counts ignores it.
local IGNORED = {
  samples = { 'perfeval_cpus', 'perfeval_pids', 'sampling_limit' },
  ring = { 'mmap_pages', 'watermark', 'realtime', 'lost', 'order', 'order_mem' },
}

local COMMON = {
  { group = 'event', name = 'event', short = 'e', type = 'event', multiple = true,
    help = 'events to use, comma separated: sys:name, globs, each with /filter/attributes/' },
  { group = 'event', name = 'key', short = 'k', type = 'string', argument = 'EXPR',
    help = 'key of all events that have no key= attribute' },
  { group = 'event', name = 'filter', type = 'string', argument = 'FILTER',
    help = 'keep only the events this filter matches' },
  { group = 'event', name = 'freq', short = 'F', type = 'integer', min = 1, unit = 'Hz',
    help = 'sample hardware, clock and memory events about so often a second' },
  { group = 'event', name = 'period', type = 'duration', argument = 'N', min = 1,
    help = 'sample such events every so many; those of clocks each such time' },
  { group = 'event', name = 'call_graph', short = 'g', type = 'stacks',
    help = 'record stacks of all events; dwarf: also of programs without frame pointers' },
  { group = 'event', name = 'user_callchain', type = 'flag', either = true,
    help = 'the user half of stacks; the default' },
  { group = 'event', name = 'kernel_callchain', type = 'flag', either = true,
    help = 'the kernel half of stacks; the default' },
  { group = 'event', name = 'srcline', type = 'flag',
    help = 'file and line of frames of programs, and the functions inlined there' },
  { group = 'event', name = 'self', type = 'flag', help = "include this tool's own process" },

  { group = 'attach', name = 'cpus', short = 'C', type = 'cpus',
    help = 'only on these CPUs, such as 0-3,7; without it all that are online' },
  { group = 'attach', name = 'pids', short = 'p', type = 'processes',
    help = 'only these processes, by number or name, all their threads' },
  { group = 'attach', name = 'tids', short = 't', type = 'ids', help = 'only these threads' },
  { group = 'attach', name = 'inherit', type = 'flag', either = true,
    help = 'and new threads and children of these; the default for -p and a workload' },
  { group = 'attach', name = 'ptrace', type = 'flag', always = true,
    help = 'like --inherit, and go on until all of them have exited, daemons too' },
  { group = 'attach', name = 'cgroups', type = 'words',
    help = 'only in these cgroups: names from the root of the hierarchy, or regular expressions' },
  { group = 'attach', name = 'exclude_user', type = 'flag', always = true, help = 'only the kernel mode' },
  { group = 'attach', name = 'exclude_kernel', type = 'flag', always = true, help = 'only the user mode' },
  { group = 'attach', name = 'exclude_host', short = 'G', type = 'flag', always = true, help = 'only KVM guests' },
  { group = 'attach', name = 'exclude_guest', type = 'flag', always = true, help = 'no KVM guests' },
  { group = 'attach', name = 'irqs_disabled', type = 'integer', min = 0, max = 1, optional_value = 1, argument = '0|1',
    help = 'sample only where interrupts are disabled; 0: where they are not' },
  { group = 'attach', name = 'tif_need_resched', type = 'integer', min = 0, max = 1, optional_value = 1,
    argument = '0|1', help = 'sample only tasks that are to be switched away from; 0: only others' },
  { group = 'attach', name = 'nr_running_min', type = 'integer', min = 0, max = 2 ^ 32 - 1, argument = 'N',
    help = 'sample only CPUs with at least N tasks to run' },
  { group = 'attach', name = 'nr_running_max', type = 'integer', min = 0, max = 2 ^ 32 - 1, argument = 'N',
    help = 'sample only CPUs with at most N tasks to run' },
  { group = 'attach', name = 'exclude_pid', type = 'integer', min = 1, max = 2 ^ 22, argument = 'PID',
    help = 'do not sample this process' },
  { group = 'attach', name = 'sched_policy', type = 'integer', min = 0, max = 7, argument = 'N',
    help = 'sample only tasks of this policy: 0 normal, 1 FIFO, 2 RR, 3 batch, 5 idle, 6 deadline' },
  { group = 'attach', name = 'prio', type = 'string', argument = 'LIST',
    help = "sample only these priorities of the kernel's: 0-99 real time, 100-139 nice -20 to 19" },

  { group = 'run', name = 'interval', short = 'i', type = 'duration', unit = 'ms', min = 1e6,
    help = 'report every so often' },
  { group = 'run', name = 'exit_n', short = 'N', type = 'integer', min = 1, help = 'stop after this many events' },
  { group = 'run', name = 'duration', type = 'duration', argument = 'T', unit = 's', min = 1e6,
    help = 'stop after this time' },
  { group = 'run', name = 'usage_self', type = 'duration', unit = 'ms', min = 1e6,
    help = 'print how much CPU and memory this tool itself takes, every so often' },
  { group = 'run', name = 'perfeval_cpus', type = 'cpus',
    help = 'print after each -i how many events these CPUs had a second' },
  { group = 'run', name = 'perfeval_pids', type = 'ids',
    help = 'print after each -i how many events the threads of these processes had a second' },
  { group = 'run', name = 'sampling_limit', type = 'integer', min = 1,
    help = 'end when --perfeval-* counts more than N events a second for each CPU or thread that had some' },
  { group = 'run', name = 'allow_exec', type = 'flag', always = true,
    help = 'let exec= and other expressions call system()' },
  { group = 'run', name = 'dry_run', type = 'flag', always = true, help = 'print what would be opened, and end' },
  { group = 'run', name = 'input', type = 'string', argument = 'FILE', help = 'read a recording, - is stdin' },
  { group = 'run', name = 'output', short = 'o', type = 'string', argument = 'FILE',
    help = 'append the output to FILE, text with the warnings; opened anew on SIGUSR1' },
  { group = 'run', name = 'format', type = 'enum', values = { 'text', 'json', 'csv' }, default = 'text',
    help = 'form of the output' },
  { group = 'run', name = 'json', type = 'flag', always = true, stands_for = 'format=json',
    help = 'the same as --format json' },
  { group = 'run', name = 'csv', type = 'flag', always = true, stands_for = 'format=csv',
    help = 'the same as --format csv' },
  { group = 'run', name = 'raw_fields', type = 'flag', always = true,
    help = 'print events as the kernel does, without the plugins of libtraceevent' },

  { group = 'ring', name = 'mmap_pages', short = 'm', type = 'pages', min = 1, max = 2 ^ 20,
    help = 'size of each ring buffer in pages, a power of two' },
  { group = 'ring', name = 'watermark', type = 'integer', min = 0, max = 100, unit = '%',
    help = 'wake up when a ring is this full, 0 is on each event' },
  { group = 'ring', name = 'realtime', short = 'r', type = 'integer', min = 1, max = 99, argument = 'PRIO',
    help = 'read the rings with this priority of SCHED_FIFO, before all tasks of lower ones' },
  { group = 'ring', name = 'lost', type = 'enum', values = { 'warn', 'error', 'ignore' }, default = 'warn',
    help = 'where the kernel drops events: say so, end with status 1, or neither' },
  { group = 'ring', name = 'order', type = 'flag', default = true, always = true,
    help = 'accepted for perf-prof command lines: events always come in time order' },
  { group = 'ring', name = 'order_mem', type = 'size',
    help = 'accepted for perf-prof command lines: ordering copies nothing' },

  { group = 'verbosity', name = 'verbose', short = 'v', type = 'count', help = 'say more; -vv also prints each event' },
  { group = 'verbosity', name = 'quiet', short = 'q', type = 'flag', always = true, help = 'print results only' },
  { group = 'verbosity', name = 'version', short = 'V', type = 'flag', always = true, help = 'print the version' },
  { group = 'verbosity', name = 'help', short = 'h', type = 'flag', always = true, help = 'print this help' },
}
declarations.common = COMMON
--- What a profiler that is a source of events has no say in: it is that of the whole run.
declarations.OF_THE_RUN = {
  'pids', 'tids', 'cgroups', 'inherit', 'ptrace', 'input', 'overwrite', 'output', 'format', 'json', 'csv', 'raw_fields',
  'duration', 'usage_self', 'allow_exec', 'perfeval_cpus', 'perfeval_pids', 'sampling_limit', 'realtime', 'lost',
  'dry_run', 'help', 'version', 'verbose',
}

local common_by_name = {}
for _, option in ipairs(COMMON) do
  option.long = option.name:gsub('_', '-')
  common_by_name[option.name] = option
end

local KEYS = {
  type = 'string', help = 'string', short = 'string', argument = 'string', unit = 'string', values = 'table',
  group = 'string', either = 'boolean', own = 'boolean',
  min = 'number', max = 'number', multiple = 'boolean', required = 'boolean', optional_value = 'any', default = 'any',
}

--- Brings a default to its parsed form; text stands for what the user would type.
---@param option opt.Option
---@param value any
---@return any value, string? message
local function checked_default(option, value)
  local kind = types[option.type]
  if value == nil then
    if kind.negatable and not option.either then return false end
    if option.type == 'count' then return 0 end
    return option.multiple and {} or nil
  end
  local lua = option.multiple and 'table' or kind.lua
  if type(value) == 'string' and kind.parse and not option.multiple then
    local parsed, message = kind.parse(value, option)
    return parsed, message and 'default: ' .. message
  end
  if type(value) ~= lua then return nil, ('default is a %s, not a %s'):format(type(value), lua) end
  return value
end

---@param option opt.Option
---@return string? message
local function check_option(option)
  if not option.type then return 'type is missing' end
  if not types[option.type] then
    return ("unknown type '%s'%s"):format(option.type, nearest.hint(option.type, nearest.keys(types)))
  end
  if not option.help then return 'help is missing' end
  if option.short and not option.short:match '^%w$' then
    return ("short '%s' is not one letter or digit"):format(option.short)
  end
  if option.type == 'enum' and not (option.values and type(option.values[1]) == 'string') then
    return 'an enum needs values'
  end
  if option.type == 'duration' and option.unit and not value_types.NS[option.unit] then
    return ("unit '%s' is not one of ns, us, ms, s, min, h"):format(option.unit)
  end
  local kind, optional = types[option.type], option.optional_value
  if kind.switch and (option.multiple or option.required or optional ~= nil or option.group == 'positional') then
    return ('a %s has no value'):format(option.type)
  end
  if optional ~= nil and type(optional) ~= kind.lua then
    return ('optional_value is a %s, not a %s'):format(type(optional), kind.lua)
  end
  local message
  option.default, message = checked_default(option, option.default)
  return message
end

---@param name any
---@param given any the script's declaration
---@param common? opt.Option the common option of that name, whose declaration is the base
---@param group string
---@return opt.Option? option, string? message
local function declare_one(name, given, common, group)
  if type(name) ~= 'string' or not name:match '^%l[%l%d_]*$' then
    return nil, ("option name '%s' is not lower case words joined by underscores"):format(tostring(name))
  end
  if type(given) ~= 'table' then
    return nil, ("option '%s' is a %s, not a table"):format(name, type(given))
  end
  local option = { name = name, long = name:gsub('_', '-'), group = group }
  for key, value in pairs(common or {}) do
    option[key] = value
  end
  for key, value in pairs(given) do
    local lua = KEYS[key]
    if not lua then
      return nil, ("option '%s': unknown key '%s'%s"):format(name, tostring(key),
        nearest.hint(tostring(key), nearest.keys(KEYS)))
    end
    if lua ~= 'any' and type(value) ~= lua then
      return nil, ("option '%s': %s is a %s, not a %s"):format(name, key, type(value), lua)
    end
    option[key] = value
  end
  local message = check_option(option)
  if not message and not group_names[option.group] then
    message = ("unknown group '%s'%s"):format(option.group, nearest.hint(option.group, nearest.keys(group_names)))
  end
  if message then return nil, ("option '%s': %s"):format(name, message) end
  return option
end

---@param spec opt.Spec
---@param option opt.Option
---@return string? message
local function add_option(spec, option)
  local other = spec.short[option.short]
  if other then
    return ("option '%s': letter '%s' belongs to --%s"):format(option.name, option.short, other.long)
  end
  spec.list[#spec.list + 1] = option
  spec.long[option.long] = option
  if option.short then spec.short[option.short] = option end
end

---@param spec opt.Spec
---@param positional table[]
---@return string? message
local function add_positionals(spec, positional)
  for i, given in ipairs(positional) do
    if type(given) ~= 'table' then return ('positional %d is a %s, not a table'):format(i, type(given)) end
    local declaration = { required = true, type = 'string' }
    for key, value in pairs(given) do
      declaration[key] = value
    end
    declaration.name = nil
    declaration.argument = given.argument or tostring(given.name):upper()
    local option, message = declare_one(given.name, declaration, nil, 'positional')
    if not option then return (message:gsub('^option', 'positional', 1)) end
    if spec.long[option.long] then return ("positional '%s' is also an option"):format(option.name) end
    if option.multiple and i < #positional then
      return ("positional '%s': only the last one may be multiple"):format(option.name)
    end
    spec.positional[i] = option
  end
end

--- What a profiler has no use for, by name.
---@param profiler { unsupported?: string[], attributes?: string[] }
---@return table<string, boolean>? dropped, string? message
local function dropped_by(profiler)
  local dropped, attributes = {}, {}
  for _, name in ipairs(profiler.unsupported or {}) do
    local option = common_by_name[name]
    if not (DROPPABLE[name] or ABOUT[name] or option and DROPPABLE[option.group]) then
      local known = {}
      for _, names in ipairs { DROPPABLE, ABOUT } do
        for other in pairs(names) do known[other] = true end
      end
      for _, other in ipairs(COMMON) do known[other.name] = DROPPABLE[other.group] end
      return nil, ("unsupported: no option or group of options '%s'%s"):format(tostring(name),
        nearest.hint(tostring(name), nearest.keys(known)))
    end
    dropped[name] = true
    for _, of_it in ipairs(ABOUT[name] or {}) do dropped[of_it] = true end
  end
  for _, name in ipairs(profiler.attributes or {}) do attributes[name] = true end
  if not attributes.key then dropped.key = true end
  return dropped
end

--- Adds the options that the profiler ignores: perf-prof's profilers all take them. Commands that trace nothing have
--- none.
local function add_ignored(spec)
  local ignored = { list = {}, long = {}, short = {} }
  for about, names in pairs(IGNORED) do
    for _, name in ipairs(spec.dropped[about] and not spec.dropped.attach and names or {}) do
      local option = { is_ignored = true }
      for key, value in pairs(common_by_name[name]) do option[key] = value end
      if not spec.long[option.long] then
        ignored.list[#ignored.list + 1], ignored.long[option.long] = option, option
        if option.short and not spec.short[option.short] then ignored.short[option.short] = option end
      end
    end
  end
  spec.ignored = ignored
end

--- Builds what a profiler accepts: the common options minus those in `unsupported`, by group or one by
--- one, and its own. A script that names a common option changes just what it gives (its default, its
--- help), and so also gets single options of a dropped group back. -k is for those with the attribute.
---@param profiler { options?: table, positional?: table[], unsupported?: string[], attributes?: string[] }
---@return opt.Spec? spec, string? message
function declarations.declare(profiler)
  local dropped, refusal = dropped_by(profiler)
  if not dropped then return nil, refusal end
  local spec = { list = {}, long = {}, short = {}, positional = {}, dropped = dropped }
  spec.workload = not (dropped.attach or dropped.threads)

  local own = profiler.options or {}
  local names, kept = {}, {}
  for name in pairs(own) do
    if not common_by_name[name] then names[#names + 1] = name end
  end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for _, common in ipairs(COMMON) do
    if own[common.name] ~= nil or not (dropped[common.group] or dropped[common.name]) then
      kept[#kept + 1] = common.name
    end
  end
  for _, list in ipairs { kept, names } do
    for _, name in ipairs(list) do
      local common = common_by_name[name]
      local given = own[name] == nil and {} or own[name]
      local option, message = declare_one(name, given, common, common and common.group or 'script')
      message = message or add_option(spec, option)
      if message then return nil, message end
    end
  end
  local message = add_positionals(spec, profiler.positional or {})
  if message then return nil, message end
  add_ignored(spec)
  for _, option in ipairs(spec.list) do
    spec.takes_events = spec.takes_events or option.type == 'event'
  end
  return spec
end

--- How help calls the value of an option, nil for one that takes none.
---@param option opt.Option
---@return string?
function declarations.argument(option)
  local kind = types[option.type]
  if kind.switch and not kind.claims then return nil end
  if option.argument then return option.argument end
  if option.type == 'enum' then return table.concat(option.values, '|') end
  return option.type == 'duration' and option.unit and option.unit:upper() or kind.argument
end

--- The default as help prints it, nil when there is nothing worth saying.
---@param option opt.Option
---@return string?
function declarations.default_text(option)
  local default = option.default
  if type(default) == 'string' then return default ~= '' and default or nil end
  if type(default) ~= 'number' or default == math.huge or types[option.type].switch then return nil end
  if option.type == 'duration' then return value_types.duration_text(default) end
  return value_types.number_text(default)
end

return declarations
