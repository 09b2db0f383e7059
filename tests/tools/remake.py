#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""remake.py PAGE...: runs the commands of pages again, as root, and writes what they print into the blocks below them.
The scripts of a page are those in its blocks of Lua, each with its file name in the first line. Commands run in a folder
of their own that has the tree's docs, examples and profscript; those that end in & run beside the others. A block that
ends in a line of ... keeps its number of lines; others get the whole output."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
CUT = "..."


def write_scripts(lines, folder):
    script = None
    for i, line in enumerate(lines):
        if line.startswith("```"):
            script = None
            if line == "```lua" and lines[i + 1].startswith("-- "):
                script = open(os.path.join(folder, lines[i + 1][3:]), "w")
        elif script:
            script.write(line + "\n")
            script.flush()


def run(command, folder):
    command = re.sub(r"\bsudo ", "", command).replace("/tmp/", folder + "/")
    if command.endswith("&"):
        beside = subprocess.Popen(command[:-1], shell=True, cwd=folder, start_new_session=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)
        return beside, ""
    done = subprocess.run(command, shell=True, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=30,
                          env=dict(os.environ, LC_ALL="C", TZ="UTC", TRACEEVENT_PLUGIN_DIR=""))
    print("%s\n%s" % (command, done.stdout), end="" if done.stdout.endswith("\n") else "\n")
    return None, done.stdout.replace(folder + "/", "/tmp/")


def cut(text, block):
    new = [line.rstrip() for line in text.rstrip("\n").split("\n")]
    if block and block[-1] == CUT and len(new) > len(block) - 1:
        new = new[:len(block) - 1] + [CUT]
    return new


def remake(path):
    lines = open(path).read().rstrip("\n").split("\n")
    out, beside, text, is_inside, i = [], [], None, False, 0
    with tempfile.TemporaryDirectory() as folder:
        for name in ("docs", "examples", "profscript"):
            os.symlink(os.path.join(TOP, name), os.path.join(folder, name))
        write_scripts(lines, folder)
        while i < len(lines):
            line = lines[i]
            out.append(line)
            i += 1
            if line == "```" and not is_inside and text is not None:
                end = lines.index("```", i)
                out += cut(text, lines[i:end]) + ["```"]
                i, text = end + 1, None
            elif line.startswith("```"):
                is_inside = not is_inside
            elif not is_inside and line.startswith("    "):
                process, text = run(line[4:], folder)
                beside += [process] if process else []
            elif line:
                text = None
        for process in beside:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    open(path, "w").write("\n".join(out) + "\n")


for page in sys.argv[1:]:
    remake(page)
