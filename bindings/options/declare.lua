-- SPDX-License-Identifier: GPL-2.0-only
--- Declarations of options: the common ones and those of a profiler. Parser, help and completion all use the spec
--- built here.
local nearest = require 'bindings.base.nearest'
local needs = require 'bpf.plan.needs'
local plugins = require 'bindings.options.plugins'
local value_types = require 'bindings.options.types'

local types = value_types.types
local declarations = {}

--- The declaration of an option, under its name in `options`. An underscore in the name is a dash on the command
--- line. Declaring a common option changes only what it states.
---@class OptionDeclaration
---@field type? 'flag'|'count'|'integer'|'number'|'string'|'duration'|'size'|'enum'|'event' a duration is in ns in
--- `opt`, a size in bytes; required unless it is a common option or a positional argument
---@field help? string required for an option of the script
---@field name? string only for positional arguments
---@field short? string letter
---@field default? any as parsed, or text to parse
---@field argument? string name of the value in help
---@field unit? string of a plain number: for a duration one of ns us ms s min h, otherwise only shown in help
---@field values? string[] of an enum; of a string: words of its list, for completion
---@field min? number
---@field max? number
---@field multiple? boolean may be repeated; the parsed value is a list
---@field optional_value? any value if the option is given without `=VALUE`
---@field required? boolean
---@field own? boolean a common option that only the script interprets
---@field either? boolean a flag that is nil if not given
---@field group? string group of the option in help
---@field needs? string[] what it needs of the way in which events are taken: words of bpf/plan/needs.lua

--- One option.
---@class opt.Option : OptionDeclaration
---@field name string key in the parsed table
---@field long string name on the command line, without dashes
---@field type string a key of the table in bindings/options/types.lua
---@field help string
---@field always? boolean a flag without a negated form
---@field is_ignored? boolean the value is not stored
---@field stands_for? string another option and its value, as on the command line without dashes
---@field with? string common options: it exists where this one does
---@field note? string a line for whoever gives an option that stands for another one
---@field group string

--- All options and arguments of one profiler.
---@class opt.Spec
---@field list opt.Option[] in the order of help
---@field long table<string, opt.Option>
---@field short table<string, opt.Option>
---@field positional opt.Option[]
---@field dropped table<string, boolean> groups, other sets and single options that the profiler does not support
---@field ignored opt.Spec options without effect that the profiler accepts anyway, with a warning
---@field takes_events? boolean an option selects events
---@field workload boolean whether it takes a command to run
---@field global? boolean the options before the name of a profiler

-- Option groups in the order of help. `script` holds the options declared by the profiler, under its name.
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
-- Related options of several groups that a profiler can drop together: those with this need.
local SETS = { samples = true, threads = true, modes = true }

local COMMON = {
  { group = 'event', name = 'event', short = 'e', type = 'event', multiple = true,
    help = 'events, separated by commas: sys:name or a glob, each optionally with /filter/attributes/' },
  { group = 'event', name = 'key', short = 'k', type = 'string', argument = 'EXPR',
    help = 'key of all events without a key= attribute' },
  { group = 'event', name = 'filter', type = 'string', argument = 'FILTER',
    help = 'use only events that match this filter', needs = { 'filter' } },
  { group = 'event', name = 'freq', short = 'F', type = 'integer', min = 1, unit = 'Hz',
    help = 'sampling frequency of hardware, clock and memory events', needs = { 'perf_samples', 'samples' } },
  { group = 'event', name = 'period', type = 'duration', argument = 'N', min = 1,
    help = 'sample every Nth of these events; for clock events, the time between samples', needs = { 'perf_samples' } },
  { group = 'event', name = 'call_graph', short = 'g', type = 'stacks',
    help = 'record the stack of each event, by default also through code without frame pointers',
    needs = { 'samples', 'stacks' } },
  { group = 'event', name = 'user_callchain', type = 'flag', either = true,
    help = 'include user frames in stacks (default)', needs = { 'samples' } },
  { group = 'event', name = 'kernel_callchain', type = 'flag', either = true,
    help = 'include kernel frames in stacks (default)', needs = { 'samples' } },
  { group = 'event', name = 'python_callchain', with = 'call_graph', type = 'flag', always = true,
    stands_for = 'call-graph',
    note = '--python-callchain is -g; Python 3.12 names its functions if it runs with -X perf',
    help = 'same as -g; Python 3.12 and later name their functions if they run with -X perf' },
  { group = 'event', name = 'srcline', type = 'flag',
    help = 'print source lines and inlined functions of user frames', needs = { 'samples' } },
  { group = 'event', name = 'self', type = 'flag', help = "include profscript's own process" },

  { group = 'attach', name = 'cpus', short = 'C', type = 'cpus',
    help = 'only these CPUs, such as 0-3,7 (default: all online CPUs)' },
  { group = 'attach', name = 'pids', short = 'p', type = 'processes',
    help = 'only these processes, by pid or name, with all their threads', needs = { 'threads', 'whole_run' } },
  { group = 'attach', name = 'tids', short = 't', type = 'ids', help = 'only these threads',
    needs = { 'threads', 'whole_run' } },
  { group = 'attach', name = 'inherit', type = 'flag', either = true,
    help = 'also new threads and child processes (default for -p and a workload)', needs = { 'threads', 'whole_run' } },
  { group = 'attach', name = 'ptrace', type = 'flag', always = true,
    help = 'like --inherit, and go on until all of them have exited, daemons too', needs = { 'threads', 'whole_run' } },
  { group = 'attach', name = 'cgroups', type = 'words',
    help = 'only these cgroups: paths from the root of the hierarchy, or regular expressions',
    needs = { 'groups', 'whole_run' } },
  { group = 'attach', name = 'container', type = 'words', argument = 'NAMES',
    help = 'only these containers, also those that start later: names of ev._container; * and ? are wildcards',
    needs = { 'groups', 'whole_run' } },
  { group = 'attach', name = 'exclude_user', type = 'flag', always = true, help = 'exclude user mode',
    needs = { 'perf_samples', 'modes' } },
  { group = 'attach', name = 'exclude_kernel', type = 'flag', always = true, help = 'exclude kernel mode',
    needs = { 'perf_samples', 'modes' } },
  { group = 'attach', name = 'exclude_host', short = 'G', type = 'flag', always = true,
    help = 'exclude the host: only KVM guests', needs = { 'perf_samples', 'modes' } },
  { group = 'attach', name = 'exclude_guest', type = 'flag', always = true, help = 'exclude KVM guests',
    needs = { 'perf_samples', 'modes' } },
  { group = 'attach', name = 'irqs_disabled', type = 'integer', min = 0, max = 1, optional_value = 1, argument = '0|1',
    help = 'sample only while interrupts are disabled; 0: only while enabled', needs = { 'perf_samples', 'samples' } },
  { group = 'attach', name = 'tif_need_resched', type = 'integer', min = 0, max = 1, optional_value = 1,
    argument = '0|1', help = 'sample only tasks with TIF_NEED_RESCHED set; 0: only tasks without',
    needs = { 'perf_samples', 'samples' } },
  { group = 'attach', name = 'nr_running_min', type = 'integer', min = 0, max = 2 ^ 32 - 1, argument = 'N',
    help = 'sample only CPUs with at least N runnable tasks', needs = { 'perf_samples', 'samples' } },
  { group = 'attach', name = 'nr_running_max', type = 'integer', min = 0, max = 2 ^ 32 - 1, argument = 'N',
    help = 'sample only CPUs with at most N runnable tasks', needs = { 'perf_samples', 'samples' } },
  { group = 'attach', name = 'exclude_pid', type = 'integer', min = 1, max = 2 ^ 22, argument = 'PID',
    help = 'do not sample this process', needs = { 'perf_samples', 'samples' } },
  { group = 'attach', name = 'sched_policy', type = 'integer', min = 0, max = 7, argument = 'N',
    help = 'sample only tasks with this policy: 0 normal, 1 FIFO, 2 RR, 3 batch, 5 idle, 6 deadline',
    needs = { 'perf_samples', 'samples' } },
  { group = 'attach', name = 'prio', type = 'string', argument = 'LIST',
    help = 'sample only tasks with these kernel priorities: 0-99 real-time, 100-139 nice -20 to 19',
    needs = { 'perf_samples', 'samples' } },

  { group = 'run', name = 'interval', short = 'i', type = 'duration', unit = 'ms', min = 1e6,
    help = 'print a report at this interval' },
  { group = 'run', name = 'exit_n', short = 'N', type = 'integer', min = 1, help = 'stop after N events',
    needs = { 'each_event', 'both_switches' } },
  { group = 'run', name = 'duration', type = 'duration', argument = 'T', unit = 's', min = 1e6,
    help = 'stop after this time', needs = { 'whole_run' } },
  { group = 'run', name = 'watch', type = 'flag', always = true, needs = { 'reload', 'whole_run' },
    help = 'reload the script when its file changes, and keep what it has put into session.state()' },
  { group = 'run', name = 'allow_exec', type = 'flag', always = true,
    help = 'let exec= and other expressions call system()', needs = { 'whole_run' } },
  { group = 'run', name = 'dry_run', type = 'enum', values = { 'plan', 'code', 'schema' }, optional_value = 'plan',
    argument = 'WHAT', help = 'print what would be opened and exit; code: with the generated loops and BPF programs;'
      .. ' schema: instead, the JSON Schema of the lines that --json prints',
    needs = { 'whole_run' } },
  { group = 'run', name = 'input', type = 'string', argument = 'FILE',
    help = 'read a recording (- is stdin), or what PORT, HOST:PORT, unix:PATH or vsock:CID:PORT sends',
    needs = { 'stored', 'both_switches', 'whole_run' } },
  { group = 'run', name = 'time', type = 'times', needs = { 'stored', 'whole_run' },
    help = 'read only this part of a recording: seconds as printed with events; either may be missing' },
  { group = 'run', name = 'remote_slack', type = 'duration', unit = 'ms', min = 1e6,
    help = 'with pull=, wait at most this long for a silent sender before other events go on',
    needs = { 'whole_run' } },
  { group = 'run', name = 'output', short = 'o', type = 'string', argument = 'FILE',
    help = 'append the output to FILE, in text format also the warnings; SIGUSR1 reopens FILE',
    needs = { 'whole_run' } },
  { group = 'run', name = 'format', type = 'enum', values = { 'text', 'json', 'csv' }, default = 'text',
    help = 'output format', needs = { 'whole_run' } },
  { group = 'run', name = 'json', type = 'flag', always = true, stands_for = 'format=json',
    help = 'same as --format json', needs = { 'whole_run' } },
  { group = 'run', name = 'csv', type = 'flag', always = true, stands_for = 'format=csv',
    help = 'same as --format csv', needs = { 'whole_run' } },
  { group = 'run', name = 'raw_fields', type = 'flag', always = true,
    help = 'print events as the kernel does, without the plugins of libtraceevent', needs = { 'whole_run' } },
  { group = 'run', name = 'tsc', type = 'flag', always = true,
    help = "print the times of events in cycles of the CPU's TSC; with --kvmclock, of the guest's",
    needs = { 'samples', 'idle_if_counted', 'whole_run' } },
  { group = 'run', name = 'kvmclock', type = 'string', argument = 'VM',
    help = "print the times of events on the kvmclock of a guest, given by UUID, pid or name",
    needs = { 'samples', 'idle_if_counted', 'whole_run' } },
  { group = 'run', name = 'clock_offset', type = 'offset', argument = 'N',
    help = 'add N to the printed times of events, in ns or cycles; may be negative or hexadecimal',
    needs = { 'samples', 'idle_if_counted', 'whole_run' } },
  { group = 'run', name = 'monotonic', type = 'flag', always = true,
    help = 'the times must be those of CLOCK_MONOTONIC; live events always have them',
    needs = { 'samples', 'idle_if_counted', 'whole_run' } },

  { group = 'ring', name = 'mmap_pages', short = 'm', type = 'pages', min = 1, max = 2 ^ 20,
    help = 'size of each ring buffer in pages, a power of two', needs = { 'idle_if_counted' } },
  { group = 'ring', name = 'watermark', type = 'integer', min = 0, max = 100, unit = '%',
    help = 'wake up when a ring buffer is this full; 0: at every event', needs = { 'idle_if_counted' } },
  { group = 'ring', name = 'realtime', short = 'r', type = 'integer', min = 1, max = 99, argument = 'PRIO',
    help = 'read the ring buffers with this SCHED_FIFO priority', needs = { 'idle_if_counted', 'whole_run' } },
  { group = 'ring', name = 'lost', type = 'enum', values = { 'warn', 'error', 'ignore' }, default = 'warn',
    help = 'if the kernel drops events: print a warning, exit with status 1, or ignore it',
    needs = { 'idle_if_counted', 'whole_run' } },
  { group = 'ring', name = 'capture', type = 'enum', values = { 'auto', 'perf', 'bpf' }, default = 'auto',
    help = 'how events are taken: by BPF programs, through ring buffers of perf, or what costs least',
    needs = { 'whole_run' } },
  { group = 'ring', name = 'order', type = 'flag', default = true, always = true,
    help = 'accepted for perf-prof command lines; events are always in time order', needs = { 'idle_if_counted' } },
  { group = 'ring', name = 'order_mem', type = 'size',
    help = 'accepted for perf-prof command lines; ordering copies nothing', needs = { 'idle_if_counted' } },

  { group = 'verbosity', name = 'verbose', short = 'v', type = 'count',
    help = 'be more verbose; -vv also prints each event', needs = { 'whole_run' } },
  { group = 'verbosity', name = 'quiet', short = 'q', type = 'flag', always = true, help = 'print results only' },
  { group = 'verbosity', name = 'version', short = 'V', type = 'flag', always = true, help = 'print the version',
    needs = { 'whole_run' } },
  { group = 'verbosity', name = 'help', short = 'h', type = 'enum', values = { 'own', 'all' }, optional_value = 'own',
    argument = 'all', help = 'print this help; all: with all common options',
    needs = { 'whole_run' } },
}
plugins.add_options(COMMON)
declarations.common = COMMON
local common_by_name = {}
for _, option in ipairs(COMMON) do
  option.long = option.name:gsub('_', '-')
  common_by_name[option.name] = option
end

-- What options need that scripts declare, but the run obeys.
local OF_SCRIPTS = { overwrite = { 'newest', 'whole_run' } }

local KEYS = {
  type = 'string', help = 'string', short = 'string', argument = 'string', unit = 'string', values = 'table',
  group = 'string', either = 'boolean', own = 'boolean', needs = 'table',
  min = 'number', max = 'number', multiple = 'boolean', required = 'boolean', optional_value = 'any', default = 'any',
}

--- Returns the Lua type of an option's parsed value.
local function value_type(option)
  return option.multiple and 'table' or types[option.type].lua
end

--- Converts a default to its parsed form. Text is parsed as if the user had typed it.
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
  local lua = value_type(option)
  if type(value) == 'string' and kind.parse and not option.multiple then
    local parsed, message = kind.parse(value, option)
    return parsed, message and 'default: ' .. message
  end
  if type(value) ~= lua then return nil, ('default is a %s, not a %s'):format(type(value), lua) end
  return value
end

-- The others are for common options.
local SCRIPT_TYPES = 'flag, count, integer, number, string, duration, size, enum, event'

---@param option opt.Option
---@return string? message
local function check_option(option)
  if not option.type then return 'missing type' end
  if not types[option.type] then
    local hint = nearest.hint(option.type, nearest.keys(types))
    return ("unknown type '%s'%s"):format(option.type, hint ~= '' and hint or '; there are ' .. SCRIPT_TYPES)
  end
  if not option.help then return 'missing help' end
  if option.short and not option.short:match '^%w$' then
    return ("short '%s' is not a single letter or digit"):format(option.short)
  end
  if option.type == 'enum' and not (option.values and type(option.values[1]) == 'string') then
    return 'an enum needs values'
  end
  if option.type == 'duration' and option.unit and not value_types.NS[option.unit] then
    return ("unit '%s' is not one of ns, us, ms, s, min, h"):format(option.unit)
  end
  local wrong = needs.check(option.needs or {})
  if wrong then return wrong end
  local kind, optional = types[option.type], option.optional_value
  if kind.switch and (option.multiple or option.required or optional ~= nil or option.group == 'positional') then
    return ('a %s takes no value'):format(option.type)
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
---@param common? opt.Option the common option of that name, which the declaration overrides
---@param group string
---@return opt.Option? option, string? message
local function declare_one(name, given, common, group)
  if type(name) ~= 'string' or not name:match '^%l[%l%d_]*$' then
    return nil, ("invalid option name '%s' (expected lower case words joined by underscores)"):format(tostring(name))
  end
  if type(given) ~= 'table' then
    return nil, ("option '%s' is a %s, not a table"):format(name, type(given))
  end
  local option = { name = name, long = name:gsub('_', '-'), group = group, needs = OF_SCRIPTS[name] }
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
  if not message and common and value_type(option) ~= value_type(common) then
    message = ('the values of this common option are %ss, not %ss'):format(value_type(common), value_type(option))
  end
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
    return ("option '%s': letter '%s' is already used by --%s"):format(option.name, option.short, other.long)
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
      return ("positional '%s': only the last one can be multiple"):format(option.name)
    end
    spec.positional[i] = option
  end
end

--- Returns the names of the options that a profiler does not support.
---@param profiler { unsupported?: string[], attributes?: string[] }
---@return table<string, boolean>? dropped, string? message
local function dropped_by(profiler)
  local dropped, attributes = {}, {}
  for _, name in ipairs(profiler.unsupported or {}) do
    local option = common_by_name[name]
    if not (DROPPABLE[name] or SETS[name] or option and DROPPABLE[option.group]) then
      local known = {}
      for _, names in ipairs { DROPPABLE, SETS } do
        for other in pairs(names) do known[other] = true end
      end
      for _, other in ipairs(COMMON) do known[other.name] = DROPPABLE[other.group] end
      return nil, ("unsupported: no such option or option group '%s'%s"):format(tostring(name),
        nearest.hint(tostring(name), nearest.keys(known)))
    end
    dropped[name] = true
    for _, member in ipairs(SETS[name] and COMMON or {}) do
      if needs.has(member, name) then dropped[member.name] = true end
    end
  end
  for _, name in ipairs(profiler.attributes or {}) do attributes[name] = true end
  if not attributes.key then dropped.key = true end
  return dropped
end

--- Adds the options that the profiler ignores: perf-prof's profilers all take them. Commands that trace nothing have
--- none.
local function add_ignored(spec)
  local ignored = { list = {}, long = {}, short = {} }
  for _, common in ipairs(spec.dropped.attach and {} or COMMON) do
    local is_dropped = spec.dropped.samples and needs.has(common, 'samples') or spec.dropped[common.group]
    if is_dropped and needs.has(common, 'idle_if_counted') and not spec.long[common.long] then
      local option = { is_ignored = true }
      for key, value in pairs(common) do option[key] = value end
      ignored.list[#ignored.list + 1], ignored.long[option.long] = option, option
      if option.short and not spec.short[option.short] then ignored.short[option.short] = option end
    end
  end
  spec.ignored = ignored
end

--- Builds the spec of a profiler: the common options without those in `unsupported`, plus its own. If the profiler
--- declares a common option, its keys (such as default and help) override the common ones, and the option is kept even
--- if its group is dropped. -k exists only for profilers with the attribute `key`.
---@param profiler { options?: table, positional?: table[], unsupported?: string[], attributes?: string[] }
---@return opt.Spec? spec, string? message
function declarations.declare(profiler)
  local dropped, problem = dropped_by(profiler)
  if not dropped then return nil, problem end
  -- Who prints no rows has none to query or to sort.
  if profiler.events == false or dropped.format then dropped.query, dropped.sort = true, true end
  local spec = { list = {}, long = {}, short = {}, positional = {}, dropped = dropped }
  spec.workload = not (dropped.attach or dropped.threads)

  local own = profiler.options or {}
  local names, kept = {}, {}
  for name in pairs(own) do
    if not common_by_name[name] then names[#names + 1] = name end
  end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for _, common in ipairs(COMMON) do
    local decides = common.with or common.name
    if own[decides] ~= nil or not (dropped[common.group] or dropped[decides]) then
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

--- Returns the name of an option's value in help, nil if it takes none.
---@param option opt.Option
---@return string?
function declarations.argument(option)
  local kind = types[option.type]
  if kind.switch and not kind.claims then return nil end
  if option.argument then return option.argument end
  if option.type == 'enum' then return table.concat(option.values, '|') end
  return option.type == 'duration' and option.unit and option.unit:upper() or kind.argument
end

--- Returns the default as help prints it, nil if it is not worth printing.
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
