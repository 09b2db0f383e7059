#!/usr/bin/env python3
"""A link between the sender of a stream and its receivers, which a test can disturb.

  link.py UNIX FILE...      sends one file to each client (- is standard input), then ends
  link.py UNIX to UNIX      connects each client with the second socket, in both directions

SIGUSR1 breaks all connections, SIGUSR2 stops forwarding or goes on. Prints "listening" first.
"""
import os
import select
import signal
import socket
import sys


def listen(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    print('listening', flush=True)
    return server


def send_files(server, names):
    for name in names:
        client, _ = server.accept()
        source = sys.stdin.fileno() if name == '-' else os.open(name, os.O_RDONLY)
        try:
            while data := os.read(source, 1 << 16):
                client.sendall(data)
        except OSError as error:
            print(error, file=sys.stderr)
        client.close()


class Link:
    def __init__(self, server, target):
        self.server, self.target, self.peers = server, target, {}
        self.broken = self.stopped = False
        signal.signal(signal.SIGUSR1, lambda *_: setattr(self, 'broken', True))
        signal.signal(signal.SIGUSR2, lambda *_: setattr(self, 'stopped', not self.stopped))

    def close(self, one):
        other = self.peers.pop(one)
        self.peers.pop(other, None)
        one.close()
        other.close()

    def accept(self):
        client, _ = self.server.accept()
        sender = socket.socket(socket.AF_UNIX)
        try:
            sender.connect(self.target)
        except OSError:
            client.close()
            return
        self.peers[client], self.peers[sender] = sender, client

    def step(self):
        watched = [self.server] + ([] if self.stopped else list(self.peers))
        ready = select.select(watched, [], [], 0.02)[0]
        if self.broken:
            self.broken = False
            for one in list(self.peers):
                if one in self.peers:
                    self.close(one)
            return
        for one in ready:
            if one is self.server:
                self.accept()
            elif one in self.peers:
                try:
                    data = one.recv(1 << 16)
                    if data:
                        self.peers[one].sendall(data)
                    else:
                        self.close(one)
                except OSError:
                    self.close(one)


def main():
    server = listen(sys.argv[1])
    if sys.argv[2] != 'to':
        return send_files(server, sys.argv[2:])
    link = Link(server, sys.argv[3])
    while True:
        link.step()


main()
