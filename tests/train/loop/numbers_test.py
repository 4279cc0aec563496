# SPDX-License-Identifier: Apache-2.0
# What a run's numbers depend on beside its settings, by whole runs of sealift-train:
#   fp16: a step that is skipped moves no schedule, held to transformers' schedules and its rule
#   a run that goes on: other micro-batches of a mean over each, a longer job, other threads and vector units
# usage: numbers_test.py SEALIFT_TRAIN [PART…]      with the Python of torch; PYTHONPATH: the peers
import json
import math
import shutil

import torch
import transformers
from safetensors.torch import load_file, save_file

from short_runs import ENVIRONMENT, MODEL, WORK, check, made, run, run_parts

CHATS, PAIRS = WORK / "chats.jsonl", WORK / "pairs.jsonl"
made.write_lines(CHATS, made.chat_lines(16, 3))
made.write_lines(PAIRS, made.pair_lines(16, 3))


def logged(out):
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return {line["step"]: line for line in lines if "loss" in line}


def rates_of_transformers(taken, peak, warmup):
    """The rate of each step by get_constant_schedule_with_warmup, of which a scheduler takes a step where `taken` says."""
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=peak)
    schedule = transformers.get_constant_schedule_with_warmup(optimizer, warmup)
    rates = []
    for took in taken:
        rates.append(optimizer.param_groups[0]["lr"])
        if took:  # Trainer: `if not self.accelerator.optimizer_step_was_skipped: self.lr_scheduler.step()`
            optimizer.step()
            schedule.step()
    return rates


def steep_model():
    """Gradients of about 10, which overflow under the first loss scales."""
    folder = WORK / "steep"
    shutil.copytree(MODEL, folder)
    tensors = load_file(folder / "model.safetensors")
    tensors["model.norm.weight"] *= 20
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def a_skipped_step_moves_no_schedule():
    out = WORK / "fp16"
    job = ["--model", steep_model(), "--data", CHATS, "--output_dir", out, "--tuner", "none", "--precision", "fp16",
           "--lr_scheduler_type", "constant_with_warmup", "--warmup_steps", "4", "--learning_rate", "1e-3",
           "--per_device_train_batch_size", "4", "--gradient_accumulation_steps", "1", "--save_steps", "3"]
    first = run("sft", *job, "--max_steps", "3")
    done = run("sft", *job, "--max_steps", "12")  # how many were skipped is kept in the checkpoint
    lines, result = logged(out), json.loads((out / "result.json").read_text())
    taken = [isinstance(lines[step]["grad_norm"], float) for step in range(1, 13)]
    skipped = taken.count(False)
    check(0 < skipped < 9, f"{skipped} steps were skipped; the test needs some, and a warm-up that ends")
    check(result["skipped_steps"] == skipped, f"skipped_steps is {result['skipped_steps']}, the log has {skipped}")
    expected = rates_of_transformers(taken, 1e-3, 4)
    check(expected != rates_of_transformers([True] * 12, 1e-3, 4), "a schedule that each step moves has these rates, too")
    for step, rate in enumerate(expected, 1):
        check(math.isclose(lines[step]["learning_rate"], rate, rel_tol=1e-6, abs_tol=1e-12),
              f"step {step}: the rate is {lines[step]['learning_rate']}, transformers' {rate}; taken: {taken}")
    for step in (step for step, took in enumerate(taken, 1) if not took):
        said = (first if step <= 3 else done).stderr
        check(f"step {step}: gradients overflowed under fp16's loss scale (grad_norm " in said, f"step {step}: {said}")
        check(lines[step]["grad_norm"] in ("inf", "nan"), f"step {step}: {lines[step]}")
    check(f"skipped so far: {skipped}" in first.stderr + done.stderr, done.stderr)


def resumed(name, verb, data, first, second, expect=0, environment=(), **settings):
    """A run with the settings, and one that goes on with others; what the second said."""
    words = [word for key, value in settings.items() for word in (f"--{key}", value)]
    job = [verb, "--model", MODEL, "--data", data, "--output_dir", WORK / name, "--tuner", "none", "--save_steps", "1",
           *words]
    run(*job, *first)
    before = dict(ENVIRONMENT)
    ENVIRONMENT.update(environment)
    done = run(*job, *second, expect=expect)
    ENVIRONMENT.update(before)
    for key, _ in environment:
        if key not in before:
            ENVIRONMENT.pop(key)
    return done.stderr


def batches(rows, accumulated):
    return ["--per_device_train_batch_size", rows, "--gradient_accumulation_steps", accumulated]


def a_mean_over_micro_batches_keeps_its_cut():
    two, one = ["--max_steps", "2", *batches(4, 1)], ["--max_steps", "3", *batches(2, 2)]
    for name, settings in (("rpo", {"rpo_alpha": "0.5"}), ("cpo", {"rlhf_type": "cpo"}), ("orpo", {"rlhf_type": "orpo"})):
        said = resumed(name, "dpo", PAIRS, two, one, expect=1, **settings)
        check("was made with per_device_train_batch_size 4, which is 2 now; the NLL of the chosen answers" in said, said)
        again = resumed(f"{name}-kept", "dpo", PAIRS, two, ["--max_steps", "3", *batches(4, 1)], **settings)
        check("resuming after step 2" in again, again)
    said = resumed("dpo", "dpo", PAIRS, two, one)
    check("resuming after step 2" in said, said)
    said = resumed("simpo", "dpo", PAIRS, two, one, rlhf_type="simpo")
    check("resuming after step 2" in said, said)


def a_router_loss_keeps_its_cut():
    experts = made.make_experts(WORK / "experts", MODEL)
    for coefficient, expect in (("0.01", 1), ("0", 0)):
        job = ["sft", "--model", experts, "--data", CHATS, "--output_dir", WORK / f"router-{coefficient}", "--tuner", "none",
               "--save_steps", "1", "--router_aux_loss_coef", coefficient]
        run(*job, "--max_steps", "1", *batches(4, 1))
        done = run(*job, "--max_steps", "2", *batches(2, 2), expect=expect)
        check(("router_aux_loss_coef is a mean over each micro-batch" in done.stderr) == (expect == 1), done.stderr)


def a_longer_job_has_another_schedule():
    said = resumed("longer", "sft", CHATS, ["--max_steps", "2"], ["--max_steps", "4"], lr_scheduler_type="linear",
                   learning_rate="1e-3")
    check("the job has 4 steps and had 2 when step 2 was saved, so its schedule is another from step 3 on" in said, said)
    check("there the learning rate is 0.0005, by the one before 0;" in said, said)
    said = resumed("longer-constant", "sft", CHATS, ["--max_steps", "2"], ["--max_steps", "4"],
                   lr_scheduler_type="constant")
    check("its schedule is another" not in said and "resuming after step 2" in said, said)


def threads_and_vector_units_are_conditions_of_equal_bits():
    same = resumed("same", "sft", CHATS, ["--max_steps", "2"], ["--max_steps", "3"], lr_scheduler_type="constant")
    check("not bit for bit" not in same, same)
    said = resumed("threads", "sft", CHATS, ["--max_steps", "2"], ["--max_steps", "3"], lr_scheduler_type="constant",
                   environment=[("SEALIFT_TRAIN_THREADS", "2"), ("ATEN_CPU_CAPABILITY", "default")])
    check("this run goes on with threads 2 (before: 1), vector_units " in said, said)
    check("it agrees with one that never stopped to rounding, not bit for bit" in said, said)
    units = json.loads((WORK / "threads/result.json").read_text())["vector_units"]
    check(units in ("DEFAULT", "NO AVX"), f"vector_units is {units}")


run_parts([a_skipped_step_moves_no_schedule, a_mean_over_micro_batches_keeps_its_cut, a_router_loss_keeps_its_cut,
           a_longer_job_has_another_schedule, threads_and_vector_units_are_conditions_of_equal_bits])
