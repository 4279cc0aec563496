#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# How long unpacking takes on 1 to 128 cores, computed from measured seconds of each member: a wheel by one thread,
# members by many, and uv. This machine has two cores; what nodes with many do is decided by the order of the work.
# Beside it, how long the one pass over all chunks takes when they are verified and when they are packed.
#   schedule.py FOLDER-OF-WHEELS PROGRAM   measures every member (PROGRAM is sealift-bench-members), then prints
#   schedule.py MEASURED                   prints from a file of earlier lines
#   schedule.py FOLDER-OF-WHEELS           the same without measuring: bytes at the rates below
# Modelled: a free thread takes the next piece, and hashes and inflates it. Not modelled: the disk, threads that write,
# the memory's bandwidth, clocks that drop, names, the audit and the sync.
import heapq
import pathlib
import subprocess
import sys
import zipfile

CORES = (1, 2, 4, 8, 16, 32, 64, 128)
CHUNK = 4 << 20
PART = 2 * CHUNK  # shared_wheel.cpp
LARGE = 30 * CHUNK  # unpack.cpp
MEMORY, PART_MEMORY, WHOLE_MEMORY = 144 << 20, 9 << 20, 13 << 20  # unpack.cpp
SHA256_RATE, ISAL, ZLIB = 1.5e9, 0.95e-9, 2.6e-9  # bytes a second; seconds of a byte that comes out
MEMORY_RATE = 10e9  # bytes a second that all cores together read, where it was not measured
# Passes over the chunks: most threads (verified_bundle.cpp, chunk_workers.cpp), and how often a byte crosses the memory:
# brought by the disk and hashed; read and written by the copy out of the page cache, hashed, taken by the disk.
PASSES = {"verify": (40, 2), "create": (46, 4)}
UV_PROCESSOR = 19.0  # seconds of a whole uv, its best on two cores


def measure(names, program):
    """Two lines for the machine and one for each member: wheel, offset, stored, size, seconds by ISA-L and by zlib."""
    from install_limits import inflate

    lines = subprocess.run([program, *names], check=True, capture_output=True, text=True).stdout.splitlines()
    infos = {(name, info.header_offset): info for name in names for info in zipfile.ZipFile(name).infolist()}
    for number, line in enumerate(lines[2:], 2):
        name, offset = line.split("\t")[:2]
        info = infos[name, int(offset)]
        stored = info.compress_type == zipfile.ZIP_STORED
        lines[number] += f"\t{inflate((name, info.header_offset, info.compress_size, stored))[0]:.6f}"
    return lines


def estimate(names):
    """The same lines from the directories alone: the rates above, the same for every member."""
    lines = [f"sha256\t{SHA256_RATE}", f"memory\t{MEMORY_RATE}"]
    for name in names:
        for info in zipfile.ZipFile(name).infolist():
            if not info.is_dir():
                stored, size = info.compress_size + 30 + len(info.filename), info.file_size
                lines.append(f"{name}\t{info.header_offset}\t{stored}\t{size}\t{size * ISAL:.6f}\t{size * ZLIB:.6f}")
    return lines


def measured(lines):
    """Bytes a second of SHA-256 and of the memory, and the members of each wheel as (offset, stored, size, seconds, seconds by zlib)."""
    rates, wheels = {"memory": MEMORY_RATE}, {}
    for line in lines:
        fields = line.split("\t")
        if len(fields) == 2:
            rates[fields[0]] = float(fields[1])
        else:
            wheels.setdefault(fields[0], []).append((*map(int, fields[1:4]), *map(float, fields[4:6])))
    return rates["sha256"], rates["memory"], [sorted(members) for members in wheels.values()]


def one_pass(kind, size, cores, rate, memory):
    """Linear in the cores up to the memory's bandwidth: no chunk waits for another one."""
    threads, crossings = PASSES[kind]
    return size * max(1 / (min(cores, threads) * rate), crossings / memory)


def seconds(stored, inflating, rate):
    """Of one thread: it hashes the chunks and inflates; another one of the same core writes, which is not counted."""
    return stored / rate + inflating


def parts(members):
    """As ClaimedWheel::parts: (stored, size, seconds, count)."""
    found, begin = [], None
    for offset, stored, size, inflating, _ in members:
        if begin is None or offset + stored - begin > PART:
            begin = offset
            found.append([0, 0, 0.0, 0])
        part = found[-1]
        part[0] += stored
        part[1] += size
        part[2] += inflating
        part[3] += 1
    return found


def makespan(jobs, cores, memory=None):
    """Greedy: the next job goes to the first core that is free, and waits for memory. A job: (seconds, bytes)."""
    running, now, used = [], 0.0, 0
    for job in jobs:
        length, needs = job
        while len(running) == cores or (memory and running and used + needs > memory):
            now, given = heapq.heappop(running)
            used -= given
        heapq.heappush(running, (now + length, needs))
        used += needs
    return max(end for end, _ in running)


def whole_wheels(wheels, rate):
    """The schedule before: large wheels first, the largest before the others, then the small ones."""
    def order(wheel):
        stored = sum(member[1] for member in wheel)
        return -sum(member[2] for member in wheel) if stored >= LARGE else 0

    return [(sum(seconds(m[1], m[3], rate) for m in wheel), WHOLE_MEMORY) for wheel in sorted(wheels, key=order)]


def shared_wheels(wheels, rate):
    """Ours: of large wheels, the largest first, each part a job, large members first; small wheels whole."""
    jobs = []
    for wheel in sorted(wheels, key=lambda wheel: -sum(member[2] for member in wheel)):
        if sum(member[1] for member in wheel) < LARGE:
            continue
        for part in sorted(parts(wheel), key=lambda part: -part[1] if part[3] == 1 else 0):
            jobs.append((seconds(part[0], part[2], rate), PART_MEMORY))
    small = [wheel for wheel in wheels if sum(member[1] for member in wheel) < LARGE]
    return jobs + whole_wheels(small, rate)


def by_size(wheels, rate):
    """What no order of the same jobs beats by much: all parts of all wheels, the longest first, with any memory."""
    jobs = [(seconds(part[0], part[2], rate), 0) for wheel in wheels for part in parts(wheel)]
    return sorted(jobs, reverse=True)


def uv_scale(wheels):
    """What uv needs of the processor beside zlib's share, and its faster zlib: one factor for all members."""
    return UV_PROCESSOR / sum(member[4] for wheel in wheels for member in wheel)


def uv_members(wheels):
    """uv at its best: a file is a job, of all wheels at once, in their order. It hashes nothing."""
    return [(member[4] * uv_scale(wheels), 0) for wheel in wheels for member in wheel]


def uv_wheels(wheels):
    """uv as if a wheel were a job, the longest first."""
    return sorted(((sum(member[4] for member in wheel) * uv_scale(wheels), 0) for wheel in wheels), reverse=True)


def main():
    names = sorted(str(path) for path in pathlib.Path(sys.argv[1]).glob("*.whl"))
    if len(sys.argv) == 3:
        lines = measure(names, sys.argv[2])
        print("\n".join(lines))
    elif names:
        lines = estimate(names)
    else:
        lines = pathlib.Path(sys.argv[1]).read_text().splitlines()
    rate, memory, wheels = measured(lines)
    out = sys.stderr if len(sys.argv) == 3 else sys.stdout
    longest = max(seconds(m[1], m[3], rate) for wheel in wheels for m in wheel)
    everything = sum(seconds(m[1], m[3], rate) for wheel in wheels for m in wheel)
    stored, size = (sum(member[field] for wheel in wheels for member in wheel) / 1e9 for field in (1, 2))
    print(f"{len(wheels)} wheels, {sum(map(len, wheels))} members, {stored:.2f} GB, {size:.2f} GB unpacked; "
          f"SHA-256 {rate / 1e9:.2f} GB/s, memory {memory / 1e9:.1f} GB/s; {everything:.1f} s of processor, longest member {longest:.2f} s", file=out)
    print("cores\twheel\tmember\tby size\tuv, wheels\tuv, files\tuv/member\tverify\tcreate", file=out)
    for cores in CORES:
        wheel = makespan(whole_wheels(wheels, rate), cores, MEMORY)
        member = makespan(shared_wheels(wheels, rate), cores, MEMORY)
        best = makespan(by_size(wheels, rate), cores)
        uv, uv_files = makespan(uv_wheels(wheels), cores), makespan(uv_members(wheels), cores)
        times = "\t".join(f"{time:.2f}" for time in (wheel, member, best, uv, uv_files))
        passes = "\t".join(f"{one_pass(kind, stored * 1e9, cores, rate, memory):.2f}" for kind in PASSES)
        print(f"{cores}\t{times}\t{min(uv, uv_files) / member:.1f}\t{passes}", file=out)


if __name__ == "__main__":
    main()
