-- SPDX-License-Identifier: GPL-2.0-only
local man = require 'lib.engines.man'
local options = require 'bindings.options.parser'
local version = require 'bindings.base.version'

local profiler = {
  summary = 'Measure waits',
  description = 'A wait begins\n.in silence.\n\nAs in\n  a - b\n',
  attributes = { 'key', 'alias' },
  unsupported = { 'event', 'attach', 'run', 'ring' },
  options = { than = { type = 'duration', help = "longer ones, not 'all'" } },
  positional = { { name = 'file', required = false, help = 'where\\what' } },
  examples = { { 'profscript waits --than 1ms', 'the long ones' } },
}

it('a page is generated from the declarations', function()
  local script = { name = 'waits', profiler = profiler, spec = assert(options.declare(profiler)) }
  assert.equal(([[
.TH "PROFSCRIPT\-WAITS" 1 "" "profscript VERSION" "profscript"
.SH NAME
profscript\-waits \- Measure waits
.SH SYNOPSIS
.B profscript waits [options] [FILE]
.SH DESCRIPTION
.PP
A wait begins
\&.in silence.
.PP
.nf
As in
  a \- b
.fi
.TP
.B FILE
where\ewhat
.SH ATTRIBUTES
.PP
Event attributes in addition to those in
.BR profscript (1):
.TP
.B key=EXPR
value by which events are grouped or paired
.SH OPTIONS
.SS "waits options"
.TP
.B \-\-than T
longer ones, not 'all' (ns)
.SS "general options"
.TP
.B \-v, \-\-verbose
be more verbose; \-vv also prints each event
.TP
.B \-q, \-\-quiet
print results only
.TP
.B \-V, \-\-version
print the version
.TP
.B \-h, \-\-help[=all]
print this help; all: with all common options
.SH EXAMPLES
.PP
the long ones:
.PP
.RS 4
.nf
profscript waits \-\-than 1ms
.fi
.RE
.SH SEE ALSO
.BR profscript (1)
]]):gsub('VERSION', version), man.profiler(script))
end)

it('a line never starts like a roff command', function()
  assert.equal("\\&.x\n\\&'y\nz", man.escape ".x\n'y\nz")
end)

it('the page of the command names all profilers and common attributes', function()
  local page = man.overview { { name = 'waits', profiler = profiler } }
  for _, part in ipairs { '.TP\n.B waits\nMeasure waits\n', '.B freq=N\n', '.B max\\-stack[=N]\n', '.B \\-\\-check\n',
    '.BR profscript\\-waits (1),\n.BR perf (1)\n' } do
    assert.truthy(page:find(part, 1, true), part)
  end
  assert.is_nil(page:find('.B key=EXPR', 1, true))
end)
