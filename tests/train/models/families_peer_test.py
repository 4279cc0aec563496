#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Families beside the first six, against transformers and PEFT: a model of each, its options drawn from a seed.
# Logits, log-probabilities and every gradient in fp32; ten steps of AdamW on one process and under ddp, fsdp and hsdp;
# greedy generation; what we save, opened by transformers; an adapter on every linear layer, trained and loaded by PEFT, also over NF4.
# The last cases are wrong on purpose, one a family, and must be told apart.
#   families_peer_test.py MODELS_PEER TUNING_ORACLE [SEED [ROUNDS [FAMILY…]]]
import json
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import models_peer_test as base  # sets what transformers reads before it is imported

import peft
import torch
import transformers
from bitsandbytes.functional import dequantize_4bit, quantize_4bit
from safetensors.torch import load_file

STEPS, ROWS, TIME = 10, 24, 8  # of tuning_oracle.cpp
LLAMA3 = {key: value for key, value in base.LLAMA3.items() if key != "rope_theta"}
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)


def common(draw):
    """Sizes of any family; some are odd."""
    heads = draw.choice((2, 4, 6))
    return dict(num_hidden_layers=draw.choice((2, 3)), num_attention_heads=heads,
                num_key_value_heads=draw.choice([n for n in (1, 2, 3, heads) if heads % n == 0]),
                hidden_size=heads * draw.choice((6, 8, 12)), intermediate_size=draw.choice((37, 48, 80)),
                vocab_size=draw.choice((83, 96)), tie_word_embeddings=draw.random() < 0.4,
                pad_token_id=draw.choice((None, 7)), attention_bias=draw.random() < 0.5)


def scaling(draw):
    theta = draw.choice((50.0, 1e4, 5e5))
    return {"rope_theta": theta, **draw.choice(({"rope_type": "default"}, {"rope_type": "linear", "factor": 3.0},
                                                LLAMA3, YARN))}


def olmo(draw):
    return {**common(draw), "clip_qkv": draw.choice((None, 0.3, 1.0)), "rope_parameters": scaling(draw)}


def olmo2(draw):
    return {**common(draw), "rms_norm_eps": draw.choice((1e-5, 1e-3)), "rope_parameters": scaling(draw)}


def olmo3(draw):
    changes = {**common(draw), "sliding_window": draw.choice((3, 6, 30)), "rope_parameters": {
        "full_attention": scaling(draw), "sliding_attention": {"rope_type": "default", "rope_theta": 700.0}}}
    layers = changes["num_hidden_layers"] = draw.choice((2, 4, 5))
    if draw.random() < 0.5:
        changes["layer_types"] = [draw.choice(("full_attention", "sliding_attention")) for _ in range(layers)]
    return changes


def granite(draw):
    return {**common(draw), "mlp_bias": draw.random() < 0.5, "embedding_multiplier": draw.choice((1.0, 3.5, 12.0)),
            "attention_multiplier": draw.choice((0.1, 0.3)), "residual_multiplier": draw.choice((0.22, 1.0)),
            "logits_scaling": draw.choice((1.0, 4.0, 13.0)), "rope_parameters": scaling(draw)}


def longrope(draw, pairs):
    factors = {key: [round(draw.uniform(1.0, 5.0), 3) for _ in range(pairs)] for key in ("short_factor", "long_factor")}
    return {"rope_type": "longrope", "rope_theta": draw.choice((50.0, 1e4)), **factors,
            **draw.choice(({}, {"factor": 3.0}, {"attention_factor": 1.3}))}


def phi3(draw):
    """Batches of 24 tokens and the 17 that are generated are within the context of pretraining, or not."""
    changes = {**common(draw), "sliding_window": draw.choice((None, 5, 40)),
               "original_max_position_embeddings": draw.choice((9, 20, 40))}
    del changes["attention_bias"]
    changes["hidden_size"] = changes["num_attention_heads"] * draw.choice((8, 12, 16))
    part = draw.choice((0.5, 1.0))
    pairs = int(changes["hidden_size"] // changes["num_attention_heads"] * part) // 2
    changes["rope_parameters"] = {"partial_rotary_factor": part, **draw.choice((
        longrope(draw, pairs), longrope(draw, pairs), {"rope_type": "default", "rope_theta": 1e4}))}
    return changes


def glm4(draw):
    return {**common(draw), "head_dim": draw.choice((8, 12, 16)), "rms_norm_eps": draw.choice((1.5625e-7, 1e-3)),
            "rope_parameters": {**draw.choice(({}, {"partial_rotary_factor": 0.5}, {"partial_rotary_factor": 1.0})),
                                **scaling(draw)}}


def gemma(draw):
    changes = {**common(draw), "head_dim": draw.choice((6, 8, 16)), "sliding_window": draw.choice((3, 6, 30)),
               "query_pre_attn_scalar": draw.choice((4, 9, 64)), "final_logit_softcapping": draw.choice((None, 1.0, 4.0)),
               "rms_norm_eps": draw.choice((1e-6, 1e-3))}
    layers = changes["num_hidden_layers"] = draw.choice((2, 3))
    if draw.random() < 0.5:
        changes["layer_types"] = [draw.choice(("full_attention", "sliding_attention")) for _ in range(layers)]
    return changes


def gemma2(draw):
    return {**gemma(draw), "attn_logit_softcapping": draw.choice((None, 0.5, 2.0)), "rope_parameters": scaling(draw)}


def gemma3_text(draw):
    changes = {**gemma(draw), "rope_parameters": {
        "full_attention": scaling(draw), "sliding_attention": {"rope_type": "default", "rope_theta": 700.0}}}
    return changes


# name -> its class, what is drawn, and what ours is told instead of the truth
FAMILIES = {
    "olmo": ("Olmo", olmo, {"clip_qkv": 0.05}),
    "olmo2": ("Olmo2", olmo2, {"rms_norm_eps": 0.01}),
    "olmo3": ("Olmo3", olmo3, {"sliding_window": 2, "layer_types": None}),
    "granite": ("Granite", granite, {"attention_multiplier": 0.2}),
    "phi3": ("Phi3", phi3, {"rope_parameters": {"partial_rotary_factor": 1.0, "rope_theta": 77.0}}),
    "glm4": ("Glm4", glm4, {"rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 77.0}}),
    "gemma2": ("Gemma2", gemma2, {"attn_logit_softcapping": 0.25}),
    "gemma3_text": ("Gemma3Text", gemma3_text, {"sliding_window": 2, "layer_types": None,
                                                "sliding_window_pattern": 2}),
}
TARGETS = "all-linear"  # of adapters
DEFAULTS = {}  # what a default needs besides itself
WORLDS = [("none", 1, "recompute"), ("ddp", 2, "slices"), ("fsdp", 2, "recompute"), ("hsdp", 4, "-")]


def adapter_loss(model, step, vocabulary):
    row, time = torch.arange(ROWS).view(-1, 1), torch.arange(TIME).view(1, -1)
    ids = (row * 7 + time * (row + 3) + step * 11) % vocabulary
    logits = model(input_ids=ids).logits[:, :-1].flatten(0, 1)
    return torch.nn.functional.cross_entropy(logits, ids[:, 1:].flatten())


def opened(folder, attn_implementation="eager"):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation=attn_implementation)


def over_nf4(model):
    """Each linear layer but the head and routers, with the values that 4 bits keep. Blocks are taken as rows: of other
    rows bitsandbytes 0.50 decodes some with the scales of others where the processor has AVX-512."""
    with torch.no_grad():
        for name, module in model.named_modules():
            if isinstance(module, torch.nn.Linear) and name != "lm_head" and not name.endswith(".router"):
                flat = module.weight.flatten()
                blocks = torch.nn.functional.pad(flat, (0, -len(flat) % 64)).view(-1, 64)
                kept = dequantize_4bit(*quantize_4bit(blocks, blocksize=64, quant_type="nf4", compress_statistics=True))
                module.weight.copy_(kept.flatten()[:len(flat)].view_as(module.weight))
    return model


def other_way(folder):
    model = opened(folder)
    return opened(folder, attn_implementation="sdpa").float() if model._supports_sdpa else model.double()


def compare_adapter(comparison, name, folder, work, oracle, vocabulary, world, stored=0):
    """Ten steps of an adapter on every linear layer, ours and PEFT's from the same values; `stored`: over NF4."""
    torch.manual_seed(2)
    adapted = peft.get_peft_model(over_nf4(opened(folder)) if stored else opened(folder), peft.LoraConfig(task_type="CAUSAL_LM", r=3, lora_alpha=5,
                                                                  target_modules=TARGETS))
    with torch.no_grad():
        for key, parameter in adapted.named_parameters():
            if "lora_B" in key:
                parameter.normal_(0, 0.05)
    adapted.save_pretrained(work + "/first")
    os.makedirs(work + "/ours")
    subprocess.run([oracle, "train", folder, work + "/first", work + "/ours", *map(str, world), "1", "0", "0", str(stored)],
                   check=True, timeout=120)
    with open(work + "/ours/losses") as file:
        ours = torch.tensor([float(line) for line in file], dtype=torch.float64)
    optimizer = torch.optim.AdamW([each for each in adapted.parameters() if each.requires_grad], lr=5e-3)
    theirs = []
    for step in range(STEPS + 1):
        optimizer.zero_grad()
        loss = adapter_loss(adapted, step, vocabulary)
        theirs.append(loss.item())
        if step < STEPS:
            loss.backward()
            optimizer.step()
    over = " over NF4" if stored else ""
    comparison.hold(f"{name}: losses of an adapter{over} under {world}", ours, torch.tensor(theirs, dtype=torch.float64),
                    tolerance=2e-5)
    if stored:
        return
    with torch.no_grad():
        back = peft.PeftModel.from_pretrained(opened(folder), work + "/ours/adapter")
        again = adapter_loss(back, STEPS, vocabulary)
        comparison.hold(f"{name}: the loss of our adapter in PEFT", ours[-1:], again.double().view(1))
        merged = adapter_loss(opened(work + "/ours/merged"), STEPS, vocabulary)
        comparison.hold(f"{name}: the loss of our merged model", merged.view(1), again.view(1))


def compare_forward(comparison, name, path, folder, expected, batch):
    """Within 1e-5, or as near as transformers' own two ways to attend are: gradients of keys are sums that cancel.
    Where there is one way only, as near as that is in fp32 and in fp64."""
    again = base.peer_forward(other_way(folder), batch)
    ours = load_file(path)
    for key in sorted(set(ours) ^ set(expected)):
        comparison.faults.append(f"{name}: only {'ours' if key in ours else 'transformers'} has {key}")
    for key in sorted(set(ours) & set(expected)):
        mine, theirs, noise = ours[key], expected[key], again[key]
        if key == "logits" and "segments" in batch:  # what padding computes is nobody's business
            mine, theirs, noise = (each[batch["segments"] >= 0] for each in (mine, theirs, noise))
        own = base.difference(noise, theirs)
        comparison.hold(f"{name}: {key} (transformers with itself: {own:.1e})", mine, theirs,
                        tolerance=min(5e-5, max(base.TOLERANCE, 3 * own)))


def compare_losses(comparison, name, worlds, theirs, again):
    """Of ten steps; `worlds`: under what, on how many ranks, our file. Where one is further off than 1e-5, as near as
    transformers is to itself in fp64, since steps carry on what is rounded; `again(double, ranks)`: its losses so.
    longrope chooses its factors by the longest position of a forward, so its losses are of as many ranks as ours."""
    by_forward = "longrope" in json.dumps(base.MODELS[name][1])
    expected = {1: theirs}
    for world, ranks, path in worlds:
        ours = load_file(path)["losses"]
        ranks = ranks if by_forward else 1
        if ranks not in expected:
            expected[ranks] = again(False, ranks)
        own = 0.0
        if base.difference(ours, expected[ranks]) > base.TOLERANCE:
            own = base.difference(again(True, ranks), expected[ranks])
        note = f" (transformers with itself: {own:.1e})" if own else ""
        comparison.hold(f"{name}, losses under {world}{note}", ours, expected[ranks],
                        tolerance=min(5e-5, max(base.TOLERANCE, 3 * own)))


def losses_again(folder, batch):
    def again(double, ranks):
        model = opened(folder)
        return base.peer_losses(model.double() if double else model, batch, ranks)
    return again


def compare_saved(comparison, name, folder, saved, batch):
    with torch.no_grad():
        ours, theirs = base.peer_logits(opened(saved), batch), base.peer_logits(opened(folder), batch)
    comparison.hold(f"{name}, saved and opened by transformers", ours, theirs, tolerance=0)


def compare_generated(comparison, name, folder, path, batch):
    prompt = batch["ids"][:1, :5]
    theirs = opened(folder).generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12,
                                     do_sample=False)[0, 5:].tolist()
    ours = load_file(path)["tokens"].tolist()
    if ours != theirs:
        comparison.faults.append(f"{name} generated {ours}, transformers {theirs}")


def compare_defaults(comparison, program, names):
    """A model as large as transformers' own default of each family: the names and sizes of its tensors."""
    with tempfile.TemporaryDirectory() as top:
        config_of = lambda name: getattr(transformers, FAMILIES[name][0] + "Config")(**DEFAULTS.get(name, {}))
        configs = {name: config_of(name) for name in names}
        with open(top + "/cases", "w") as file:
            for name, config in configs.items():
                config.save_pretrained(f"{top}/{name}")
                file.write(f"shapes {top}/{name} none 1 - {top}/{name}.shapes\n")
        subprocess.run([program, top + "/cases"], check=True, timeout=60)
        for name, config in configs.items():
            with torch.device("meta"):
                model = transformers.AutoModelForCausalLM.from_config(config)
            theirs = {key: list(value.shape) for key, value in model.state_dict().items()}
            if config.tie_word_embeddings:
                del theirs["lm_head.weight"]
            with open(f"{top}/{name}.shapes") as file:
                ours = {words[0]: [int(size) for size in words[1:]] for words in map(str.split, file)}
            comparison.count += len(theirs)
            if ours != theirs:
                keys = [key for key in sorted(set(ours) | set(theirs)) if ours.get(key) != theirs.get(key)]
                comparison.faults.append(f"{name}'s default has other tensors: {keys[:5]}")


def computed(program, path, cases, models, batches):
    """What transformers' forwards and steps give, while our program runs the cases; nothing where it failed."""
    with open(path, "w") as file:
        file.write("\n".join(cases) + "\n")
    process = subprocess.Popen([program, path], env=dict(os.environ, OMP_NUM_THREADS="1"))
    expected = {name: base.peer_forward(model, batches[name]) for name, model in models.items()}
    losses = {name: base.peer_losses(model, batches[name]) for name, model in models.items()}  # these change the models
    return (expected, losses) if process.wait(timeout=280) == 0 else None


def tell_apart(comparison, what, wrong, right):
    found = base.difference(wrong, right)
    if found <= 10 * base.TOLERANCE:
        comparison.faults.append(f"{what} differs by {found:.2e} only: it would not be noticed")


def round_of(comparison, seed, programs, names):
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as top:
        at = lambda *parts: os.path.join(top, *parts)
        models, batches, cases = {}, {}, []
        add = lambda *case: cases.append(" ".join(map(str, case)))
        for name in names:
            kind, drawn, wrong = FAMILIES[name]
            base.MODELS[name] = (kind, drawn(draw), draw.choice(("plain", "packed", "padded")))
            models[name] = base.make(name, at(name))
            print(f"{seed} {name}: {base.MODELS[name][2]} {json.dumps(base.MODELS[name][1])}")
            batches[name] = load_file(at(name, "batch.safetensors"))
            base.rewrite(at(name), at(name + "_wrong"), **wrong)
            add("forward", at(name), "none", 1, draw.choice(("slices", "-")), at(name + ".forward"))
            add("forward", at(name + "_wrong"), "none", 1, "-", at(name + ".wrong"))
            for method, ranks, options in WORLDS:
                add("train", at(name), method, ranks, options, at(f"{name}.{method}.train"))
            add("save", at(name), *draw.choice((("fsdp", 2), ("ddp", 2), ("hsdp", 4))), "-", at(name + "_saved"))
            add("generate", at(name), "fsdp", 2, "-", at(name + ".generate"))
        results = computed(programs[0], at("cases"), cases, models, batches)
        if not results:
            return comparison.faults.append("the program failed")
        expected, losses = results
        for name in names:
            compare_forward(comparison, name, at(name + ".forward"), at(name), expected[name], batches[name])
            compare_losses(comparison, name, [(method, ranks, at(f"{name}.{method}.train")) for method, ranks, _ in WORLDS],
                           losses[name], losses_again(at(name), batches[name]))
            compare_saved(comparison, name, at(name), at(name + "_saved"), batches[name])
            compare_generated(comparison, name, at(name), at(name + ".generate"), batches[name])
            world = draw.choice((("none", 1, 0), ("ddp", 2, 0), ("fsdp", 2, 0), ("hsdp", 4, 2)))
            compare_adapter(comparison, name, at(name), at(name + "_adapter"), programs[1],
                            base.MODELS[name][1]["vocab_size"], world)
            compare_adapter(comparison, name, at(name), at(name + "_quantized"), programs[1],
                            base.MODELS[name][1]["vocab_size"], draw.choice((("ddp", 2, 0), ("fsdp", 2, 0))), stored=1)
            tell_apart(comparison, f"a wrong {name}", load_file(at(name + ".wrong"))["logits"],
                       expected[name]["logits"])


COLUMNS = {"gradients": r": (grad\.|logits|values|loss \()", "AdamW": r", losses under ", "saved": r", saved ", "LoRA": r": (losses of an adapter under|the loss of our)",
           "QLoRA": r": losses of an adapter over NF4", "ranks": r".*(under (ddp|fsdp|hsdp)|\('(ddp|fsdp|hsdp)')"}


def table(comparison, names):
    """A row for each family: the worst relative difference of each kind, and how many tensors were compared. A family
    without a number in each column is a fault."""
    rows = [["family", "tensors", *COLUMNS]]
    for name in names:
        of_it = {what[len(name):]: worst for what, worst in comparison.kinds.items() if re.match(name + r"\b", what)}
        kinds = {column: max((worst for what, worst in of_it.items() if re.match(start, what)), default=None)
                 for column, start in COLUMNS.items()}
        comparison.faults += [f"{name}: nothing was compared of {column}" for column, worst in kinds.items() if worst is None]
        rows.append([name, str(len(of_it)), *("-" if worst is None else f"{worst:.1e}" for worst in kinds.values())])
    widths = [max(map(len, column)) for column in zip(*rows)]
    print("\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows))


def main(programs, seed=1, rounds=1, *names):
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    comparison = base.Comparison()
    compare_defaults(comparison, programs[0], names or list(FAMILIES))
    for number in range(int(seed), int(seed) + int(rounds)):
        before = len(comparison.faults)
        round_of(comparison, number, programs, names or list(FAMILIES))
        comparison.faults[before:] = [f"seed {number}: {fault}" for fault in comparison.faults[before:]]
    table(comparison, names or list(FAMILIES))
    for fault in comparison.faults:
        print(fault)
    print(f"{comparison.count} tensors compared with transformers {transformers.__version__}, "
          f"the worst differs by {comparison.worst:.1e}; {len(comparison.faults)} faults")
    sys.exit(1 if comparison.faults else 0)


if __name__ == "__main__":
    main(sys.argv[1:3], *sys.argv[3:])
