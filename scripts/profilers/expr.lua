-- SPDX-License-Identifier: GPL-2.0-only
--- Compiles a C expression over the fields of an event, and evaluates it.
local tables = require 'lib.table'

local C_TYPES = { i32 = 'int', u32 = 'unsigned int', i64 = 'long', u64 = 'unsigned long', string = 'string' }

--- Returns the only event that was selected; nil for none or several.
local function single_event(groups)
  local first = groups[1]
  return first and not groups[2] and not first[2] and first[1] or nil
end

local function print_program(out, event, program, verbose)
  out:printf('expression: %s\ntype: %s\n', program.text, C_TYPES[program.type])
  if #program.fields > 0 then out:printf('fields of %s:\n', event.name) end
  for _, name in ipairs(program.fields) do
    local field = event.fields[name]
    out:printf('  %-32s offset %d, %d bytes, %s\n', field.type .. ' ' .. name, field.offset, field.size,
      field.kind)
  end
  if verbose > 0 then out:printf('Lua:\n%s\n', program.source) end
end

--- Formats an integer in hexadecimal, as C's long, and in decimal.
local function result_text(value, type_name)
  if value == nil then return 'none: division by zero, or beyond the end of the record' end
  if type_name == 'string' then return ('"%s"'):format(value) end
  return (type_name == 'u64' and '0x%x (%u)' or '0x%x (%d)'):format(value, value)
end

return {
  summary = 'Compile a C expression and evaluate it for a few events',
  description = [[
Prints the type of the expression and the fields it reads, then each event and
the value of the expression. Filters and attributes such as key= and role= are
expressions of this kind. --dry-run compiles without evaluating. -v prints the
Lua code that the expression is compiled to.

Operators, those that bind most first:
  x++ x--  f()  a[i]
  ++x --x  + - ! ~  (type)x  *x  &x  sizeof
  * / %    + -    << >>    < <= > >=    == != ~
  &    ^    |    &&    ||    ?:    = += -= *= ...    ,
Integers have C's types and widths. text ~ "pattern*" matches a text with * and ?.
A division by zero and a read beyond the record give no value.

Functions:
  comm_get(pid)                 name of the task at the time of the event
  exit_reason_str(isa, reason)  name of a KVM exit: isa 1 VMX, 2 SVM
  ksymbol(address)              name of the kernel function at an address
  max(a, b), min(a, b)
  ntohl(x), ntohs(x)            from network to host byte order
  printf(format, ...)           prints, and returns the number of characters
  str(field)                    the string behind a pointer of a system call
  user(type, field)             a number behind it: user("u32", uaddr)
  strncmp(a, b, n)              as in C
  syscall_name(nr)              name of a system call of this machine
  system(format, ...)           runs a command of the shell; needs --allow-exec]],
  examples = {
    { "profscript expr -e sched:sched_wakeup 'pid + prio'", 'the value for five wakeups' },
    { "profscript expr -e sched:sched_switch 'prev_state & 3' --dry-run -v", 'what the expression compiles to' },
  },
  options = {
    exit_n = { default = 5 },
  },
  positional = {
    { name = 'expression', help = 'C expression over the fields of the event' },
  },

  start = function(opt, out, session)
    local event = single_event(opt.event)
    if not event then return nil, 'select one event with -e' end
    local program = session.expression(event, opt.expression, opt.allow_exec)
    print_program(out, event, program, opt.verbose)
    session.want { prints_events = true }
    tables.record('result', { 'value' })
    return {
      [event] = function(ev)
        out:print_event(ev)
        local value = program.value(ev)
        if out.format == 'text' then
          out:printf('result: %s\n', result_text(value, program.type))
        else
          out:record('result', { value = value })
        end
      end,
    }
  end,
}
