-- SPDX-License-Identifier: GPL-2.0-only
--- A return probe replaces the return address on the stack. Go moves its stacks when they grow and finds an address
--- there that is not its own: the program dies.
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'

local C = ffi.C
local go_program = {}

--- Fails if a file is a Go program.
---@param what string the return probe
---@param func string its function
---@param path string of the file
---@param file? ffi.cdata* struct elf_file, if it is open
function go_program.refuse(what, func, path, file)
  file = file or ffi.gc(C.elf_file_open(path, nil), C.elf_file_free)
  if file == nil or C.elf_file_is_go(file) == 0 then return end
  failure.usage("%s: %s is a Go program, which a return probe would crash, because its stacks move; probe the entry "
    .. "(uprobe:%s), or each return instruction (uprobe:%s+OFFSET; 'objdump -d' shows them)", what, path, func, func)
end

return go_program
