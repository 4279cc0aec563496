# SPDX-License-Identifier: Apache-2.0
# Sequences -> a token file. docs/token_files.md says what each byte means.
# Last step of `sealift-train tokenize`; data/token_view.cpp reads what is written here.
# Tokens go to a file beside the result until their number is known, and a result has its name only when it is whole.
import array
import functools
import hashlib
import os
import struct
import sys

from example_lines import KINDS

MAGIC, VERSION = b"SLTOKENS", 1


class Writer:
    """Collects sequences, tokens in a file beside `out`, and puts the whole together at the end."""

    def __init__(self, out, kind, model, template):
        self.out, self.kind, self.model, self.template = out, kind, model, template
        self.type = "H" if model.vocabulary <= 1 << 16 else "I"
        self.begins, self.values, self.mask, self.rest = array.array("Q", [0]), array.array("f"), bytearray(), b""
        self.examples = self.answer_tokens = 0
        self.scratch = out.with_name(out.name + ".tokens")
        self.partial = out.with_name(out.name + ".partial")
        self.tokens = open(self.scratch, "wb")

    def add(self, sequences, value):
        for ids, bits in sequences:
            self.tokens.write(little(array.array(self.type, ids)))
            self.begins.append(self.begins[-1] + len(ids))
            self.answer_tokens += bits.count(b"1")
            self._bits(bits)
        self.examples += 1
        if self.kind in ("preference", "labelled"):
            self.values.append(value)

    def _bits(self, bits):
        bits = self.rest + bits
        whole = len(bits) // 8 * 8
        self.mask += packed(bits[:whole])
        self.rest = bytes(bits[whole:])

    def finish(self):
        """Writes the file under its name; returns its digest."""
        self.tokens.close()
        self._bits(b"0" * (-len(self.rest) % 8))
        head = struct.pack("<8sIIIIQQQQQ", MAGIC, VERSION, KINDS.index(self.kind), array.array(self.type).itemsize, 0,
                           self.model.vocabulary, self.examples, len(self.begins) - 1, self.begins[-1], 0)
        head += self.model.digest
        head += hashlib.sha256(self.template.encode()).digest() if self.template is not None else bytes(32)
        digest = hashlib.sha256(head)
        with open(self.partial, "wb") as file, open(self.scratch, "rb") as tokens:
            file.write(head + bytes(32))
            for section in (little(self.begins), to_eight(little(self.values)), to_eight(bytes(self.mask))):
                digest.update(section)
                file.write(section)
            for block in iter(functools.partial(tokens.read, 1 << 20), b""):
                digest.update(block)
                file.write(block)
            file.seek(len(head))
            file.write(digest.digest())
            file.flush()
            os.fsync(file.fileno())
        os.replace(self.partial, self.out)
        return digest.hexdigest()

    def close(self):
        self.tokens.close()
        for path in (self.scratch, self.partial):
            path.unlink(missing_ok=True)


def little(numbers):
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def to_eight(data):
    return data + bytes(-len(data) % 8)


def packed(bits):
    """b"1" and b"0" as bits, the first in the lowest bit of the first byte."""
    return int(bytes(bits[::-1]), 2).to_bytes(len(bits) // 8, "little") if bits else b""
