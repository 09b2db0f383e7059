# SPDX-License-Identifier: GPL-2.0-only
"""Usage: sparse.py IN OUT BYTES
Copies a perf.data file with a hole of BYTES in the middle of its records: an AUXTRACE record with that much data.
The copy has the same events and uses no more space on the disk."""
import struct
import sys

DATA, FLAGS = 40, 72  # offsets in the header: section of the records, bits of the features
source, target, hole = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(source, "rb") as file:
    old = file.read()
start, size = struct.unpack_from("<QQ", old, DATA)
end = start + size
middle = start
while middle < start + size // 2:
    middle += struct.unpack_from("<H", old, middle + 6)[0]
record = struct.pack("<IHHQ32x", 71, 0, 48, hole)
more = len(record) + hole

header = bytearray(old[:start])
struct.pack_into("<Q", header, DATA + 8, size + more)
features = bytearray(old[end:])
for i in range(sum(bin(byte).count("1") for byte in old[FLAGS:104])):
    (offset,) = struct.unpack_from("<Q", features, i * 16)
    struct.pack_into("<Q", features, i * 16, offset + more)
with open(target, "wb") as file:
    file.write(header + old[start:middle] + record)
    file.seek(hole, 1)
    file.write(old[middle:end] + features)
