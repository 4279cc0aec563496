#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Families with experts beside Qwen's and Mixtral's, against transformers and PEFT: a model of each, drawn from a seed.
# families_peer_test.py has the comparisons; here are what is drawn, experts spread over ranks, and MXFP4 files.
# The last cases are wrong on purpose, one a family, and must be told apart.
#   sparse_families_peer_test.py MODELS_PEER TUNING_ORACLE [SEED [ROUNDS [FAMILY…]]]
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import families_peer_test as families  # sets what transformers reads before it is imported

import torch
import transformers
from safetensors.torch import load_file, save_file

base = families.base
DENSE = base.MODELS
MXFP4_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def sigmoid_experts(draw):
    groups = draw.choice((1, 2, 4))
    used = draw.choice([n for n in (1, 2, 4) if n <= groups])
    return dict(n_routed_experts=8, n_group=groups, topk_group=used,
                # Of one expert the normalized weight is always 1, and the router's gradient noise.
                num_experts_per_tok=draw.choice([n for n in (2, 3) if n <= used * 8 // groups]),
                moe_intermediate_size=draw.choice((12, 18, 20)), n_shared_experts=draw.choice((1, 2)),
                first_k_dense_replace=draw.choice((0, 1)), norm_topk_prob=draw.random() < 0.7,
                routed_scaling_factor=draw.choice((1.0, 2.5)))


def deepseek_v3(draw):
    changes = {**families.common(draw), **sigmoid_experts(draw), "q_lora_rank": draw.choice((None, 10, 16)),
               "kv_lora_rank": draw.choice((8, 12)), "qk_rope_head_dim": draw.choice((4, 8)),
               "qk_nope_head_dim": draw.choice((6, 8, 12)), "v_head_dim": draw.choice((6, 12, 24)),
               "rope_interleave": draw.random() < 0.6, "rope_parameters": families.scaling(draw)}
    changes["num_key_value_heads"] = changes["num_attention_heads"]
    if changes["rope_parameters"]["rope_type"] == "yarn":
        changes["rope_parameters"].update(draw.choice(({}, dict(mscale=1.0, mscale_all_dim=0.7),
                                                       dict(mscale=1.0, mscale_all_dim=1.0))))
    return changes


def glm4_moe(draw):
    part = draw.choice(({}, {"partial_rotary_factor": 0.5}, {"partial_rotary_factor": 1.0}))
    return {**families.common(draw), **sigmoid_experts(draw), "head_dim": draw.choice((8, 12, 16)),
            "use_qk_norm": draw.random() < 0.5, "rope_parameters": {**part, **families.scaling(draw)}}


def gpt_oss(draw):
    changes = {**families.common(draw), "head_dim": draw.choice((6, 8, 16)), "sliding_window": draw.choice((3, 6, 30)),
               "num_local_experts": draw.choice((4, 8)), "num_experts_per_tok": draw.choice((1, 2, 4)),
               "swiglu_limit": draw.choice((0.4, 7.0)), "swiglu_alpha": draw.choice((1.702, 0.9)),
               "router_aux_loss_coef": 0.0, "rope_parameters": draw.choice((None, families.scaling(draw)))}
    if draw.random() < 0.5:
        changes["layer_types"] = [draw.choice(("full_attention", "sliding_attention"))
                                  for _ in range(changes["num_hidden_layers"])]
    return changes


def llama4_text(draw):
    changes = {**families.common(draw), "head_dim": draw.choice((8, 12, 16)),
               "intermediate_size_mlp": draw.choice((40, 56)), "num_local_experts": 4,
               "num_experts_per_tok": draw.choice((1, 1, 2)), "interleave_moe_layer_step": draw.choice((1, 2)),
               "no_rope_layer_interval": draw.choice((2, 3)), "attention_chunk_size": draw.choice((5, 9, 30)),
               "use_qk_norm": draw.random() < 0.6, "attn_temperature_tuning": draw.random() < 0.7,
               "floor_scale": draw.choice((4, 9)), "attn_scale": draw.choice((0.1, 0.7)),
               "rope_parameters": families.scaling(draw)}
    if draw.random() < 0.3:
        changes["moe_layers"] = [0]
    if draw.random() < 0.3:
        changes["no_rope_layers"] = [draw.choice((0, 1)) for _ in range(changes["num_hidden_layers"])]
    return changes


# PEFT takes all-linear and the names of dense and shared MLPs for the experts, which are one parameter here and there.
ATTENTION = r".*\.self_attn\.(q|q_a|q_b|k|v|kv_a|kv_b|o)_proj(_with_mqa)?"
# name -> its class, what is drawn, what ours is told instead of the truth, what is adapted
FAMILIES = {
    "deepseek_v3": ("DeepseekV3", deepseek_v3, {"routed_scaling_factor": 1.7}, ATTENTION),
    "glm4_moe": ("Glm4Moe", glm4_moe, {"routed_scaling_factor": 1.7}, ATTENTION),
    "gpt_oss": ("GptOss", gpt_oss, {"swiglu_alpha": 1.3}, "all-linear"),
    # Its router is a linear layer that gives two tensors, which PEFT's adapters cannot be added to.
    "llama4_text": ("Llama4Text", llama4_text, {"rms_norm_eps": 0.1}, PROJECTIONS),
}
WORLDS = [("none", 1, "recompute"), ("ddp", 2, "ep2"), ("fsdp", 2, "recompute"), ("fsdp", 4, "ep2,recompute"),
          ("hsdp", 4, "ep2")]


def make(name, folder):
    """base.make with values where transformers starts from zeros: biases of experts, corrections of routers."""
    model = base.make(name, folder)
    model.config._experts_implementation = "eager"
    with torch.no_grad():
        for key, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if key.endswith(("_proj_bias", "e_score_correction_bias")):
                tensor.add_(torch.randn_like(tensor) * 0.2)
    model.save_pretrained(folder, max_shard_size="30KB")
    return model


def opened(folder, **options):
    """transformers' products for all experts want rows of a multiple of 16 bytes."""
    model = plainly_opened(folder, **options)
    model.config._experts_implementation = "eager"
    return model


plainly_opened, families.opened = families.opened, opened


def tell_gpt_oss_of_sequences():
    """transformers 5.23 makes gpt-oss' masks without the positions that tell packed sequences apart; here with them."""
    from transformers.models.gpt_oss import modeling_gpt_oss as theirs
    plain = theirs.GptOssModel.forward

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, **more):
        if attention_mask is None and position_ids is not None:
            known = dict(config=self.config, inputs_embeds=self.embed_tokens(input_ids), attention_mask=None,
                         past_key_values=None, position_ids=position_ids)
            attention_mask = {"full_attention": theirs.create_causal_mask(**known),
                              "sliding_attention": theirs.create_sliding_window_causal_mask(**known)}
        return plain(self, input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids, **more)

    theirs.GptOssModel.forward = forward


def balance(model, batch):
    """The router's loss, where transformers has one."""
    arguments = dict(use_cache=False, output_router_logits=True)
    if "segments" in batch:
        arguments["position_ids"] = batch["positions"]
        if (batch["segments"] < 0).any():
            arguments["attention_mask"] = (batch["segments"] >= 0).long()
    with torch.no_grad():
        return model(batch["ids"], **arguments).aux_loss


def take_balance(comparison, name, path, model, batch):
    ours = load_file(path)
    if "router_loss" in ours:
        comparison.hold(f"{name}: the router's loss", ours.pop("router_loss"), balance(model, batch))
        save_file(ours, path)


def drop_zeros(path, expected):
    """Gradients that are none, such as of keys' biases where heads do not turn: noise on both sides."""
    ours = load_file(path)
    for key in [key for key in expected if key.startswith("grad.") and expected[key].abs().max() < 1e-7]:
        if ours[key].abs().max() < 1e-7:
            del expected[key], ours[key]
    save_file(ours, path)


def to_mxfp4(folder):
    """The folder of a gpt-oss with its experts as random bytes of MXFP4, which is what its publisher has."""
    random_bytes = torch.Generator().manual_seed(3)
    tensors, draw = {}, lambda low, high, size: torch.randint(low, high, size, generator=random_bytes,
                                                              dtype=torch.uint8)
    for file in [each for each in os.listdir(folder) if each.endswith(".safetensors") and each != "batch.safetensors"]:
        tensors.update(load_file(os.path.join(folder, file)))
        os.remove(os.path.join(folder, file))
    for key in [key for key in tensors if key.endswith(("experts.gate_up_proj", "experts.down_proj"))]:
        experts, width, out = tensors.pop(key).shape
        tensors[key + "_blocks"] = draw(0, 256, (experts, out, width // 32, 16))
        tensors[key + "_scales"] = draw(119, 126, (experts, out, width // 32))
    tensors = {key: value if value.dtype == torch.uint8 else value.bfloat16() for key, value in tensors.items()}
    save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    os.remove(os.path.join(folder, "model.safetensors.index.json"))
    path = os.path.join(folder, "config.json")
    with open(path) as file:
        config = json.load(file)
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}
    config["dtype"] = "bfloat16"
    with open(path, "w") as file:
        json.dump(config, file)


def compare_mxfp4(comparison, top, program):
    """What transformers dequantizes, and what we read and save: each tensor equal to the bit."""
    at = lambda *parts: os.path.join(top, *parts)
    sizes = dict(hidden_size=64, intermediate_size=32, num_local_experts=4, num_experts_per_tok=2, head_dim=16)
    base.MODELS["mxfp4"] = ("GptOss", sizes, "plain")
    make("mxfp4", at("mxfp4"))
    to_mxfp4(at("mxfp4"))
    with open(at("mxfp4_cases"), "w") as file:
        file.write(f"save {at('mxfp4')} fsdp 2 - {at('mxfp4_saved')}\n")
    subprocess.run([program, at("mxfp4_cases")], check=True, timeout=60)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(at("mxfp4"), dtype=torch.bfloat16).state_dict()
    ours = transformers.AutoModelForCausalLM.from_pretrained(at("mxfp4_saved"), dtype=torch.bfloat16).state_dict()
    for key in sorted(set(ours) | set(theirs)):
        if key not in ours or key not in theirs:
            comparison.faults.append(f"MXFP4: {key} is on one side only")
            continue
        comparison.hold(f"MXFP4: {key}", ours[key], theirs[key], tolerance=0)


def zeros_for_left_out_groups():
    """transformers before 5.12 filled them so, with other choices where all corrected scores are negative."""
    fill = torch.Tensor.masked_fill
    other = lambda scores, mask, value: fill(scores, mask, 0.0 if value == float("-inf") else value)
    return unittest.mock.patch.object(torch.Tensor, "masked_fill", other)


def compare_left_out_groups(comparison, top, program):
    """A token keeps to its best groups although every score is below the zero of a group that is left out."""
    folder, path = os.path.join(top, "groups"), os.path.join(top, "groups.forward")
    sizes = dict(head_dim=8, n_routed_experts=8, n_group=4, topk_group=2, num_experts_per_tok=3,
                 moe_intermediate_size=20, first_k_dense_replace=0)
    base.MODELS["groups"] = ("Glm4Moe", sizes, "plain")
    model = make("groups", folder)
    with torch.no_grad():
        for key, tensor in model.named_buffers():
            if key.endswith("e_score_correction_bias"):
                tensor.sub_(3)
    model.save_pretrained(folder, max_shard_size="30KB")
    with open(path + ".cases", "w") as file:
        file.write(f"forward {folder} none 1 - {path}\n")
    subprocess.run([program, path + ".cases"], check=True, timeout=60)
    batch = load_file(os.path.join(folder, "batch.safetensors"))
    with torch.no_grad():
        right = base.peer_logits(opened(folder), batch)
        with zeros_for_left_out_groups():
            wrong = base.peer_logits(opened(folder), batch)
    comparison.hold("left-out groups: logits", load_file(path)["logits"], right)
    families.tell_apart(comparison, "a model whose left-out groups are zeros", wrong, right)


def round_of(comparison, seed, programs, names):
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as top:
        at = lambda *parts: os.path.join(top, *parts)
        trained = lambda name, world: at("-".join([name, *map(str, world)]))
        models, batches, cases = {}, {}, []
        add = lambda *case: cases.append(" ".join(map(str, case)))
        for name in names:
            kind, drawn, wrong, _ = FAMILIES[name]
            base.MODELS[name] = (kind, drawn(draw), draw.choice(("plain", "packed", "padded")))
            changes, rows = base.MODELS[name][1:]
            if rows == "packed" and "floor_scale" in changes:  # transformers counts along the row, not in a sequence
                changes["floor_scale"] = 8192
            models[name] = make(name, at(name))
            print(f"{seed} {name}: {rows} {json.dumps(changes)}")
            batches[name] = load_file(at(name, "batch.safetensors"))
            base.rewrite(at(name), at(name + "_wrong"), **wrong)
            add("forward", at(name), "none", 1, draw.choice(("slices", "-")), at(name + ".forward"))
            add("forward", at(name + "_wrong"), "none", 1, "-", at(name + ".wrong"))
            for world in WORLDS:
                add("train", at(name), *world, trained(name, world))
            add("save", at(name), *draw.choice((("fsdp", 2), ("ddp", 2), ("hsdp", 4))), "ep2", at(name + "_saved"))
            add("generate", at(name), "fsdp", 2, "-", at(name + ".generate"))
        results = families.computed(programs[0], at("cases"), cases, models, batches)
        if not results:
            return comparison.faults.append("the program failed")
        expected, losses = results
        for name in names:
            take_balance(comparison, name, at(name + ".forward"), opened(at(name)), batches[name])
            drop_zeros(at(name + ".forward"), expected[name])
            families.compare_forward(comparison, name, at(name + ".forward"), at(name), expected[name], batches[name])
            families.compare_losses(comparison, name, [(world, world[1], trained(name, world)) for world in WORLDS],
                                    losses[name], families.losses_again(at(name), batches[name]))
            families.compare_saved(comparison, name, at(name), at(name + "_saved"), batches[name])
            families.compare_generated(comparison, name, at(name), at(name + ".generate"), batches[name])
            world = draw.choice((("none", 1, 0), ("ddp", 2, 0), ("fsdp", 2, 0), ("hsdp", 4, 2)))
            families.TARGETS = FAMILIES[name][3]
            families.compare_adapter(comparison, name, at(name), at(name + "_adapter"), programs[1],
                                     base.MODELS[name][1]["vocab_size"], world)
            world = draw.choice((("ddp", 2, 0), ("fsdp", 2, 0)))
            families.compare_adapter(comparison, name, at(name), at(name + "_quantized"), programs[1],
                                     base.MODELS[name][1]["vocab_size"], world, stored=1)
            families.tell_apart(comparison, f"a wrong {name}", load_file(at(name + ".wrong"))["logits"],
                                expected[name]["logits"])
        if "gpt_oss" in names:
            compare_mxfp4(comparison, top, programs[0])
        if "glm4_moe" in names:
            compare_left_out_groups(comparison, top, programs[0])


def check_all_are_held(program):
    """Each family that we read is one of those that this test or its neighbours hold to transformers."""
    kinds = {kind for kind, *_ in [*DENSE.values(), *families.FAMILIES.values(), *FAMILIES.values()]}
    import moe_peer_test  # it has models of its own in place of the dense ones
    kinds |= {kind for kind, *_ in moe_peer_test.base.MODELS.values()}
    with tempfile.TemporaryDirectory() as top:
        with open(top + "/cases", "w") as file:
            file.write(f"families - none 1 - {top}/names\n")
        subprocess.run([program, top + "/cases"], check=True, timeout=60)
        with open(top + "/names") as file:
            ours = set(file.read().split())
    held = {getattr(transformers, kind + "Config").model_type for kind in kinds}
    assert ours == held, f"read and held to nothing: {ours - held}; held and not read: {held - ours}"


if __name__ == "__main__":
    check_all_are_held(sys.argv[1])
    tell_gpt_oss_of_sequences()
    families.FAMILIES = {name: row[:3] for name, row in FAMILIES.items()}
    families.round_of = round_of
    families.DEFAULTS = {"glm4_moe": dict(head_dim=128)}  # as published; the class alone has 96 heads of 4096 / 96
    families.main(sys.argv[1:3], *sys.argv[3:])
