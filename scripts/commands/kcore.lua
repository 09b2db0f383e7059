-- SPDX-License-Identifier: GPL-2.0-only
--- Prints memory of the kernel. It is longer than others because it has two forms of output, and says what is wrong
--- with a place.
local kcore = require 'lib.kcore'
local nearest = require 'lib.nearest'
local text = require 'lib.text'
local failure = require 'lib.failure'
local units = require 'lib.units'

local LINE = 16 -- bytes
local CHUNK = 256
local FORMAT = { [1] = '%02x', [2] = '%04x', [4] = '%08x', [8] = '%016x' }

--- An address in digits, or that of a symbol; nil and what is wrong with the place.
local function address_of(place)
  if place:match '^%d' then
    local address = units.unsigned(place)
    return address, not address and ("'%s' is no number of 64 bits"):format(place)
  end
  local names, hidden = {}, false
  for line in io.lines '/proc/kallsyms' do
    local digits, symbol = line:match '^(%x+) %a (%S+)'
    hidden = hidden or digits and digits:match '^0+$' and symbol == place
    if symbol == place and not hidden then return units.unsigned('0x' .. digits) end
    names[#names + 1] = symbol
  end
  if hidden then failure.unavailable("kcore: the address of '%s' is not known: /proc/kallsyms hides it", place) end
  return nil, ("'%s' is neither a number nor a symbol of the kernel%s"):format(place, nearest.hint(place, names))
end

--- The size of an element, that one of -1, -2, -4 and -8 gives; nil where there are several of these.
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

--- The text up to a zero, each of its lines behind its address.
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

--- Elements in hexadecimal, and their bytes as text.
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
  summary = 'Print memory of the kernel',
  description = [[
Reads /proc/kcore, which a kernel may be built without. PLACE is an address, hexadecimal behind 0x, or a symbol of
/proc/kallsyms; COUNT is of elements of 8 bytes, or those of -1, -2 and -4.]],
  examples = {
    { 'profscript kcore --string linux_banner', 'the text of /proc/version' },
    { 'profscript kcore -4 jiffies 2', 'two elements of 4 bytes' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  options = {
    bytes = { type = 'flag', short = '1', help = 'elements of one byte' },
    halves = { type = 'flag', short = '2', help = 'elements of 2 bytes' },
    words = { type = 'flag', short = '4', help = 'elements of 4 bytes' },
    longs = { type = 'flag', short = '8', help = 'elements of 8 bytes, the default' },
    string = { type = 'flag', help = 'text up to a zero' },
  },
  positional = {
    { name = 'place', help = 'address or symbol' },
    { name = 'count', help = 'how many elements, 1 without it', required = false },
  },

  start = function(opt, out)
    local size = size_of(opt)
    if not size then return nil, 'one of -1, -2, -4 and -8 can be given' end
    local count = tonumber(opt.count or 1)
    if not count or count < 1 or count % 1 ~= 0 then return nil, ("'%s' is no count"):format(opt.count) end
    local address, problem = address_of(opt.place)
    if not address then return nil, problem end
    local core, message = kcore.open '/proc/kcore'
    if not core then failure.unavailable('kcore: %s; it takes a kernel with CONFIG_PROC_KCORE, and root', message) end
    if not core:read(address, 1) then
      core:close()
      error(('kcore: 0x%016x is not mapped by the kernel'):format(address), 0)
    end
    if opt.string then print_string(core, address, out) else print_elements(core, address, size, count, out) end
    core:close()
  end,
}
