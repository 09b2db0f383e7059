#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""screen.py PROFSCRIPT STATES: drives the screen of `profscript top` in a pseudo-terminal."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

ROWS, COLUMNS = 12, 90


def read_until(fd, text, wanted, seconds=20):
    """Reads until the pattern appears; returns the whole text."""
    end = time.time() + seconds
    while not re.search(wanted, text, re.S):
        if time.time() > end:
            sys.exit("no %r in %r" % (wanted, text[-2000:]))
        if select.select([fd], [], [], 0.1)[0]:
            text += os.read(fd, 65536).decode("utf-8", "replace")
    return text


def resize(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def main(profscript, states):
    load = subprocess.Popen([states, "fork", "100000000"])
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        event = "sched:sched_process_fork//key=parent_pid/comm=parent_comm/alias=forks/top-by=1/top-add=2/"
        os.execv(profscript, [profscript, "top", "-e", event, "-i", "200"])
    resize(fd, ROWS, COLUMNS)
    before = termios.tcgetattr(fd)[3]
    try:
        text = read_until(fd, "", r"\x1b\[\?1049h.*sorted by forks.*states")
        assert "\x1b[7m" in text, "the title is not inverse"
        assert not termios.tcgetattr(fd)[3] & termios.ICANON, "keys come by line"
        for line in re.findall(r"\x1b\[7m(.*?)\x1b\[m", text):
            assert len(line) < COLUMNS, line
        os.write(fd, b">")
        text = read_until(fd, "", r"sorted by 2")
        os.write(fd, b"\x1b[Dr")
        text = read_until(fd, "", r"sorted by forks, smallest first")
        resize(fd, 5, 30)
        read_until(fd, "", r"\x1b\[7m.{29}\x1b\[m")
        os.write(fd, b"q")
        text = read_until(fd, "", r"\x1b\[\?1049l")
    finally:
        load.kill()
    _, status = os.waitpid(pid, 0)
    assert status == 0, "status %d" % status
    assert termios.tcgetattr(fd)[3] == before, "the terminal is not what it was"


if __name__ == "__main__":
    main(*sys.argv[1:])
