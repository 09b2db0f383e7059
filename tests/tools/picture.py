#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""picture.py SUBJECT PROFSCRIPT ARG...: runs a profiler in a pseudo-terminal and looks at the pictures that it draws:
SUBJECT is 'histogram', 'plain' (the same without colors), 'periods' (of stat), 'none' (it prints text), or a pattern in a table that is drawn."""
import os
import pty
import re
import sys
import termios

from screen import read_until, resize

ENTER, LEAVE = r"\x1b\[\?1049h", r"\x1b\[\?1049l"
COLOR = r"\x1b\[48;5;\d+m +\x1b\["
# A bar, and beside it the cells of the intervals, in the second case of two or more
BUCKET = {"histogram": r"\[\d[^|]*\|@+ *\| *" + COLOR, "plain": r"\[\d[^|]*\|@+ *\| *[.:=+*#%@-]{2,}"}
ROWS, COLUMNS = 30, 100


def main(subject, profscript, *args):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.pop("NO_COLOR", None)
        os.environ["TERM"] = "xterm-256color"
        if subject == "plain":
            os.environ["NO_COLOR"] = "1"
        os.execv(profscript, [profscript, *args])
    resize(fd, ROWS, COLUMNS)
    before = termios.tcgetattr(fd)[3]
    if subject == "none":
        text = read_until(fd, "", r"\|@+ *\|.*\|@+ *\|")
        assert not re.search(ENTER, text), "a picture where lines are printed, too"
    elif subject == "periods":
        text = read_until(fd, "", ENTER + r".*\[000\] \S+ +\d+ +" + COLOR)
    elif subject not in BUCKET:
        text = read_until(fd, "", ENTER + ".*" + subject)
    else:
        text = read_until(fd, "", ENTER + ".*" + BUCKET[subject])
        assert bool(re.search(COLOR, text)) == (subject == "histogram"), "colors: %r" % text[-1000:]
    if subject != "none":
        text = read_until(fd, "", r"\x1b\[H.*\x1b\[J")  # the next one takes its place
        assert not re.search(ENTER, text), "another screen"
        resize(fd, 6, 60)
        text = read_until(fd, "", r"\x1b\[H(?:(?!\x1b\[J).)*\x1b\[J") if subject not in BUCKET else read_until(
            fd, "", r"\.\.\. \d+ more lines\x1b\[K")
        os.write(fd, b"q")
        read_until(fd, "", LEAVE)
    else:
        os.write(fd, b"\x03")
    try:
        while os.read(fd, 65536):
            pass
    except OSError:
        pass
    _, status = os.waitpid(pid, 0)
    assert status == 0, "status %d" % status
    assert termios.tcgetattr(fd)[3] == before, "the terminal is not what it was"


main(*sys.argv[1:])
