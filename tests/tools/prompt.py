#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""prompt.py COMMAND...: runs it in a pseudo-terminal of 100 columns and talks to it as its standard input says, in lines:
  > TEXT    types the text; \\t, \\r, \\x04 and the like are keys
  < REGEX   waits until what was printed since the last match matches, at most 30 s; then goes on behind it
  ! NAME    sends a signal, such as USR2
Prints all output. Fails if something that was expected did not come."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

steps = sys.stdin.read().splitlines()
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
text, at, missing = "", 0, None


def read(seconds):
    global text
    if not select.select([fd], [], [], seconds)[0]:
        return True
    try:
        got = os.read(fd, 4096)
    except OSError:
        return False
    text += got.decode(errors="replace")
    return bool(got)


for step in steps:
    what, rest = step[:1], step[2:]
    if what == ">":
        os.write(fd, rest.encode().decode("unicode_escape").encode())
    elif what == "!":
        os.kill(pid, signal.Signals["SIG" + rest])
    elif what == "<":
        end = time.monotonic() + 30
        while not (found := re.compile(rest).search(text, at)):
            if time.monotonic() > end or not read(0.1):
                missing = rest
                break
        if missing:
            break
        at = found.end()
while not missing and read(30):
    pass
print(text)
if missing:
    sys.exit("expected: " + missing)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
