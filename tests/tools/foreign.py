#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Makes a pushed stream one of another kernel: foreign.py <FROM >TO

Its boot id becomes another one. The last letter of the names of the kernel's functions becomes f: only the stream has
these names.
"""
import struct
import sys

data = bytearray(sys.stdin.buffer.read())
at = 16
while at + 8 <= len(data):
    kind, _, size = struct.unpack_from('<IHH', data, at)
    if kind == 66 or size < 8:  # tracing data is followed by its text
        size += struct.unpack_from('<I', data, at + 8)[0]
    tag = data[at + 8:at + 16] if kind == 65 else b''
    if tag == b'PSHELLO1':
        data[at + 24:at + 40] = b'another kernel :'
    elif tag == b'PSKSYM01':
        lines = data[at + 16:at + size].split(b'\n')
        data[at + 16:at + size] = b'\n'.join(
            line if b'\t' in line or not line else line[:-1] + b'f' for line in lines)
    at += size
sys.stdout.buffer.write(data)
