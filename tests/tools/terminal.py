#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""terminal.py COMMAND...: runs it in a pseudo-terminal of 100 columns, which shrinks to 15 after two reports of stat, and
prints its output."""
import fcntl
import os
import pty
import struct
import sys
import termios


def resize(fd, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
resize(fd, 100)
text, narrow = b"", False
while True:
    try:
        got = os.read(fd, 4096)
    except OSError:
        break
    if not got:
        break
    text += got
    if not narrow and text.count(b"|sched_switch") == 2:
        resize(fd, 15)
        narrow = True
os.write(1, text)
