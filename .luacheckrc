-- SPDX-License-Identifier: GPL-2.0-only
std = 'luajit'
max_line_length = 120
files['tests/unit/**/*_spec.lua'] = { std = '+busted' }
