# SPDX-License-Identifier: Apache-2.0
# A token file of texts, by docs/token_files.md: for fine_tuning.py, whose rows are numbers that no tokenizer has made.
import hashlib
import struct


def write(path, rows, vocabulary):
    """Each row is an example, each of its tokens counts. 4 bytes a token; no tokenizer's digest, so that any model takes it."""
    offsets = [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row))
    head = b"SLTOKENS" + struct.pack("<4I", 1, 0, 4, 0) + struct.pack("<5Q", vocabulary, len(rows), len(rows), offsets[-1], 0) + bytes(64)
    whole, rest = divmod(offsets[-1], 8)
    counts = b"\xff" * whole + (bytes([(1 << rest) - 1]) if rest else b"")
    body = struct.pack(f"<{len(offsets)}Q", *offsets) + counts.ljust(-(-len(counts) // 8) * 8, b"\0")
    body += b"".join(struct.pack(f"<{len(row)}I", *row) for row in rows)
    path.write_bytes(head + hashlib.sha256(head + body).digest() + body)
