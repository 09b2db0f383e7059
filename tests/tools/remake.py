#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""remake.py PAGE...: runs the commands of pages again, as root, and writes what they print into the blocks below them.
The scripts of a page are those in its blocks of Lua, each with its file name in the first line. Commands run in a folder
of their own that has the tree's folders and profscript; those that end in & run beside the others, as do those in
comments, <!-- beside: COMMAND -->, which make something to see. A block that has lines of ... keeps the parts that it
shows; others get the whole output. A block of `text` has messages if it had some, events as libtraceevent's plugins print
them, and lines that are cut to fit the page, without their times unless it had some. The blocks that are not below a
command are listed at the end."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
CUT = "..."
WIDTH = 140
HIDDEN = re.compile("^[a-z-]+: .*( are missing: the kernel|the kernel did not report) ")  # depends on chance
DATE = re.compile(r"^\d{4}-\d\d-\d\d [\d:.]+(?= )")


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


def start(command, folder, out, err, plugins):
    command = re.sub(r"(?<!/var)/tmp/", folder + "/", re.sub(r"\bsudo ", "", command))
    print(command)
    environment = dict(os.environ, LC_ALL="C", TZ="UTC", PATH="/usr/sbin:/usr/bin:/sbin:/bin")
    if plugins is not None:
        environment["TRACEEVENT_PLUGIN_DIR"] = plugins
    return subprocess.Popen(command, shell=True, cwd=folder, start_new_session=True, text=True, stdin=subprocess.DEVNULL,
                            stdout=out, stderr=err, env=environment)


def run(command, folder, has_messages, plugins):
    """What it prints until it ends, or until Ctrl-C after 15 seconds."""
    process = start(command, folder, subprocess.PIPE, subprocess.STDOUT if has_messages else None, plugins)
    try:
        text = process.communicate(timeout=15)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
        text = process.communicate()[0]
    print(text, end="" if text.endswith("\n") else "\n")
    return text.replace(folder + "/", "/tmp/")


def fit_table(lines):
    """Cuts columns before the last ones: lines are the heading, the dashes and the rows."""
    spans = [m.span() for m in re.finditer("-+", lines[1])]
    starts = [0] + [end + 1 for _, end in spans[:-1]]
    ends = [end for _, end in spans[:-1]] + [None]
    cells = [[line[a:b] for a, b in zip(starts, ends)] for line in lines]
    last = next((i for i, cell in enumerate(cells[0]) if cell.strip() == "max"), len(spans) - 1)
    first = last
    while first > 1 and spans[first - 1][1] + len(CUT) + 2 + spans[-1][1] - starts[last] > WIDTH:
        first -= 1
    return [" ".join(row[:first] + [CUT] + row[last:]) for row in cells]


def fit(lines, has_times):
    out, i = [], 0
    start = 15 if any(line.startswith("|") for line in lines) else len(CUT)  # where the names of tasks begin
    if not has_times and any(len(line) > WIDTH and DATE.match(line) for line in lines):
        lines = [DATE.sub(CUT.ljust(start), line) for line in lines]
        lines = [re.sub(r"^(\|.{14}) {11}", r"\1", line) for line in lines]
        lines = [re.sub(r" \[\d+\] [\d.]+:", " " + CUT, line) for line in lines]
    while i < len(lines):
        if i + 1 < len(lines) and len(lines[i + 1]) > WIDTH and re.fullmatch("[- ]*-", lines[i + 1]):
            end = i + 2
            while end < len(lines) and not re.match(r"[\w:-]+: |\d{4}-", lines[end]):
                end += 1
            out += fit_table(lines[i:end])
            i = end
            continue
        line = lines[i]
        if len(line) > WIDTH and re.match(r"\S+;\S+ \d+$", line):  # a folded stack
            line = line[:line.index(";") + 1] + CUT + re.search(";.{,%d}$" % (WIDTH - 30), line)[0]
        out.append(line if len(line) <= WIDTH else line[:WIDTH - 4].rstrip() + " " + CUT)
        i += 1
    return out


def shape(line):
    """How the line begins, without its numbers, bars and columns."""
    return re.sub(r"#+", "#", re.sub(r"\b[0-9a-f.]+\b|[\d.]+|@+|\s+", "#", line))[:40]


def cut(text, block, is_fitted):
    """The parts of the new text that the block has. One in the middle begins with the words that its first line had, and
    the last one ends with those of its last line."""
    new = [line.rstrip() for line in text.rstrip("\n").split("\n") if not HIDDEN.search(line)]
    if is_fitted:
        new = fit(new, any(DATE.match(line) for line in block))
    parts = [[]]
    for line in block:
        if line == CUT:
            parts.append([])
        else:
            parts[-1].append(line)
    if len(parts) == 1:
        return new
    shapes = [shape(line) for line in new]
    at = len(parts[0])
    out = new[:at]
    for part in parts[1:-1]:
        begin = next((i for i in range(at, len(new)) if part and shapes[i] == shape(part[0])), None)
        if begin is None:
            print("not found again: " + "".join(part[:1]))
            continue
        out += [CUT] * (begin > at) + new[begin:begin + len(part)]
        at = begin + len(part)
    last = parts[-1]
    end = next((i + 1 for i in reversed(range(len(new))) if last and shapes[i] == shape(last[-1])), len(new))
    begin = max(at, end - len(last))
    return out + [CUT] * (begin > at) + new[begin:end]


def remake(path):
    lines = open(path).read().rstrip("\n").split("\n")
    out, beside, command, is_inside, i, left = [], [], None, False, 0, []
    quiet = subprocess.DEVNULL
    with tempfile.TemporaryDirectory() as folder:
        for name in ("build", "docs", "examples", "profscript", "tests"):
            os.symlink(os.path.join(TOP, name), os.path.join(folder, name))
        write_scripts(lines, folder)
        while i < len(lines):
            line = lines[i]
            out.append(line)
            i += 1
            is_text = line == "```text"
            if (line == "```" or is_text) and not is_inside:
                end = lines.index("```", i)
                if command:
                    has_messages = is_text and any(re.match(r"[a-z:-]+: ", shown) for shown in lines[i:end])
                    out += cut(run(command, folder, has_messages, None if is_text else ""), lines[i:end], is_text) + ["```"]
                else:
                    left.append("%s:%d" % (path, i))
                    out += lines[i:end + 1]
                i, command = end + 1, None
                continue
            if line.startswith("```"):
                is_inside = not is_inside
            if is_inside or not line:
                continue
            if command:
                run(command, folder, True, "")
                command = None
            aside = re.match("<!-- beside: (.*) -->|    (.*) &$", line)
            if aside:
                beside.append(start(aside[1] or aside[2], folder, quiet, quiet, ""))
                time.sleep(1)
            elif re.match("    (?! |host#|guest#|-)", line):
                command = line[4:]
        for process in beside:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    open(path, "w").write("\n".join(out) + "\n")
    return left


for place in [place for page in sys.argv[1:] for place in remake(page)]:
    print(place + ": not re-made")
