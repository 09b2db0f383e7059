-- SPDX-License-Identifier: GPL-2.0-only
--- USDT probes of ELF files, and the file that a word for a program or library means.
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local libc = require 'bindings.base.libc'
local nearest = require 'bindings.base.nearest'

local C = ffi.C
local usdt = {}

local PATH_SIZE, FETCH_SIZE = 4096, 512

--- One place of a USDT probe.
---@class Site
---@field path string
---@field provider string
---@field name string
---@field args string as the note has them
---@field addr number as the note has it, like base and semaphore
---@field base number
---@field semaphore number 0: none
---@field offset number in the file, like semaphore_offset
---@field semaphore_offset number

--- The path of the file that `word` means: see runtime/probes/binary.h.
---@param word string
---@return string
function usdt.find_binary(word)
  local err, path = ffi.new 'struct error', ffi.new('char[?]', PATH_SIZE)
  if C.binary_find(word, path, PATH_SIZE, err) < 0 then failure.raise('%s', ffi.string(err.text)) end
  return ffi.string(path)
end

local SITE_NUMBERS = { 'addr', 'base', 'semaphore', 'offset', 'semaphore_offset' }

--- All places of all probes in a file, in the file's order.
---@param path string
---@return Site[]
function usdt.sites(path)
  local err = ffi.new 'struct error'
  local file = C.usdt_open(path, err)
  if file == nil then failure.raise('%s', ffi.string(err.text)) end
  file = ffi.gc(file, C.usdt_free)
  local sites = {}
  for i = 0, C.usdt_count(file) - 1 do
    local p = C.usdt_probe(file, i)
    local site = {
      file = file,
      index = i,
      path = path,
      provider = ffi.string(p.provider),
      name = ffi.string(p.name),
      args = ffi.string(p.args),
    }
    for _, number in ipairs(SITE_NUMBERS) do
      site[number] = tonumber(p[number])
    end
    sites[i + 1] = site
  end
  return sites
end

--- What fetches the arguments of a place, as the kernel's uprobe_events has it.
---@param site Site
---@param formats string words separated by blanks, the n-th for argument n: see usdt_fetch_arg()
---@return string args
---@return string[] left_out what could not be translated, a line each
function usdt.fetch_args(site, formats)
  local err, out = ffi.new 'struct error', ffi.new('char[?]', FETCH_SIZE)
  local words, args, left_out = {}, {}, {}
  for word in formats:gmatch '%S+' do
    words[#words + 1] = word
  end
  local n = 0
  while true do
    local code = C.usdt_fetch_arg(site.file, site.index, n, words[n + 1], out, FETCH_SIZE, err)
    if code == -libc.ENOENT then break end
    if code == -libc.EINVAL then failure.usage('%s', ffi.string(err.text)) end
    local list = code == 0 and args or left_out
    list[#list + 1] = ffi.string(code == 0 and out or err.text)
    n = n + 1
  end
  if #words > n then
    failure.usage("%s:%s has %d arguments: '%s' is for none of them", site.provider, site.name, n, words[n + 1])
  end
  return table.concat(args, ' '), left_out
end

--- The places that a name and an address select. It fails when there are none.
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
    if #sites == 0 then failure.raise('%s has no USDT probes', path) end
    failure.raise("no USDT probe '%s'%s in %s%s", name, wanted.addr and (' at 0x%x'):format(wanted.addr) or '', path,
      nearest.hint(name, names))
  end
  return found
end

--- The place as the kernel's uprobe_events has it.
---@param site Site
---@return string
function usdt.place(site)
  local semaphore = site.semaphore ~= 0 and ('(0x%x)'):format(site.semaphore_offset) or ''
  return ('%s:0x%x%s'):format(site.path, site.offset, semaphore)
end

--- Gives the kernel a line for uprobe_events.
---@param line string
---@return string? message what the kernel objects to
function usdt.write(line)
  local err = ffi.new 'struct error'
  if C.probes_write(nil, C.PROBE_USER, line, err) < 0 then return ffi.string(err.text) end
end

return usdt
