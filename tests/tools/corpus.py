#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compares what profscript reads in recordings with what perf reads.

   tests/tools/corpus.py FOLDER...

Recordings are all files below the folders that begin like one, plain or compressed by gzip, xz or zlib (with or
without the 4 bytes of its length before it). Prints a line for each of them:

  equal    both read the same samples: time, event, process, thread, task name, CPU, period, address, file, callchain
  better   perf fails; what it read before that is in what profscript reads
  refused  profscript says why it cannot read it, and perf reads nothing either
  differs  anything else, with the first difference

The last line is the sum. The exit status is 1 if a recording differs.

Intended differences:
  - perf names a task without a known name ":TID"; we, "<...>".
  - A callchain ends where a walk over frame pointers has gone wrong (runtime/stacks/stacks.c). perf goes on.
  - If the recording has copies of stacks, our callchains continue with what is found in them.
  - perf has a file for each kernel module, its own copy of the vdso, and names memory without a file after the list of
    JIT-compiled functions that could exist: we have [module], [vdso] and [anon].
  - An address in the kernel's half is [kernel.kallsyms], also if the recording does not list the kernel, and one in the
    other half is the program's, also if the processor took the sample in the kernel. perf finds neither.
  - Linux before 3.16 has no protection in MMAP2. perf then takes the path for it, and cuts 8 bytes.
  - A pipe's events have no names: perf adds modifiers that it reads from their attributes.
  - Scripts add the time of a sample and that of the first one as doubles.
"""
import collections
import gzip
import lzma
import os
import re
import subprocess
import sys
import tempfile
import zlib

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROFSCRIPT = os.environ.get('PROFSCRIPT', os.path.join(TOP, 'profscript'))
MAGIC = (b'PERFILE2', b'2ELIFREP', b'PERFFILE')
CONTEXT_MAX = 2**64 - 4095
CONTEXT_KERNEL, CONTEXT_USER = 2**64 - 128, 2**64 - 512
USER_START, USER_END = 4096, 2**48
TIMEOUT = 120  # seconds per recording

SAMPLE = re.compile(r'(\d+ )?(\d+ )?0x[0-9a-f]+ \[0x[0-9a-f]+\]: PERF_RECORD_SAMPLE\(IP, 0x[0-9a-f]+\): '
                    r'(-?\d+)/(-?\d+): (0x[0-9a-f]+|0) period: (\d+)')
FRAME = re.compile(r'\.\.\.\.\. *\d+: ([0-9a-f]{16})$')
NAMES = 'time event pid tid comm cpu period address file chain'.split()
Sample = collections.namedtuple('Sample', [*NAMES, 'has_copy'])


def unpacked(path):
    """Returns the bytes of a recording, None if the file is none."""
    with open(path, 'rb') as file:
        data = file.read()
    for unpack in (lambda: data, lambda: gzip.decompress(data), lambda: lzma.decompress(data),
                   lambda: zlib.decompress(data), lambda: zlib.decompress(data[4:])):
        try:
            found = unpack()
        except (OSError, EOFError, lzma.LZMAError, zlib.error):
            continue
        if found[:8] in MAGIC:
            return found
    return None


def run(*command):
    """Returns the lines of its output, whether it failed, and the last line of its errors."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False,
                              env={**os.environ, 'TRACEEVENT_PLUGIN_DIR': '', 'LC_ALL': 'C'})
    except subprocess.TimeoutExpired:
        return [], True, f'takes more than {TIMEOUT} s'
    said = [line for line in done.stderr.decode(errors='replace').splitlines() if line.strip()]
    return (done.stdout.decode(errors='replace').splitlines(), done.returncode != 0,
            said[-1] if said else f'exit status {done.returncode}' if done.returncode else '')


def split_head(one, two):
    """perf prints the CPU and the time, if the recording has them."""
    if two:
        return one.strip(), two.strip()
    one = one.strip() if one else ''
    return (one, '') if one and len(one) <= 4 else ('', one)


def valid_chain(addresses):
    """Returns the addresses before a walk over frame pointers went wrong, without marks."""
    kernel, user, part = [], [], None
    for address in addresses:
        if address >= CONTEXT_MAX:
            part = {CONTEXT_KERNEL: kernel, CONTEXT_USER: user}.get(address)
            continue
        if part is None and not kernel and not user:
            part = kernel if address >= USER_END else user
        if part is user and address >= USER_END:
            part = ()
        elif part is user or part is kernel and not user:
            part.append(address)
    if len(user) > 1 and 0 < user[-1] < USER_START and user[-1] == addresses[-1]:
        user.pop()
    return ' '.join(f'{address:016x}' for address in kernel + user)


def perf_samples(path):
    lines, failed, said = run('perf', 'script', '-D', '-F', 'event', '-i', path)
    samples, current, is_chain = [], None, False
    for line in lines:
        head = SAMPLE.match(line)
        if head:
            one, two, pid, tid, address, period = head.groups()
            cpu, time = split_head(one, two)
            current = {'time': time, 'pid': pid, 'tid': tid, 'comm': '', 'cpu': cpu or '-1', 'period': period,
                       'address': f'{int(address, 16):016x}', 'file': '', 'event': '', 'chain': [], 'has_copy': False}
        elif not current:
            continue
        elif FRAME.match(line):
            if is_chain:
                current['chain'].append(int(FRAME.match(line).group(1), 16))
        elif ' call chain: ' in line or ' callstack: ' in line or ' branch stack: ' in line:
            is_chain = False
        elif line.startswith('... FP chain: '):
            is_chain = True
        elif line.startswith('... ustack: '):
            current['has_copy'] = True
        elif line.startswith(' ... thread: '):
            current['comm'] = line[len(' ... thread: '):].rpartition(':')[0]
        elif line.startswith(' ...... dso: '):
            current['file'] = line[len(' ...... dso: '):]
        elif re.match(r'\s*\S+: *$', line) and not line.startswith('.'):
            current['event'] = line.strip()[:-1]
            current['chain'] = valid_chain(current['chain'])
            samples.append(Sample(**current))
            current = None
    return samples, said if failed else None


def our_samples(path):
    lines, failed, said = run(PROFSCRIPT, os.path.join(TOP, 'tests/tools/recorded.lua'), '-g', '--input', path)
    samples = [line.split('\t') for line in lines]
    samples = [Sample(*words, False) for words in samples if len(words) == len(NAMES)]
    return samples, failed, re.sub(r'^\S+: \S*perf\.data: ', '', said)


def same_file(theirs, ours):
    module = re.fullmatch(r'.*/([^/]+)\.ko(\.\w+)?', theirs)
    return (theirs == ours or theirs == '<not found>'
            or len(ours) == len(theirs) + 8 and ours.endswith(theirs)
            or module and f'[{module.group(1).replace("-", "_")}]' == ours
            or theirs.startswith('/tmp/perf-vdso.so-') and ours == '[vdso]'
            or re.fullmatch(r'/tmp/perf-\d+\.map|//anon', theirs) and ours == '[anon]')


def same(name, theirs, ours):
    """Returns whether a word of two samples that stand for each other says the same."""
    one, two = getattr(theirs, name), getattr(ours, name)
    if name == 'time':
        return not one or one == two or int(one) > 2**53 and abs(int(one) - int(two)) <= 8
    if name == 'comm':
        return one == two or re.fullmatch(r':-?\d+', one) and two == '<...>'
    if name == 'event':
        return one == two or re.fullmatch(re.escape(two) + ':[a-zA-Z]+', one)
    if name == 'cpu':
        return int(one) % 2**32 == int(two) % 2**32
    if name == 'chain' and theirs.has_copy:
        return two.startswith(one)
    if name in ('address', 'file') and not ours.address: # tracepoints have fields instead
        return True
    return same_file(one, two) if name == 'file' else one == two


def compare(theirs, ours):
    """Returns the first difference of two samples, None if there is none."""
    for name in NAMES:
        if not same(name, theirs, ours):
            one, two = getattr(theirs, name), getattr(ours, name)
            return f'{name}: perf {one or "-"}, profscript {two or "-"} (of {theirs.event} at {theirs.time})'
    return None


def order(samples):
    return sorted(samples, key=lambda s: (s.time.rjust(20), s.pid, s.tid, s.event, s.address, s.chain))


def first_difference(theirs, ours, is_cut):
    if len(theirs) != len(ours) and not (is_cut and len(theirs) < len(ours)):
        return f'perf reads {len(theirs)} samples, profscript {len(ours)}'
    if is_cut and len(theirs) < len(ours): # perf has stopped somewhere
        last = max((one.time.rjust(20) for one in theirs), default='')
        ours = [one for one in ours if one.time.rjust(20) <= last][:len(theirs)]
    for one, two in zip(order(theirs), order(ours)):
        difference = compare(one, two)
        if difference:
            return difference
    return None


def verdict(path):
    """Returns the verdict on a recording, and what explains it."""
    theirs, failed = perf_samples(path)
    ours, is_damaged, said = our_samples(path)
    difference = first_difference(theirs, ours, failed)
    also = f'; {said}' if said else ''
    if difference:
        return 'differs', difference + also
    if is_damaged and not ours:
        return 'refused', said
    read = f'{len(ours)} samples{also}'
    return ('better', f'{read}; perf: {failed}') if failed else ('equal', read)


def main():
    sums = collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for folder in sys.argv[1:]:
            for root, folders, files in os.walk(folder):
                folders.sort()
                for name in sorted(files):
                    data = unpacked(os.path.join(root, name))
                    if data is None:
                        continue
                    path = os.path.join(scratch, 'perf.data')
                    with open(path, 'wb') as file:
                        file.write(data)
                    what, why = verdict(path)
                    sums[what] += 1
                    print(f'{what:8} {os.path.relpath(os.path.join(root, name), folder)}: {why}', flush=True)
    print(f'{sum(sums.values())} recordings: ' + ', '.join(f'{sums[w]} {w}' for w in
                                                            ('equal', 'better', 'refused', 'differs')))
    return 1 if sums['differs'] or not sums else 0


if __name__ == '__main__':
    sys.exit(main())
