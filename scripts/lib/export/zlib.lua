-- SPDX-License-Identifier: GPL-2.0-only
--- zlib's compressed files. The library is loaded when a file is compressed; libelf brings it along.
local ffi = require 'ffi'

ffi.cdef [[
void *gzdopen(int fd, const char *mode);
int gzwrite(void *file, const void *bytes, unsigned int n);
int gzclose(void *file);
]]

local zlib = {}
local library

---@return ffi.namespace*
function zlib.load()
  library = library or ffi.load 'libz.so.1'
  return library
end

return zlib
