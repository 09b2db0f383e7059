-- SPDX-License-Identifier: GPL-2.0-only
--- Prints kernel memory.
local kcore = require 'lib.engines.kcore'
local nearest = require 'lib.nearest'
local text = require 'lib.text'
local failure = require 'lib.failure'
local units = require 'lib.units'

local LINE = 16 -- bytes per line
local CHUNK = 256 -- bytes of a string to read at once
local FORMAT = { [1] = '%02x', [2] = '%04x', [4] = '%08x', [8] = '%016x' }

--- Returns the address of a place, which is a number or a symbol; nil and a message if it is neither.
local function address_of(place)
  if place:match '^%d' then
    local address = units.unsigned(place)
    return address, not address and ("'%s' is not a 64-bit number"):format(place)
  end
  local names, hidden = {}, false
  for line in io.lines '/proc/kallsyms' do
    local digits, symbol = line:match '^(%x+) %a (%S+)'
    hidden = hidden or digits and digits:match '^0+$' and symbol == place
    if symbol == place and not hidden then return units.unsigned('0x' .. digits) end
    names[#names + 1] = symbol
  end
  if hidden then failure.unavailable("kcore: /proc/kallsyms hides the address of '%s'", place) end
  return nil, ("'%s' is neither a number nor a symbol of the kernel%s"):format(place, nearest.hint(place, names))
end

--- Returns the element size of -1, -2, -4 or -8; nil if more than one is given.
local function size_of(opt)
  local size
  for name, bytes in pairs { bytes = 1, halves = 2, words = 4, longs = 8 } do
    if opt[name] then
      if size then return nil end
      size = bytes
    end
  end
  return size or 8
end

--- Prints the string at an address, each line after its address.
local function print_string(core, address, out)
  local found, line_at = {}, address
  local at = address
  repeat
    local chunk = core:read(at, CHUNK)
    if not chunk then break end
    local zero = chunk:find('\0', 1, true)
    found[#found + 1] = zero and chunk:sub(1, zero - 1) or chunk
    at = at + #chunk
  until zero
  for line in (table.concat(found) .. '\n'):gsub('\n\n$', '\n'):gmatch '([^\n]*)\n' do
    out:printf('%016x: %s\n', line_at, text.safe(line))
    line_at = line_at + #line + 1
  end
end

--- Prints elements in hexadecimal and as characters.
local function print_elements(core, address, size, count, out)
  local left = size * count
  while left > 0 do
    local bytes = core:read(address, math.min(left, LINE)) or ''
    bytes = bytes:sub(1, #bytes - #bytes % size)
    if bytes == '' then
      out:printf('%016x: not mapped\n', address)
      return
    end
    local cells = {}
    for at = 1, #bytes, size do
      cells[#cells + 1] = FORMAT[size]:format(kcore.integer(bytes, at, size))
    end
    local width = LINE / size * (2 * size + 1) - 1
    out:printf('%016x: %-' .. width .. 's  %s\n', address, table.concat(cells, ' '), (bytes:gsub('[^ -~]', '.')))
    address, left = address + #bytes, left - #bytes
  end
end

return {
  summary = 'Print kernel memory',
  description = [[
Reads /proc/kcore, which requires a kernel with CONFIG_PROC_KCORE. PLACE is an address (hexadecimal with 0x) or a symbol
of /proc/kallsyms. COUNT is a number of elements, which have 8 bytes unless -1, -2 or -4 is given.]],
  examples = {
    { 'profscript kcore --string linux_banner', 'print the text of /proc/version' },
    { 'profscript kcore -4 jiffies 2', 'print two 4-byte elements' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  options = {
    bytes = { type = 'flag', short = '1', help = 'print 1-byte elements' },
    halves = { type = 'flag', short = '2', help = 'print 2-byte elements' },
    words = { type = 'flag', short = '4', help = 'print 4-byte elements' },
    longs = { type = 'flag', short = '8', help = 'print 8-byte elements (default)' },
    string = { type = 'flag', help = 'print a NUL-terminated string' },
  },
  positional = {
    { name = 'place', help = 'address or symbol' },
    { name = 'count', help = 'number of elements (default: 1)', required = false },
  },

  start = function(opt, out)
    local size = size_of(opt)
    if not size then return nil, '-1, -2, -4 and -8 are mutually exclusive' end
    local count = tonumber(opt.count or 1)
    if not count or count < 1 or count % 1 ~= 0 then return nil, ("invalid count '%s'"):format(opt.count) end
    local address, problem = address_of(opt.place)
    if not address then return nil, problem end
    local core, message = kcore.open '/proc/kcore'
    if not core then failure.unavailable('kcore: %s (requires root and a kernel with CONFIG_PROC_KCORE)', message) end
    if not core:read(address, 1) then
      core:close()
      error(('kcore: 0x%016x is not mapped'):format(address), 0)
    end
    if opt.string then print_string(core, address, out) else print_elements(core, address, size, count, out) end
    core:close()
  end,
}
