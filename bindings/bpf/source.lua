-- SPDX-License-Identifier: GPL-2.0-only
--- Compiles the C source of BPF programs with clang. Object files are kept in the user's cache.
local bit = require 'bit'
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local libc = require 'bindings.base.libc'
local sys = require 'bindings.base.sys'
local text = require 'bindings.base.text'

local bpf_source = {}

local OTHERS_WRITE = 18 -- mode bits g+w, o+w
local MAX_LINES = 8 -- of clang's messages
local ARCHS = {
  x64 = { target = 'x86', multiarch = 'x86_64-linux-gnu' },
  arm64 = { target = 'arm64', multiarch = 'aarch64-linux-gnu' },
}

local ARCH = ARCHS[ffi.arch] or { target = ffi.arch, multiarch = '' }
local FLAGS = ('-g -O2 -Wall -D__TARGET_ARCH_%s -I/usr/include/%s'):format(ARCH.target, ARCH.multiarch)

local function quote(word) return "'" .. word:gsub("'", "'\\''") .. "'" end

--- Runs a command and returns its output and messages.
local function output_of(command)
  local pipe = io.popen(command .. ' 2>&1')
  local printed = pipe:read '*a'
  pipe:close()
  return printed
end

--- Returns the cache directory, nil if others can write to it, because then its files are not trustworthy.
local function cache_folder()
  local base = sys.getenv 'XDG_CACHE_HOME'
  local home = sys.getenv 'HOME'
  if not base or base == '' then base = home and home ~= '' and home .. '/.cache' or nil end
  if not base then return nil end
  local folder = base .. '/profscript/bpf'
  output_of('mkdir -p -m 700 ' .. quote(folder))
  local st = sys.stat(folder)
  if st and st.uid == libc.geteuid() and bit.band(st.mode, OTHERS_WRITE) == 0 then return folder end
end

--- Returns a file name for a text: its 64-bit FNV-1a hash. Collisions are harmless, because the source is stored next
--- to the object file and compared.
local function hash(s)
  local h = 0xcbf29ce484222325ULL
  for i = 1, #s do
    h = bit.bxor(h, s:byte(i) + 0ULL) * 0x100000001b3ULL
  end
  return bit.tohex(h)
end

--- Runs clang and returns its messages. It runs in the source's directory, where it finds the lines to quote in BTF.
--- The object file is moved into place when it is complete.
local function run_clang(folder, base, source, include)
  local file, message = io.open(base .. '.c', 'wb')
  if not file then return message end
  file:write(source)
  file:close()
  local part = quote(('%s.%d'):format(base, libc.getpid()))
  return output_of(('{ cd %s && clang -target bpf %s -I%s -c -o %s %s && mv %s %s; }'):format(quote(folder), FLAGS,
    quote(include), part, quote(base .. '.c'), part, quote(base .. '.o')))
end

--- Compiles a source text.
---@param place { name: string, folder: string, first: integer, include: string } file and directory of the text, its
--- first line number, and the directory for #include "..."
---@param source string
---@return string bytes of the object file
function bpf_source.compile(place, source)
  local name = place.name
  source = ('#line %d "%s"\n%s'):format(place.first, name:gsub('[\\"]', '\\%0'), source)
  -- Sources that include their own files are not cached, because those files may change.
  local folder = not source:find '#%s*include%s*"' and cache_folder() or nil
  local is_temporary = not folder
  folder = folder or output_of('mktemp -d'):match '^[^\n]*'
  local base = ('%s/%s'):format(folder, hash(FLAGS .. source))
  local bytes = not is_temporary and sys.read(base .. '.c') == source and sys.read(base .. '.o')
  if not bytes then
    os.remove(base .. '.o')
    local log = run_clang(place.folder, base, source, place.include)
    bytes = sys.read(base .. '.o')
    if is_temporary then output_of('rm -rf ' .. quote(folder)) end
    if not bytes then
      if log:find 'clang: not found' or log:find 'clang: command not found' then
        failure.unavailable('%s: compiling BPF programs needs clang (Debian: clang, libbpf-dev)', name)
      end
      local lines = {}
      for line in log:gmatch '[^\n]+' do
        if #lines < MAX_LINES and not line:match '^%d+ errors? generated' then lines[#lines + 1] = text.safe(line) end
      end
      failure.raise('%s', table.concat(lines, '\n'))
    end
  end
  return bytes
end

return bpf_source
