#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Holds each kernel, on each card, to the limits of trainer/kernels/limits.txt: registers, spilled bytes, stack and shared
# memory as ptxas counted them when the project was built.
#   limits_test.py ROOM BUILT      trainer/kernels of the sources, and of the build folder
import pathlib
import re
import sys

ROOM, BUILT = map(pathlib.Path, sys.argv[1:3])
CARDS = ("sm_80", "sm_90", "sm_100", "sm_120")


def limits():
    """kernel -> (threads, registers, registers on cards of 12, shared)"""
    rows = [line.split() for line in (ROOM / "limits.txt").read_text().splitlines() if line and not line.startswith("#")]
    return {name: tuple(map(int, numbers)) for name, *numbers in rows}


def counted(log):
    """(kernel, card) -> {registers, stack, spills, shared}"""
    found = {}
    for part in re.split(r"Compiling entry function ", log)[1:]:
        name, card = re.match(r"'(\w+)' for '(\w+)'", part).groups()
        stack, stores, loads = map(int, re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part).groups())
        shared = re.search(r"(\d+) bytes smem", part)
        found[name, card] = {"registers": int(re.search(r"Used (\d+) registers", part).group(1)), "stack": stack,
                             "spills": stores + loads, "shared": int(shared.group(1)) if shared else 0}
    return found


def faults(wanted, found, source, left_out=()):
    threads = dict(re.findall(r"^SEALIFT_KERNEL\((\w+), (\d+),", source, re.M))
    for name in sorted(threads.keys() ^ wanted.keys()):
        yield f"{name}: stands in one of device.cu and limits.txt only"
    for (name, card), has in sorted(found.items()):
        if name not in wanted:
            continue
        bound, registers, fewer_threads, shared = wanted[name]
        registers = fewer_threads if card.startswith("sm_12") else registers
        if int(threads.get(name, 0)) != bound:
            yield f"{name}: limits.txt says {bound} threads, device.cu {threads.get(name)}"
        for what, most in {"registers": registers, "stack": 0, "spills": 0, "shared": shared}.items():
            if has[what] > most:
                yield f"{name} for {card}: {has[what]} {what}; at most {most}"
    for card in CARDS:
        if card in left_out:
            continue
        for name in wanted:
            if (name, card) not in found:
                yield f"{name}: is not compiled for {card}"


def main():
    log = BUILT / "ptxas.log"
    if not log.exists():
        print("skipped: this LibTorch has no NVRTC beside it, so no kernel is compiled for cards")
        return 77
    found, wanted, source = counted(log.read_text()), limits(), (ROOM / "device.cu").read_text()
    # An older NVRTC does not know the newest cards.
    left_out = re.findall(r"^left out: .* (sm_\d+)$", log.read_text(), re.M)
    wrong = list(faults(wanted, found, source, left_out))
    print("\n".join(wrong) if wrong else f"{len(found)} kernels, all within their limits" + "".join(f"; {card} is left out" for card in left_out))
    # It sees what is above a limit, spilled, missing or unnamed.
    name, (threads, *_) = next(iter(wanted.items()))
    assert list(faults({**wanted, name: (threads, 1, 1, 0)}, found, source)), "registers above a limit are not seen"
    spilled = {key: {**value, "spills": 4} for key, value in found.items()}
    assert list(faults(wanted, spilled, source)), "spills are not seen"
    assert list(faults(wanted, {}, source)), "kernels that are not compiled are not seen"
    assert not [fault for fault in faults(wanted, {}, source, CARDS) if "compiled for" in fault], "a card left out is a fault"
    assert list(faults({}, found, source)), "a kernel without limits is not seen"
    return 1 if wrong else 0


sys.exit(main())
