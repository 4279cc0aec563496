# SPDX-License-Identifier: Apache-2.0
# What no installer of these wheels can go below on this machine: inflating all members, hashing what comes out, and
# putting it on the disk, each alone. zlib, OpenSSL's SHA-256 and the kernel by way of Python, one process a core.
import hashlib
import mmap
import multiprocessing
import os
import time
import zipfile
import zlib

from closure import say

PIECE = 1 << 18


def inflate(job):
    """Processor seconds and bytes of one member."""
    wheel, offset, size, stored = job
    done, began = 0, time.process_time()
    with open(wheel, "rb") as file:
        file.seek(offset + 26)
        name, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
        file.seek(name + extra, os.SEEK_CUR)
        stream = None if stored else zlib.decompressobj(-15)
        while size and (piece := file.read(min(size, PIECE))):
            size -= len(piece)
            while piece:
                done += len(piece if stored else stream.decompress(piece, PIECE))
                piece = b"" if stored else stream.unconsumed_tail
    return time.process_time() - began, done


def hash_rate():
    data, began, done = os.urandom(PIECE), time.process_time(), 0
    hasher = hashlib.sha256()
    while done < 1 << 30:
        hasher.update(data)
        done += PIECE
    return done / (time.process_time() - began)


def write_rate(folder):
    """Bytes a second past the page cache, made durable."""
    path, data = folder / "direct", mmap.mmap(-1, 4 << 20)
    data.write(os.urandom(4 << 20))
    file, began, done = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600), time.perf_counter(), 0
    try:
        while done < 2 << 30:
            done += os.write(file, data)
        os.fsync(file)
    finally:
        os.close(file)
        path.unlink()
    return done / (time.perf_counter() - began)


def measure(wheels, folder):
    jobs, packed = [], 0
    for wheel in wheels.iterdir():
        packed += wheel.stat().st_size
        for member in zipfile.ZipFile(wheel).infolist():
            jobs.append((wheel, member.header_offset, member.compress_size, member.compress_type == zipfile.ZIP_STORED))
    jobs.sort(key=lambda job: -job[2])
    cores = os.cpu_count()
    with multiprocessing.Pool(cores) as pool:
        pool.map(hash, range(cores))
        began = time.perf_counter()
        parts = pool.map(inflate, jobs, chunksize=1)
        wall = time.perf_counter() - began
    cpu, out = sum(part[0] for part in parts), sum(part[1] for part in parts)
    sha256, disk = hash_rate(), write_rate(folder)
    hashed = packed  # each chunk, and nothing else
    say(f"limits: inflating {out / 1e9:.2f} GB {wall:.1f} s on {cores} cores ({cpu:.1f} s of processor); "
        f"SHA-256 of {hashed / 1e9:.1f} GB at {sha256 / 1e9:.2f} GB/s {hashed / sha256:.1f} s of processor; "
        f"writing {out / 1e9:.2f} GB at {disk / 1e9:.2f} GB/s {out / disk:.1f} s; "
        f"inflating and hashing, over all cores: {(cpu + hashed / sha256) / cores:.1f} s")
