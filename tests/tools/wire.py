#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A second implementation of the receiver of pushed events, to compare with.

wire.py receive ADDRESS [SECRET_FILE]   writes the stream of a sender to standard output
wire.py groups FILE                     checks a stream that is not compressed, and prints what it contains
wire.py clocks FILE                     prints flags and offset of HELLO, all PAIRs, TIME_CONVs, and spans of GROUPs
"""
import hashlib
import hmac
import os
import socket
import struct
import sys
import time


def connect(address):
    if address.startswith('unix:'):
        s = socket.socket(socket.AF_UNIX)
        s.connect(address[5:])
        return s
    host, port = address.rsplit(':', 1)
    return socket.create_connection((host, int(port)))


def prove(stream, s, secret):
    """Both ends prove that they know the secret."""
    word, version, theirs = stream.readline().split()
    assert (word, version) == (b'PROFSCRIPT-AUTH', b'1')
    ours = os.urandom(16).hex().encode()

    def proof(role):
        return hmac.new(secret, role + theirs + ours, hashlib.sha256).hexdigest().encode()
    s.sendall(ours + b' ' + proof(b'receiver') + b'\n')
    answer = stream.readline()
    if answer.strip() != proof(b'sender'):
        sys.exit('the sender hung up' if not answer else 'the sender does not know the secret')


def receive(address, secret_file=None):
    end = time.time() + 20
    while True:
        try:
            s = connect(address)
            break
        except OSError:
            if time.time() > end:
                raise
            time.sleep(0.02)
    stream = s.makefile('rb')
    if secret_file:
        with open(secret_file, 'rb') as f:
            prove(stream, s, f.read().rstrip(b'\n'))
    while True:
        data = stream.read1(1 << 16)
        if not data:
            return
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def records(path):
    """Yields type, data and offset of each record."""
    with open(path, 'rb') as f:
        data = f.read()
    assert data[:16] == b'PERFILE2' + struct.pack('<Q', 16), data[:16]
    at = 16
    while at < len(data):
        kind, _, size = struct.unpack_from('<IHH', data, at)
        if at + size > len(data):  # the sender or the receiver was killed
            break
        yield kind, data, at
        at += size
        if kind == 66:
            at += struct.unpack_from('<I', data, at - 8)[0]


def clocks(path):
    for kind, data, at in records(path):
        tag, body = data[at + 8:at + 16], at + 16
        if kind == 79:
            print('conv %d %d %d' % struct.unpack_from('<QQQ', data, at + 8))
        elif kind == 65 and tag == b'PSHELLO1':
            print('hello %d %d' % (*struct.unpack_from('<I', data, body + 4), *struct.unpack_from('<q', data, body + 64)))
        elif kind == 65 and tag == b'PSPAIR01':
            print('pair %d %d %d' % struct.unpack_from('<QQQ', data, body))
        elif kind == 65 and tag == b'PSGROUP1':
            _, first, end, events = struct.unpack_from('<QQQI', data, body)
            print('group %d %d %d' % (first, end, events))


def groups(path):
    expected, last, seq = None, 0, -1
    counts = dict(events=0, gaps=0, samples=0, groups=0, hello=0, pairs=0, bye=0, first=0)
    for kind, data, at in records(path):
        if kind == 9:
            counts['samples'] += 1
        elif kind == 65:
            tag, body = data[at + 8:at + 16], at + 16
            counts['hello'] += tag == b'PSHELLO1'
            counts['pairs'] += tag == b'PSPAIR01'
            counts['bye'] += tag == b'PSBYE001'
            if tag == b'PSGROUP1':
                number, first, end, events, _, before, _ = struct.unpack_from('<QQQIIQQ', data, body)
                if expected is None:
                    counts['first'] = expected = before
                assert number > seq and end >= last and before >= expected
                counts['gaps'] += before - expected
                counts['events'] += events
                counts['groups'] += 1
                seq, last, expected = number, end, before + events
    print(*('%s %d' % pair for pair in counts.items()))


if __name__ == '__main__':
    {'receive': receive, 'groups': groups, 'clocks': clocks}[sys.argv[1]](*sys.argv[2:])
