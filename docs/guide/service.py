#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A service with a problem, to reproduce the pages of the guide: service.py MODE"""
import ctypes
import os
import random
import select
import socket
import sys
import tempfile
import threading
import time

lock = threading.Lock()


def name_thread(name):
    """Sets the comm of the calling thread."""
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)  # PR_SET_NAME


def stall():
    """Every 0.3 s a thread syncs its log for 50 ms while it holds the lock that each request takes."""

    def write_log():
        name_thread('service-log')
        with tempfile.TemporaryFile(dir='/var/tmp') as log:
            while True:
                time.sleep(0.3)
                with lock:
                    end = time.monotonic() + 0.05
                    while time.monotonic() < end:
                        log.write(b'x' * 4096)
                        log.flush()
                        os.fsync(log.fileno())

    threading.Thread(target=write_log, daemon=True).start()
    while True:
        time.sleep(0.005)  # the next request
        with lock:
            sum(range(1000))


def spin():
    """An event loop that polls a thousand idle connections with a timeout of 0."""
    poll = select.poll()
    for _ in range(500):
        for end in os.pipe():
            poll.register(end, select.POLLIN)
    while True:
        poll.poll(0)


def wakeups():
    """Sends requests to a worker process, one at a time."""
    to_worker, to_service = os.pipe(), os.pipe()
    if os.fork() == 0:
        name_thread('worker')
        os.close(to_worker[1])
        while os.read(to_worker[0], 1):
            os.write(to_service[1], b'.')
        os._exit(0)
    while True:
        os.write(to_worker[1], b'.')
        os.read(to_service[0], 1)
        time.sleep(0.001)


def leak():
    """Each request has a buffer. Every tenth is kept."""
    kept = []
    while True:
        buffer = bytearray(64 << 10)
        if random.randrange(10) == 0:
            kept.append(buffer)
        time.sleep(0.002)


def disk():
    """Writes 4 KiB at random offsets of a file, and waits for the disk each time."""
    with tempfile.TemporaryFile(dir='/var/tmp') as file:
        os.posix_fallocate(file.fileno(), 0, 64 << 20)
        while True:
            os.pwrite(file.fileno(), b'x' * 4096, random.randrange(16 << 10) << 12)
            os.fdatasync(file.fileno())


def crowd():
    """Handles a request every 5 ms on a CPU that two other busy programs use."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for _ in range(2):
        if os.fork() == 0:
            name_thread('batch')
            service = os.getppid()
            while os.getppid() == service:
                sum(range(10000))
            os._exit(0)
    while True:
        time.sleep(0.005)
        sum(range(100000))


def client(address, nobody):
    """Sends requests over connections of ten each, and then asks where nobody listens."""
    name_thread('client')
    try:
        while True:
            with socket.create_connection(address) as server:
                for _ in range(10):
                    server.send(b'x' * 100)
                    server.recv(4096)
            socket.socket().connect_ex(nobody)
            time.sleep(0.005)
    except OSError:
        os._exit(0)  # the service has ended


def network():
    """An event loop that answers a client. Every fiftieth request takes it 30 ms."""
    server, unused = socket.create_server(('127.0.0.1', 0)), socket.socket()
    unused.bind(('127.0.0.1', 0))
    address = server.getsockname()
    if os.fork() == 0:
        server.close()
        client(address, unused.getsockname())
    poll, clients, requests = select.epoll(), {}, 0
    poll.register(server, select.EPOLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == server.fileno():
                one = server.accept()[0]
                clients[one.fileno()] = one
                poll.register(one, select.EPOLLIN)
            elif clients[fd].recv(4096):
                requests += 1
                if requests % 50 == 0:
                    time.sleep(0.03)
                clients[fd].send(b'x' * 1000)
            else:
                clients.pop(fd).close()


MODES = {'stall': stall, 'spin': spin, 'wakeups': wakeups, 'leak': leak, 'disk': disk, 'crowd': crowd,
         'network': network}

if len(sys.argv) != 2 or sys.argv[1] not in MODES:
    sys.exit('usage: service.py ' + '|'.join(MODES))
name_thread('service')
try:
    MODES[sys.argv[1]]()
except KeyboardInterrupt:
    pass
