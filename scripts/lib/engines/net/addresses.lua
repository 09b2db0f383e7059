-- SPDX-License-Identifier: GPL-2.0-only
--- IP addresses as small integers, and with ports as people write them.
local bit = require 'bit'
local intern = require 'lib.intern'
local names = require 'lib.names'

local addresses = {}

local MAX = 2 ^ 20
local AF_INET = 2
local MAPPED = 0xffff -- the third word of an IPv4 address as IPv6 address

--- Returns a port from the 16 bits of a packet.
---@param network integer
---@return integer
function addresses.port(network) return network % 256 * 256 + bit.rshift(network, 8) end

--- Returns the 32 bits at an index of a field of bytes.
local function word(bytes, i) return ((bytes[i] * 256 + bytes[i + 1]) * 256 + bytes[i + 2]) * 256 + bytes[i + 3] end

--- The functions are called with a dot.
---@class Addresses
---@field v4 fun(bytes: any): integer returns the id of an address of 4 bytes
---@field v6 fun(bytes: any): integer returns the id of an address of 16 bytes; an IPv4 address in it has that of v4()
---@field sockaddr fun(bytes: any): integer, integer returns the id of the address and the port in a struct sockaddr
---@field of_socket fun(family: integer, v4: integer, a: integer, b: integer, c: integer, d: integer): integer returns
--- the id of an address of a socket, the words of which are as in a packet: v4, or the four of an IPv6 address
---@field text fun(id: integer): string? returns an address as text; nil: it is not known
---@field with_port fun(id: integer, port: integer): string? returns '10.0.0.1:80' or '[::1]:80'

--- Returns an empty table of addresses.
---@return Addresses
function addresses.new()
  local keys, self = intern.new(4, MAX), {}
  local id_of = keys.id

  function self.v4(bytes) return (id_of(0, 0, MAPPED, word(bytes, 0))) end
  function self.v6(bytes) return (id_of(word(bytes, 0), word(bytes, 4), word(bytes, 8), word(bytes, 12))) end
  function self.sockaddr(bytes)
    local port = bytes[2] * 256 + bytes[3]
    if bytes[0] + 256 * bytes[1] == AF_INET then return id_of(0, 0, MAPPED, word(bytes, 4)), port end
    return id_of(word(bytes, 8), word(bytes, 12), word(bytes, 16), word(bytes, 20)), port
  end
  local function host(network) return bit.bswap(network) % 2 ^ 32 end
  function self.of_socket(family, v4, a, b, c, d)
    if family == AF_INET then return (id_of(0, 0, MAPPED, host(v4))) end
    return (id_of(host(a), host(b), host(c), host(d)))
  end

  function self.text(id)
    if id < 0 or id >= keys:count() then return end
    local bytes, is_mapped = {}, keys:part(id, 1) == 0 and keys:part(id, 2) == 0 and keys:part(id, 3) == MAPPED
    for i = is_mapped and 4 or 1, 4 do
      local part = keys:part(id, i)
      for shift = 3, 0, -1 do bytes[#bytes + 1] = string.char(math.floor(part / 256 ^ shift) % 256) end
    end
    return names.ip(table.concat(bytes))
  end

  function self.with_port(id, port)
    local text = self.text(id)
    return text and ((text:find ':' and '[%s]:%d' or '%s:%d'):format(text, port))
  end
  return self
end

return addresses
