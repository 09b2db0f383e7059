#!/usr/bin/env python3
"""serve.py PORT [FILE...]: listens on the loopback and sends each file (or standard input) to one client
after the other, then closes. Prints "listening" to stderr when it does. Port 0: prints the port."""
import shutil
import socket
import sys

server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(('127.0.0.1', int(sys.argv[1])))
server.listen()
print('listening', server.getsockname()[1], file=sys.stderr, flush=True)
for name in sys.argv[2:] or ['/dev/stdin']:
    client, _ = server.accept()
    try:
        with open(name, 'rb', buffering=0) as source, client.makefile('wb', buffering=0) as sink:
            shutil.copyfileobj(source, sink, 1 << 16)
    except OSError as error:
        print(error, file=sys.stderr)
    client.close()
