-- SPDX-License-Identifier: GPL-2.0-only
--- USDT probes of ELF files, and lookup of programs and libraries by name.
local ffi = require 'ffi'
local check = require 'bindings.base.check'
local failure = require 'bindings.base.failure'
local libc = require 'bindings.base.libc'
local nearest = require 'bindings.base.nearest'
local sys = require 'bindings.base.sys'

local C = ffi.C
local usdt = {}

local PATH_SIZE, FETCH_SIZE = 4096, 512

--- A location of a USDT probe.
---@class Site
---@field path string
---@field provider string
---@field name string
---@field args string as in the ELF note
---@field addr number as in the ELF note
---@field base number as in the ELF note
---@field semaphore number as in the ELF note, 0: none
---@field offset number offset of addr in the file
---@field semaphore_offset number offset of the semaphore in the file

--- Returns the path of a program or library: 'libc.so.6', 'python3', 'pid:12'. Fails if it is not found.
---@param word string
---@return string
function usdt.find_binary(word)
  check.is(word, 'string', 'usdt.find_binary takes the name of a file')
  local err, path = ffi.new 'struct error', ffi.new('char[?]', PATH_SIZE)
  if C.binary_find(word, path, PATH_SIZE, err) < 0 then failure.raise('%s', ffi.string(err.text)) end
  return ffi.string(path)
end

local notes = setmetatable({}, { __mode = 'k' }) -- by Site: its file and its index there
local SITE_NUMBERS = { 'addr', 'base', 'semaphore', 'offset', 'semaphore_offset' }

--- Returns the locations of all probes in a file, in the file's order.
---@param path string
---@return Site[]
function usdt.sites(path)
  check.is(path, 'string', 'usdt.sites takes the path of a file')
  local err = ffi.new 'struct error'
  local file = C.usdt_open(path, err)
  if file == nil then failure.raise('%s', ffi.string(err.text)) end
  file = ffi.gc(file, C.usdt_free)
  local sites = {}
  for i = 0, C.usdt_count(file) - 1 do
    local p = C.usdt_probe(file, i)
    local site = {
      path = path,
      provider = ffi.string(p.provider),
      name = ffi.string(p.name),
      args = ffi.string(p.args),
    }
    for _, number in ipairs(SITE_NUMBERS) do
      site[number] = tonumber(p[number])
    end
    sites[i + 1], notes[site] = site, { file = file, index = i }
  end
  return sites
end

--- Translates the arguments of a probe to the syntax of uprobe_events.
---@param site Site
---@param formats string formats separated by blanks, one per argument, in which %s is replaced by the operand:
--- 'path=+0(%s):string flags=%s'
---@return string args
---@return string[] skipped a message for each argument that could not be translated
function usdt.fetch_args(site, formats)
  local note = notes[site] or error('usdt.fetch_args takes a site from usdt.sites()', 2)
  check.is(formats, 'string', 'usdt.fetch_args takes argument formats')
  local err, out = ffi.new 'struct error', ffi.new('char[?]', FETCH_SIZE)
  local words, args, skipped = {}, {}, {}
  for word in formats:gmatch '%S+' do
    words[#words + 1] = word
  end
  local n = 0
  while true do
    local code = C.usdt_fetch_arg(note.file, note.index, n, words[n + 1], out, FETCH_SIZE, err)
    if code == -libc.ENOENT then break end
    if code == -libc.EINVAL then failure.usage('%s', ffi.string(err.text)) end
    local list = code == 0 and args or skipped
    list[#list + 1] = ffi.string(code == 0 and out or err.text)
    n = n + 1
  end
  if #words > n then
    failure.usage("%s:%s has %d arguments: no argument for '%s'", site.provider, site.name, n, words[n + 1])
  end
  return table.concat(args, ' '), skipped
end

--- Returns the probes in a file with a given provider, name and address. Fails if there are none.
---@param path string
---@param wanted { provider?: string, name?: string, addr?: number }
---@return Site[]
function usdt.select(path, wanted)
  local sites, found, names = usdt.sites(path), {}, {}
  for _, site in ipairs(sites) do
    names[#names + 1] = wanted.provider and site.provider .. ':' .. site.name or site.name
    if (not wanted.provider or wanted.provider == site.provider) and (not wanted.name or wanted.name == site.name)
      and (not wanted.addr or wanted.addr == site.addr) then
      found[#found + 1] = site
    end
  end
  if #found == 0 and (wanted.name or wanted.addr) then
    local name = (wanted.provider and wanted.provider .. ':' or '') .. (wanted.name or '')
    if #sites == 0 then failure.raise('no USDT probes in %s', path) end
    failure.raise("no USDT probe '%s'%s in %s%s", name, wanted.addr and (' at 0x%x'):format(wanted.addr) or '', path,
      nearest.hint(name, names))
  end
  return found
end

--- Returns the location in the syntax of uprobe_events.
---@param site Site
---@return string
function usdt.place(site)
  local semaphore = site.semaphore ~= 0 and ('(0x%x)'):format(site.semaphore_offset) or ''
  return ('%s:0x%x%s'):format(site.path, site.offset, semaphore)
end

--- Whether there is an event PROVIDER:NAME of the place.
---@param site Site
---@return boolean
function usdt.is_added(site)
  return sys.stat(('/sys/kernel/tracing/events/%s/%s'):format(site.provider, site.name)) ~= nil
end

--- Writes a line to uprobe_events.
---@param line string
---@return string? message if the kernel rejects it
function usdt.write(line)
  check.is(line, 'string', 'usdt.write takes a line')
  local err = ffi.new 'struct error'
  if C.probes_write(nil, C.PROBE_USER, line, err) < 0 then return ffi.string(err.text) end
end

return usdt
