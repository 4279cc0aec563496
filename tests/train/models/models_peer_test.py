# SPDX-License-Identifier: Apache-2.0
# Our decoders against transformers': made models of each family, with each option that families use.
# Logits, label log-probabilities and all gradients in fp32; ten steps of AdamW on one rank and under ddp, fsdp and
# hsdp; greedy generation; folders that we save, opened by transformers.
# The last cases are wrong on purpose and must be told apart, so that agreement means something.
#   models_peer_test.py PROGRAM    PROGRAM: sealift-models-peer; PYTHONPATH has transformers and what it needs
import json
import os
import shutil
import subprocess
import sys
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

import torch
import transformers
from safetensors.torch import load_file, save_file

TOLERANCE = 1e-5  # relative: of each tensor's 2-norm, and of its largest difference to its largest value
ROWS, TIME, NO_LABEL = 4, 24, -100
BASE = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.15, pad_token_id=None,
            bos_token_id=None, eos_token_id=None)


def rope(**parameters):
    return {"rope_parameters": {"rope_theta": 10000.0, **parameters}}


# A small base and a short context, so that all three parts of YaRN's ramp have frequencies.
YARN = dict(rope_type="yarn", rope_theta=50.0, factor=4.0, original_max_position_embeddings=32)
LONG = dict(max_position_embeddings=128, head_dim=16)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16, rope_theta=500.0)
# name -> family, changes of BASE, batch
MODELS = {
    "llama": ("Llama", {}, "plain"),
    "llama_mha_bias_tied": ("Llama", dict(num_key_value_heads=4, attention_bias=True, mlp_bias=True,
                                          tie_word_embeddings=True, rms_norm_eps=1e-3), "plain"),
    "llama_mqa_head_dim": ("Llama", dict(num_key_value_heads=1, head_dim=12), "padded"),
    "llama_linear": ("Llama", rope(rope_type="linear", factor=3.0), "plain"),
    "llama_dynamic_short": ("Llama", rope(rope_type="dynamic", factor=2.0), "plain"),
    "llama_dynamic_long": ("Llama", dict(max_position_embeddings=16, **rope(rope_type="dynamic", factor=2.0)), "plain"),
    "llama_yarn": ("Llama", {**LONG, **rope(**YARN)}, "plain"),
    "llama_yarn_mscale": ("Llama", {**LONG, **rope(**YARN, mscale=0.7, mscale_all_dim=1.3, beta_fast=3.0,
                                                   beta_slow=0.5, truncate=False)}, "packed"),
    "llama_yarn_scale": ("Llama", {**LONG, **rope(**YARN, attention_factor=1.4)}, "plain"),
    "llama_llama3": ("Llama", rope(**LLAMA3), "packed"),
    "llama_padding_token": ("Llama", dict(pad_token_id=7), "plain"),
    "mistral_window": ("Mistral", dict(sliding_window=5), "plain"),
    "mistral_window_packed": ("Mistral", dict(sliding_window=5, head_dim=16), "packed"),
    "mistral_no_window": ("Mistral", dict(sliding_window=None), "packed"),
    "qwen2": ("Qwen2", dict(tie_word_embeddings=True, **rope(rope_theta=1e6)), "plain"),
    "qwen2_window": ("Qwen2", dict(use_sliding_window=True, sliding_window=6, max_window_layers=1), "packed"),
    "qwen2_layer_types": ("Qwen2", dict(use_sliding_window=True, sliding_window=6, layer_types=[
        "sliding_attention", "full_attention", "sliding_attention"], **LONG, **rope(**YARN)), "left_padded"),
    "qwen3": ("Qwen3", dict(head_dim=16, **rope(rope_theta=1e6)), "packed"),
    "qwen3_bias_window": ("Qwen3", dict(head_dim=8, attention_bias=True, tie_word_embeddings=True, max_window_layers=2,
                                        use_sliding_window=True, sliding_window=9), "padded"),
}
# What ours is told instead of the truth.
WRONG = {
    "eps": ("llama_mha_bias_tied", dict(rms_norm_eps=1.01e-3)),
    "theta": ("llama", dict(rope_parameters={"rope_type": "default", "rope_theta": 10100.0})),
    "window": ("mistral_window", dict(sliding_window=6)),
    "yarn": ("llama_yarn", dict(rope_parameters={**YARN, "beta_slow": 0.25})),
}
# What config.json files of transformers 4 look like: the same model, said in the old words.
OLD_WORDS = {
    "llama_llama3": dict(rope_theta=500.0, rope_scaling={k: v for k, v in LLAMA3.items() if k != "rope_theta"}),
    "llama_linear": dict(rope_theta=10000.0, rope_scaling={"type": "linear", "factor": 3.0}),
    "qwen2": dict(rope_theta=1e6, rope_scaling=None, use_sliding_window=False, sliding_window=4096),
    "llama_yarn": dict(rope_theta=50.0, rope_scaling={k: v for k, v in YARN.items() if k != "rope_theta"}),
}
TRAINED = ["llama_mha_bias_tied", "mistral_window_packed", "qwen2", "qwen3"]
WORLDS = [("none", 1, "recompute"), ("ddp", 2, "slices"), ("fsdp", 2, "recompute"), ("hsdp", 4, "-")]


def batch_of(kind, vocabulary):
    """ids, positions, segments and labels as the trainer's TokenBatch has them."""
    assert kind in ("plain", "packed", "padded", "left_padded"), kind
    random = torch.Generator().manual_seed(5)
    ids = torch.randint(0, vocabulary, (ROWS, TIME), generator=random)
    ids[0, :3] = 7
    positions = torch.arange(TIME).expand(ROWS, TIME).clone()
    segments = torch.zeros(ROWS, TIME, dtype=torch.long)
    for row in range(ROWS):
        if kind == "packed":
            for number, start in enumerate((7 + row, 15 + row)):
                segments[row, start:] = number + 1
                positions[row, start:] = torch.arange(TIME - start)
        elif kind == "padded" and row > 0:
            segments[row, TIME - 2 * row:] = -1
        elif kind == "left_padded" and row > 0:
            segments[row, :2 * row] = -1
            positions[row] = (positions[row] - 2 * row).clamp(min=0)
    labels = torch.full((ROWS, TIME), NO_LABEL)
    labels[:, :-1] = ids[:, 1:]
    labels[:, :-1][(segments[:, 1:] != segments[:, :-1]) | (segments[:, :-1] < 0)] = NO_LABEL
    labels[torch.rand(ROWS, TIME, generator=random) < 0.2] = NO_LABEL  # as of prompts
    batch = {"ids": ids, "labels": labels}
    if kind != "plain":
        batch.update(positions=positions, segments=segments)
    return batch


def make(name, folder, reward=False):
    family, changes, rows = MODELS[name]
    config = getattr(transformers, family + "Config")(**{**BASE, **changes}, **(dict(num_labels=1) if reward else {}))
    torch.manual_seed(sorted(MODELS).index(name))
    kind = transformers.AutoModelForSequenceClassification if reward else transformers.AutoModelForCausalLM
    model = kind.from_config(config, attn_implementation="eager").float()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if parameter.dim() == 1:  # norms and biases, which transformers makes ones and zeros
                parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(folder, max_shard_size="30KB")
    save_file({key: value.contiguous() for key, value in batch_of(rows, config.vocab_size).items()},
              os.path.join(folder, "batch.safetensors"))
    return model


def peer_logits(model, batch, **more):
    arguments = {"use_cache": False, **more}
    if "segments" in batch:
        arguments["position_ids"] = batch["positions"]
        if (batch["segments"] < 0).any():
            arguments["attention_mask"] = (batch["segments"] >= 0).long()
    return model(batch["ids"], **arguments).logits


def peer_values(model, batch):
    labels = batch["labels"]
    chosen = peer_logits(model, batch).log_softmax(-1).gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return torch.where(labels == NO_LABEL, 0.0, chosen)


def peer_forward(model, batch):
    model.zero_grad()
    with torch.no_grad():
        logits = peer_logits(model, batch)
    values = peer_values(model, batch)
    loss = -values.sum() / (batch["labels"] != NO_LABEL).sum()
    loss.backward()
    result = {"logits": logits, "values": values.detach(), "loss": loss.detach()}
    result.update({"grad." + key: parameter.grad for key, parameter in model.named_parameters()})
    return result


def peer_losses(model, batch, ranks=1):
    """Of ten steps; each of so many ranks has a forward of its own, over an equal part of the rows."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    parts = [{key: rows.chunk(ranks)[rank] for key, rows in batch.items()} for rank in range(ranks)]
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = -sum(peer_values(model, part).sum() for part in parts) / (batch["labels"] != NO_LABEL).sum()
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return torch.tensor(losses, dtype=torch.float64)


def difference(ours, theirs):
    ours, theirs = ours.double(), theirs.double()
    assert ours.shape == theirs.shape, f"shape {tuple(ours.shape)}, transformers has {tuple(theirs.shape)}"
    largest = theirs.abs().max().item()
    if largest == 0:
        return ours.abs().max().item()
    return max(((ours - theirs).norm() / theirs.norm()).item(), ((ours - theirs).abs().max() / largest).item())


class Comparison:
    def __init__(self):
        self.faults, self.worst, self.count = [], 0.0, 0
        self.kinds = {}  # what was compared -> the worst difference

    def hold(self, what, ours, theirs, tolerance=TOLERANCE):
        try:
            found = difference(ours, theirs)
        except AssertionError as error:
            return self.faults.append(f"{what}: {error}")
        self.count += 1
        self.worst = max(self.worst, found)
        self.kinds[what] = max(found, self.kinds.get(what, 0.0))
        if not found <= tolerance:
            self.faults.append(f"{what}: differs by {found:.2e}, allowed {tolerance:.0e}")


def compare_forward(comparison, what, path, expected, batch, reward=False):
    ours = load_file(path)
    if not reward and "segments" in batch:  # what padding computes is nobody's business
        real = (batch["segments"] >= 0)
        ours["logits"], expected = ours["logits"][real], {**expected, "logits": expected["logits"][real]}
    for key in sorted(set(ours) ^ set(expected)):
        comparison.faults.append(f"{what}: only {'ours' if key in ours else 'transformers'} has {key}")
    for key in sorted(set(ours) & set(expected)):
        comparison.hold(f"{what}: {key}", ours[key], expected[key])


def rewrite(source, target, **changes):
    shutil.copytree(source, target)
    path = os.path.join(target, "config.json")
    with open(path) as file:
        config = json.load(file)
    for key in ("rope_parameters",) if "rope_scaling" in changes else ():
        config.pop(key, None)
    config.update(changes)
    with open(path, "w") as file:
        json.dump(config, file)


def reward_case(folder):
    """A score at the last token of each row, and of each segment of packed rows."""
    model = make("qwen3", folder, reward=True)
    batch = load_file(os.path.join(folder, "batch.safetensors"))
    outputs = model.model(batch["ids"], position_ids=batch["positions"], use_cache=False)
    scores = model.score(outputs.last_hidden_state).squeeze(-1)
    segments = batch["segments"]
    last = torch.ones_like(segments, dtype=torch.bool)
    last[:, :-1] = segments[:, 1:] != segments[:, :-1]
    values = scores[last & (segments >= 0)]
    values.sum().backward()
    result = {"logits": values.detach(), "values": values.detach(), "loss": values.sum().detach()}
    result.update({"grad." + key: parameter.grad for key, parameter in model.named_parameters()})
    return batch, result


def main(program):
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    comparison = Comparison()
    with tempfile.TemporaryDirectory() as top:
        at = lambda *names: os.path.join(top, *names)
        models, batches, cases = {}, {}, []
        add = lambda *case: cases.append(" ".join(map(str, case)))
        for name in MODELS:
            models[name] = make(name, at(name))
            batches[name] = load_file(at(name, "batch.safetensors"))
            add("forward", at(name), "none", 1, "slices" if len(cases) % 2 else "-", at(name + ".forward"))
        for name, changes in OLD_WORDS.items():
            rewrite(at(name), at(name + "_old"), **changes)
            add("forward", at(name + "_old"), "none", 1, "-", at(name + "_old.forward"))
        for name, (model, changes) in WRONG.items():
            rewrite(at(model), at("wrong_" + name), **changes)
            add("forward", at("wrong_" + name), "none", 1, "-", at(name + ".wrong"))
        reward_batch, reward_result = reward_case(at("reward"))
        add("forward", at("reward"), "none", 1, "-", at("reward.forward"))
        for name in TRAINED:
            for method, ranks, options in WORLDS:
                add("train", at(name), method, ranks, options, at(f"{name}.{method}.train"))
        for name, method, ranks, options in (("llama_mha_bias_tied", "fsdp", 2, "-"), ("qwen3", "ddp", 2, "bf16"),
                                             ("mistral_window", "hsdp", 4, "-"), ("reward", "fsdp", 2, "-")):
            with open(at(name, "tokenizer_config.json"), "w") as file:
                file.write('{"made": "for this test"}')
            add("save", at(name), method, ranks, options, at(name + "_saved"))
        generated = (("llama_dynamic_long", "none", 1, "-"), ("mistral_window", "fsdp", 2, "-"),
                     ("qwen3", "fsdp", 2, "gathered_by_layer"), ("qwen2_window", "ddp", 2, "-"))
        for name, method, ranks, options in generated:
            add("generate", at(name), method, ranks, options, at(name + ".generate"))
        with open(at("cases"), "w") as file:
            file.write("\n".join(cases) + "\n")
        process = subprocess.Popen([program, at("cases")], env=dict(os.environ, OMP_NUM_THREADS="1"))

        # Meanwhile the peer's side.
        expected = {name: peer_forward(models[name], batches[name]) for name in MODELS}
        losses = {name: peer_losses(models[name], batches[name]) for name in TRAINED}  # these change the models
        if process.wait(timeout=280) != 0:
            comparison.faults.append("the program failed")
        for name in MODELS:
            compare_forward(comparison, name, at(name + ".forward"), expected[name], batches[name])
        for name in OLD_WORDS:
            compare_forward(comparison, name + ", old words", at(name + "_old.forward"), expected[name], batches[name])
        compare_forward(comparison, "reward", at("reward.forward"), reward_result, reward_batch, reward=True)
        for name in TRAINED:
            for method, ranks, _ in WORLDS:
                ours = load_file(at(f"{name}.{method}.train"))["losses"]
                comparison.hold(f"{name}, losses under {method}", ours, losses[name])
        for name, method, ranks, options in generated:
            model = transformers.AutoModelForCausalLM.from_pretrained(at(name), attn_implementation="eager")
            prompt = batches[name]["ids"][:1, :5]
            theirs = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False)
            ours = load_file(at(name + ".generate"))["tokens"]
            if ours.tolist() != theirs[0, 5:].tolist():
                comparison.faults.append(f"{name} generated {ours.tolist()}, transformers {theirs[0, 5:].tolist()}")
        for name in ("llama_mha_bias_tied", "qwen3", "mistral_window"):
            dtype = torch.bfloat16 if name == "qwen3" else torch.float32
            opened = transformers.AutoModelForCausalLM.from_pretrained
            saved = opened(at(name + "_saved"), attn_implementation="eager")
            first = opened(at(name), attn_implementation="eager", dtype=dtype)
            if saved.dtype != dtype:
                comparison.faults.append(f"{name}_saved is {saved.dtype}, not {dtype}")
            with torch.no_grad():
                ours, theirs = peer_logits(saved, batches[name]), peer_logits(first, batches[name])
            comparison.hold(f"{name}, saved and opened by transformers", ours, theirs, tolerance=0)
            if not os.path.exists(at(name + "_saved", "tokenizer_config.json")):
                comparison.faults.append(f"{name}_saved has no tokenizer_config.json")
        saved = transformers.AutoModelForSequenceClassification.from_pretrained(at("reward_saved"))
        comparison.hold("reward, saved", saved.score.weight, load_reward(at("reward")).score.weight, tolerance=0)
        for name, (model, _) in WRONG.items():
            found = difference(load_file(at(name + ".wrong"))["logits"], expected[model]["logits"])
            if found <= 10 * TOLERANCE:
                comparison.faults.append(f"a wrong {name} differs by {found:.2e} only: it would not be noticed")
    for fault in comparison.faults:
        print(fault)
    print(f"{comparison.count} tensors compared with transformers {transformers.__version__}, "
          f"the worst differs by {comparison.worst:.1e}; {len(comparison.faults)} faults")
    sys.exit(1 if comparison.faults else 0)


def load_reward(folder):
    return transformers.AutoModelForSequenceClassification.from_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
