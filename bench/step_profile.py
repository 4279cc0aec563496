# SPDX-License-Identifier: Apache-2.0
# What a step asks of a device, by LibTorch's profiler: peers.py calls `profile` behind its timed steps; `of_file` counts what
# profile.cpp saw of ours, by the same rules.
#   launches   on a GPU its kernels; on a CPU operators of ATen that call no other, views included
#   copies     on a GPU copies and fills of its memory; on a CPU aten::copy_ (one of the launches)
#   waits      on a GPU calls that wait for it; on a CPU reads of one number (item), which would wait for a GPU
#   busy       the share of the time in which a kernel or copy ran; on a CPU an operator
# The profiler makes a step slower, so the share is one of profiled steps.
import re
import time

STEPS = 2  # of a peer's; ours leaves out the first two
WAITS = re.compile(r"cu(da)?(Stream|Device|Event|Ctx)Synchronize")
OPTIMIZER = "aten::_fused_adamw_"  # the last that a step of ours does


def profile(step, device):
    import torch
    from torch.profiler import ProfilerActivity

    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device == "cuda" else [])
    with torch.profiler.profile(activities=activities) as profiler:
        begin = time.perf_counter()
        for _ in range(STEPS):
            step()
        seconds = time.perf_counter() - begin
    events = [(event.name(), event.device_type().name, event.start_ns(), event.end_ns(), event.start_thread_id())
              for event in profiler.profiler.kineto_results.events() if not event.is_user_annotation()]
    return counted(events, STEPS, seconds, device)


def of_file(path, steps, device):
    """Of all steps but the first two: from the end of one optimizer to that of the last."""
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    events = [(name, kind, int(begin), int(end), int(thread)) for name, kind, begin, end, thread in lines]
    ends = sorted(end for name, _, _, end, _ in events if name == OPTIMIZER)
    if not ends or len(ends) % steps or steps < 3:
        raise ValueError(f"{len(ends)} calls of {OPTIMIZER} are not a multiple of {steps} steps, at least 3")
    first, last = ends[len(ends) // steps * 2 - 1], ends[-1]
    return counted([event for event in events if first <= event[2] < last], steps - 2, (last - first) / 1e9, device)


def counted(events, steps, seconds, device):
    """Of events (name, kind of device, begin, end, thread), in nanoseconds: for one step."""
    on_gpu = device == "cuda"
    operators = [event for event in events if event[0].startswith("aten::")]
    there = [event for event in events if event[1] != "CPU"] if on_gpu else operators
    copies = [name for name, *_ in there if name.startswith(("Memcpy", "Memset") if on_gpu else "aten::copy_")]
    waits = [name for name, kind, *_ in events
             if (kind == "CPU" and WAITS.fullmatch(name) if on_gpu else name == "aten::_local_scalar_dense")]
    launches = len(there) - len(copies) if on_gpu else leaves_of(operators)
    per_step = {"launches": launches, "copies": len(copies), "waits": len(waits)}
    return {**{name: round(count / steps, 1) for name, count in per_step.items()}, "busy": round(covered(there) / seconds / 1e9, 3)}


def covered(events):
    """Nanoseconds in which at least one of them ran."""
    busy, last = 0, 0
    for begin, end in sorted((begin, end) for _, _, begin, end, _ in events):
        busy += max(0, end - max(begin, last))
        last = max(last, end)
    return busy


def leaves_of(operators):
    """How many call no other: that would lie within their own time, on their own thread."""
    ordered = sorted((thread, begin, -end) for _, _, begin, end, thread in operators)
    return sum(following is None or following[0] != this[0] or following[1] >= -this[2]
               for this, following in zip(ordered, ordered[1:] + [None]))
