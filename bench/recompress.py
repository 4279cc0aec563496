#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Would a bundle be a fifth smaller if the members of wheels travelled as zstd instead of the deflate that they were
# published with? Sizes and processor time of a sample of real wheels; README.md, "Wheels as zstd", says what follows.
#   recompress.py FOLDER-OF-WHEELS [LEVEL...]    levels of zstd, 3 9 19 without any; takes libzstd of this machine
#   recompress.py FOLDER-OF-WHEELS 0             which level of zlib makes the published deflate streams again
# The wheels' members, one behind the other, are cut into blocks, of which every EVERYth ($EVERY, 8) is measured.
import ctypes
import ctypes.util
import os
import pathlib
import sys
import time
import zipfile
import zlib

BLOCK, EVERY = 64 << 20, int(os.environ.get("EVERY", "8"))
SMALL = 256 << 10            # members that a dictionary helps
DICTIONARY = 112 << 10       # what `zstd --train` makes
SAMPLES = 100 * DICTIONARY   # of small members that it learns from
PREFIX = 1 << 20             # of a member, deflated again

zstd = ctypes.CDLL(ctypes.util.find_library("zstd"))
for name in "ZSTD_compressBound ZSTD_compress2 ZSTD_decompressDCtx ZSTD_CCtx_setParameter ZSTD_CCtx_loadDictionary ZSTD_DCtx_loadDictionary " \
            "ZSTD_DCtx_setParameter ZDICT_trainFromBuffer".split():
    getattr(zstd, name).restype = ctypes.c_size_t
for name in "ZSTD_createCCtx ZSTD_createDCtx".split():
    getattr(zstd, name).restype = ctypes.c_void_p
LEVEL, WINDOW, LONG, WINDOW_MAX = 100, 101, 160, 100  # ZSTD_cParameter, ZSTD_dParameter


def sized(result):
    if zstd.ZSTD_isError(ctypes.c_size_t(result)):
        sys.exit("zstd refused")
    return result


class Coder:
    """One way to compress: counts bytes and seconds of processor, and compares what comes back."""

    def __init__(self, level, long=False, dictionary=b""):
        self.coder, self.decoder = ctypes.c_void_p(zstd.ZSTD_createCCtx()), ctypes.c_void_p(zstd.ZSTD_createDCtx())
        zstd.ZSTD_CCtx_setParameter(self.coder, LEVEL, level)
        if long:
            sized(zstd.ZSTD_CCtx_setParameter(self.coder, WINDOW, 27))
            sized(zstd.ZSTD_CCtx_setParameter(self.coder, LONG, 1))
            sized(zstd.ZSTD_DCtx_setParameter(self.decoder, WINDOW_MAX, 27))
        if dictionary:
            sized(zstd.ZSTD_CCtx_loadDictionary(self.coder, dictionary, ctypes.c_size_t(len(dictionary))))
            sized(zstd.ZSTD_DCtx_loadDictionary(self.decoder, dictionary, ctypes.c_size_t(len(dictionary))))
        self.plain = self.stored = 0
        self.coding = self.decoding = 0.0

    def put(self, data):
        room = zstd.ZSTD_compressBound(ctypes.c_size_t(len(data)))
        out, back = ctypes.create_string_buffer(room), ctypes.create_string_buffer(max(1, len(data)))
        begin = time.process_time()
        size = sized(zstd.ZSTD_compress2(self.coder, out, ctypes.c_size_t(room), data, ctypes.c_size_t(len(data))))
        middle = time.process_time()
        sized(zstd.ZSTD_decompressDCtx(self.decoder, back, ctypes.c_size_t(len(data)), out, ctypes.c_size_t(size)))
        end = time.process_time()
        if back.raw[:len(data)] != data:
            sys.exit("zstd gave other bytes back")
        self.plain, self.stored = self.plain + len(data), self.stored + size
        self.coding, self.decoding = self.coding + middle - begin, self.decoding + end - middle

    def row(self, name, deflated):
        speed = lambda seconds: f"{self.plain / 1e6 / seconds:.0f}" if seconds else "-"
        print(f"{name}\t{self.stored / 1e6:.1f}\t{self.stored / deflated - 1:+.1%}\t{speed(self.coding)}\t{speed(self.decoding)}", flush=True)


def inflated(archive, info):
    """Pieces of a member: plain bytes, and how many deflated ones they were."""
    with open(archive, "rb") as file:
        file.seek(info.header_offset + 26)
        name, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
        file.seek(name + extra, 1)
        inflater = zlib.decompressobj(-15) if info.compress_type == zipfile.ZIP_DEFLATED else None
        for left in range(info.compress_size, 0, -(1 << 18)):
            data = file.read(min(left, 1 << 18))
            yield inflater.decompress(data) if inflater else data, len(data)


def sample(names):
    """Blocks of the sample: lists of (member's name, plain bytes, deflated size), members cut at a block's end."""
    at, blocks = 0, []
    for name in names:
        for info in zipfile.ZipFile(name).infolist():
            end = at + info.file_size
            if not any(number % EVERY == EVERY // 2 for number in range(at // BLOCK, end // BLOCK + 1)):
                at = end
                continue
            for plain, deflated in inflated(name, info):
                number = at // BLOCK
                at += len(plain)
                if number % EVERY != EVERY // 2:
                    continue
                if not blocks or blocks[-1][0] != number:
                    blocks.append((number, []))
                members = blocks[-1][1]
                if not members or members[-1][0] != (name, info.filename):
                    members.append([(name, info.filename), bytearray(), 0])
                members[-1][1].extend(plain)
                members[-1][2] += deflated
    return [[(name, bytes(plain), deflated) for name, plain, deflated in members] for _, members in blocks]


def train(blocks):
    """A dictionary of small members, as `zstd --train` makes it."""
    small = [plain for members in blocks for _, plain, _ in members if 0 < len(plain) < SMALL]
    chosen, total = [], 0
    for plain in small[::max(1, sum(map(len, small)) // SAMPLES)]:
        chosen.append(plain)
        total += len(plain)
    sizes = (ctypes.c_size_t * len(chosen))(*map(len, chosen))
    out = ctypes.create_string_buffer(DICTIONARY)
    size = zstd.ZDICT_trainFromBuffer(out, ctypes.c_size_t(DICTIONARY), b"".join(chosen), sizes, ctypes.c_uint(len(chosen)))
    return out.raw[:sized(size)]


def rebuildable(names):
    """Bytes of members whose beginning zlib makes again, by level; what no level makes; and zlib's seconds for a byte."""
    found, none, seconds, plain_bytes = {}, 0, 0.0, 0
    for name in names:
        for info in zipfile.ZipFile(name).infolist():
            if info.compress_type != zipfile.ZIP_DEFLATED or info.compress_size == 0:
                continue
            plain, deflated = b"", 0
            for piece, _ in inflated(name, info):
                plain += piece
                if len(plain) >= PREFIX:
                    break
            plain = plain[:PREFIX]
            with open(name, "rb") as file:
                file.seek(info.header_offset + 26)
                skip = sum(int.from_bytes(file.read(2), "little") for _ in range(2))
                file.seek(skip, 1)
                published = file.read(info.compress_size)[:PREFIX] if info.compress_size < PREFIX else file.read(PREFIX)
            whole = len(plain) == info.file_size
            for level in (6, 9, 1, 2, 3, 4, 5, 7, 8):
                coder = zlib.compressobj(level, zlib.DEFLATED, -15)
                begin = time.process_time()
                made = coder.compress(plain) + (coder.flush() if whole else b"")
                if level == 6:
                    seconds, plain_bytes = seconds + time.process_time() - begin, plain_bytes + len(plain)
                if made == published if whole else made and published.startswith(made[:len(made) // 2]):
                    found[level] = found.get(level, 0) + info.compress_size
                    break
            else:
                none += info.compress_size
    return found, none, seconds / max(1, plain_bytes)


def main():
    names = sorted(str(path) for path in pathlib.Path(sys.argv[1]).glob("*.whl"))
    levels = [int(level) for level in sys.argv[2:]] or [3, 9, 19]
    if levels == [0]:  # only what zlib makes again
        found, none, seconds = rebuildable(names)
        total = none + sum(found.values())
        print("deflated bytes whose member zlib begins in the same way: "
              + ", ".join(f"level {level} {size / total:.1%}" for level, size in sorted(found.items()))
              + f"; no level {none / total:.1%}; deflating takes {seconds * 1e9:.1f} ns a byte")
        return
    blocks = sample(names)
    members = [member for block in blocks for member in block]
    deflated = sum(size for _, _, size in members)
    small = [(plain, size) for _, plain, size in members if 0 < len(plain) < SMALL]
    begin = time.process_time()
    print(f"{len(names)} wheels, sample of {sum(len(plain) for _, plain, _ in members) / 1e6:.0f} MB in {len(members)} members, "
          f"{deflated / 1e6:.1f} MB deflated; members below {SMALL >> 10} KiB: {sum(len(plain) for plain, _ in small) / 1e6:.1f} MB, "
          f"{sum(size for _, size in small) / 1e6:.1f} MB deflated")
    dictionary = train(blocks)
    print("way\tMB\tagainst deflate\tcompresses MB/s\tdecodes MB/s")
    for level in levels:
        alone, large, with_dictionary, solid = Coder(level), Coder(level), Coder(level, dictionary=dictionary), Coder(level, long=True)
        for block in blocks:
            for _, plain, _ in block:
                if len(plain) < SMALL:
                    alone.put(plain)
                    with_dictionary.put(plain)
                else:
                    large.put(plain)
            solid.put(b"".join(plain for _, plain, _ in block))
        everything = Coder(level)
        for one in alone, large:
            everything.plain, everything.stored = everything.plain + one.plain, everything.stored + one.stored
            everything.coding, everything.decoding = everything.coding + one.coding, everything.decoding + one.decoding
        everything.row(f"{level}", deflated)
        everything.stored += with_dictionary.stored - alone.stored
        everything.coding, everything.decoding = large.coding + with_dictionary.coding, large.decoding + with_dictionary.decoding
        everything.row(f"{level}, dictionary", deflated)
        alone.row(f"{level}, small members", sum(size for _, size in small))
        with_dictionary.row(f"{level}, small members, dictionary", sum(size for _, size in small))
        solid.row(f"{level} --long=27, {BLOCK >> 20} MiB in a row", deflated)
    print(f"{time.process_time() - begin:.0f} s of processor", file=sys.stderr)


if __name__ == "__main__":
    main()
