-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the files that programs look at through stat() and lstat() of the C library of x86-64.
---
---   profscript examples/statsnoop.lua
return {
  summary = 'Print the files that programs look at',
  start = function(_, out)
    local function look(ev)
      local file = ev.file
      if file ~= '' then out:row { 'pid', ev._pid, 'comm', ev._comm, 'file', file } end -- '': an open file
    end
    return {
      ['uprobe:stat64@libc.so.6(file=+0(%di):ustring)'] = look,
      ['uprobe:lstat64@libc.so.6(file=+0(%di):ustring)'] = look,
      ['uprobe:fstatat64@libc.so.6(file=+0(%si):ustring)'] = look,
    }
  end,
}
