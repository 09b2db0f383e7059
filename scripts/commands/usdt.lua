-- SPDX-License-Identifier: GPL-2.0-only
--- Lists USDT probes of files, and adds persistent events for them.
local usdt = require 'lib.engines.usdt'

local EVENTS = '/sys/kernel/tracing/uprobe_events'

--- Parses '[[PROVIDER:]NAME@]FILE[@ADDR][ FORMATS]'.
local function parse(spec)
  local place, formats = spec:match '^%s*(%S+)%s*(.-)%s*$'
  if not place then error('a probe is missing', 0) end
  local rest, addr = place:match '^(.+)@(0x%x+)$'
  local name, file = (rest or place):match '^([^@]*)@(.+)$'
  local provider, plain = (name or ''):match '^([^:]+):(.+)$'
  return {
    file = file or rest or place,
    provider = provider,
    name = plain or name,
    addr = tonumber(addr),
    formats = formats,
  }
end

--- Calls each(site, title, first) with each site; first is true at the first site of a probe.
local function each_site(wanted, each)
  local seen = {}
  for _, site in ipairs(usdt.select(usdt.find_binary(wanted.file), wanted)) do
    local title = ('%s:%s@%s'):format(site.provider, site.name, site.path)
    each(site, title, not seen[title])
    seen[title] = true
  end
end

--- Returns the uprobe_events line of a site. Warns about arguments that cannot be fetched.
local function definition(site, wanted, out)
  local args, left_out = usdt.fetch_args(site, wanted.formats)
  for _, message in ipairs(left_out) do
    out:warn(('usdt: %s: skipped'):format(message))
  end
  local place = ('p:%s/%s %s'):format(site.provider, site.name, usdt.place(site))
  return args == '' and place or place .. ' ' .. args
end

local function write(line, verbose, out)
  if verbose then out:printf("    echo '%s' >> %s\n", line, EVENTS) end
  local message = usdt.write(line)
  if message then error(("'%s': %s"):format(line, message), 0) end
end

local actions = {}

function actions.list(wanted, verbose, out)
  each_site(wanted, function(site, title, first)
    if first or verbose then out:print(title) end
    if not verbose then return end
    out:printf('    Addr: 0x%x, Base: 0x%x, Semaphore: 0x%x\n', site.addr, site.base, site.semaphore)
    out:printf('    Arguments: %s\n', site.args)
    out:printf('    Uprobe: %s\n', definition(site, wanted, out))
  end)
end

function actions.add(wanted, verbose, out)
  each_site(wanted, function(site, title, first)
    write(definition(site, wanted, out), verbose, out)
    if first then out:print(title) end
  end)
end

--- Without a name, those of the file's probes are deleted that were added.
function actions.del(wanted, verbose, out)
  local deleted = 0
  each_site(wanted, function(site, title, first)
    if not first or not wanted.name and not usdt.is_added(site) then return end
    deleted = deleted + 1
    write(('-:%s/%s'):format(site.provider, site.name), verbose, out)
    out:print(title)
  end)
  if deleted == 0 then error(('no probe of %s has been added'):format(wanted.file), 0) end
end

return {
  summary = 'List the USDT probes of a file, or add events for them',
  description = [[
PROBE is [[PROVIDER:]NAME@]FILE[@ADDRESS][ FORMATS]. Without NAME it stands for all probes of the file.
FILE is a path, or the name of a library or program. An added probe is the event PROVIDER:NAME with the
fields arg1, arg2... It stays until it is deleted. FORMATS has a word for each argument, with %s for its
operand: 'path=+0(%s):string flags=%s'. To trace probes in one run only, use -e usdt:PROVIDER:NAME@FILE.]],
  examples = {
    { 'profscript usdt list libc.so.6', 'list the probes of the C library' },
    { 'profscript usdt -v list python3', 'list the probes of Python with addresses and arguments' },
    { "profscript usdt add 'python:function__entry@python3 file=+0(%s):string func=+0(%s):string'",
      'add an event with named fields' },
    { 'profscript usdt del python:function__entry@python3', 'delete it' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  positional = {
    { name = 'action', type = 'enum', values = { 'list', 'add', 'del' }, help = 'list, add or delete' },
    { name = 'probe', multiple = true, help = 'probes to list, add or delete' },
  },

  start = function(opt, out)
    local last
    for _, spec in ipairs(opt.probe) do
      local ok, message = pcall(function() actions[opt.action](parse(spec), opt.verbose > 0, out) end)
      if not ok then
        if last then out:warn('usdt: ' .. last) end
        last = tostring(message)
      end
    end
    if last then error('usdt: ' .. last, 0) end
  end,
}
