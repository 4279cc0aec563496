# SPDX-License-Identifier: Apache-2.0
# Our sparse decoders against transformers': Qwen3-MoE and Mixtral, with every option that their configs have.
# Logits, the router's loss, all gradients; ten steps under ddp, fsdp and hsdp, experts on each rank and spread; folders
# read and written in the published layout of single experts. models_peer_test.py has the dense half and the tools.
# The last cases are wrong on purpose and must be told apart, so that agreement means something.
#   moe_peer_test.py PROGRAM    PROGRAM: sealift-models-peer; PYTHONPATH has transformers and what it needs
import os
import subprocess
import sys
import tempfile

import models_peer_test as base
import torch
import transformers
from safetensors.torch import load_file

QWEN = dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=20, head_dim=8, norm_topk_prob=True,
            router_aux_loss_coef=0.3)
MIXTRAL = dict(num_local_experts=5, num_experts_per_tok=2, intermediate_size=50, router_aux_loss_coef=0.3)
base.MODELS = {
    "qwen": ("Qwen3Moe", QWEN, "packed"),
    "qwen_sums_below_1": ("Qwen3Moe", {**QWEN, "norm_topk_prob": False, "mlp_only_layers": [1],
                                       "tie_word_embeddings": True}, "padded"),
    "qwen_every_second": ("Qwen3Moe", {**QWEN, "decoder_sparse_step": 2, "moe_intermediate_size": 18}, "plain"),
    "qwen_all": ("Qwen3Moe", {**QWEN, "num_experts_per_tok": 8}, "plain"),
    "qwen_one_expert": ("Qwen3Moe", {**QWEN, "num_experts_per_tok": 1}, "left_padded"),
    "mixtral": ("Mixtral", MIXTRAL, "padded"),
    "mixtral_window": ("Mixtral", {**MIXTRAL, "num_local_experts": 4, "intermediate_size": 48, "sliding_window": 6},
                       "packed"),
}
WRONG = {"norm": ("qwen", dict(norm_topk_prob=False)), "top": ("qwen", dict(num_experts_per_tok=2)),
         "loss": ("mixtral", dict(router_aux_loss_coef=0.303))}
TRAINED = {"qwen": [("none", 1, "-"), ("ddp", 2, "ep2"), ("fsdp", 2, "recompute"), ("fsdp", 4, "ep2,recompute"),
                    ("hsdp", 4, "ep2"), ("ddp", 4, "ep4")],
           "mixtral_window": [("ddp", 2, "-"), ("fsdp", 2, "ep2")]}
SAVED = [("qwen", "fsdp", 4, "ep2"), ("mixtral_window", "ddp", 2, "ep2"), ("mixtral", "fsdp", 2, "-")]


def make(name, folder):
    model = base.make(name, folder)
    model.config._experts_implementation = "eager"
    if name == "qwen_one_expert":  # all tokens have the same large feature, which the first expert alone asks for
        with torch.no_grad():
            model.model.embed_tokens.weight[:, 0] = 3
            for layer in model.model.layers:
                layer.input_layernorm.weight[0] = 0  # keys that are nearly alike make q's gradient a small difference
                layer.post_attention_layernorm.weight[0] = 1
                layer.mlp.gate.weight.zero_()
                layer.mlp.gate.weight[0, 0] = 3
        model.save_pretrained(folder, max_shard_size="30KB")
    return model


def peer_outputs(model, batch):
    arguments = dict(use_cache=False, output_router_logits=True)
    if "segments" in batch:
        arguments["position_ids"] = batch["positions"]
        if (batch["segments"] < 0).any():
            arguments["attention_mask"] = (batch["segments"] >= 0).long()
    return model(batch["ids"], **arguments)


def peer_loss(model, batch, tokens):
    """Over `tokens` labels, plus the router's, as transformers adds it."""
    outputs, labels = peer_outputs(model, batch), batch["labels"]
    chosen = outputs.logits.log_softmax(-1).gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    values = torch.where(labels == base.NO_LABEL, 0.0, chosen)
    return -values.sum() / tokens + model.config.router_aux_loss_coef * outputs.aux_loss, values, outputs


def our_name(model, key):
    return key.replace(".mlp.", ".block_sparse_moe.") if model.config.model_type == "mixtral" else key


def peer_forward(model, batch):
    model.zero_grad()
    loss, values, outputs = peer_loss(model, batch, (batch["labels"] != base.NO_LABEL).sum())
    loss.backward()
    result = {"logits": outputs.logits.detach(), "values": values.detach(), "loss": loss.detach(),
              "router_loss": outputs.aux_loss.detach()}
    result.update({"grad." + our_name(model, key): parameter.grad for key, parameter in model.named_parameters()})
    return result


def peer_losses(folder, batch, ranks):
    """The mean over ranks, each with its rows: the router's loss is one of a rank's tokens."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    model.config._experts_implementation = "eager"
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    tokens = (batch["labels"] != base.NO_LABEL).sum() / ranks
    parts = [{key: value.chunk(ranks)[rank] for key, value in batch.items()} for rank in range(ranks)]
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = sum(peer_loss(model, part, tokens)[0] for part in parts) / ranks
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return torch.tensor(losses, dtype=torch.float64)


def main(program):
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    comparison = base.Comparison()
    with tempfile.TemporaryDirectory() as top:
        at = lambda *names: os.path.join(top, *names)
        trained = lambda name, world: at("-".join(["train", name, *map(str, world)]))
        models = {name: make(name, at(name)) for name in base.MODELS}
        batches = {name: load_file(at(name, "batch.safetensors")) for name in base.MODELS}
        cases = [("forward", at(name), "none", 1, "recompute" if name == "qwen" else "-", at(name + ".forward"))
                 for name in base.MODELS]
        for name, (model, changes) in WRONG.items():
            base.rewrite(at(model), at("wrong_" + name), **changes)
            cases.append(("forward", at("wrong_" + name), "none", 1, "-", at(name + ".wrong")))
        cases += [("train", at(name), *world, trained(name, world)) for name in TRAINED for world in TRAINED[name]]
        cases += [("save", at(name), method, ranks, options, at(name + "_saved"))
                  for name, method, ranks, options in SAVED]
        cases.append(("generate", at("qwen"), "fsdp", 2, "-", at("qwen.generate")))
        with open(at("cases"), "w") as file:
            file.writelines(" ".join(map(str, case)) + "\n" for case in cases)
        process = subprocess.Popen([program, at("cases")], env=dict(os.environ, OMP_NUM_THREADS="1"))

        # Meanwhile the peer's side.
        expected = {name: peer_forward(models[name], batches[name]) for name in models}
        if process.wait(timeout=280) != 0:
            comparison.faults.append("the program failed")
        for name in models:
            base.compare_forward(comparison, name, at(name + ".forward"), expected[name], batches[name])
        idle = load_file(at("qwen_one_expert.forward"))["grad.model.layers.0.mlp.experts.gate_up_proj"][1:]
        if idle.abs().max() != 0:
            comparison.faults.append("qwen_one_expert sends tokens to other experts too")
        for name, worlds in TRAINED.items():
            losses = {ranks: peer_losses(at(name), batches[name], ranks) for ranks in {world[1] for world in worlds}}
            for world in worlds:
                ours = load_file(trained(name, world))["losses"]
                comparison.hold(f"{name}, losses under {world}", ours, losses[world[1]])
        for name, *_ in SAVED:
            saved = transformers.AutoModelForCausalLM.from_pretrained(at(name + "_saved"), attn_implementation="eager")
            theirs = models[name].state_dict()
            for key, value in saved.state_dict().items():
                comparison.hold(f"{name}, saved: {key}", value, theirs.pop(key), tolerance=0)
            comparison.faults += [f"{name}, saved: no {key}" for key in theirs]
            published = os.listdir(at(name)), os.listdir(at(name + "_saved"))
            stored = [{key for file in files if file.endswith(".safetensors") and file != "batch.safetensors"
                       for key in load_file(at(name + end, file))} for files, end in zip(published, ("", "_saved"))]
            comparison.faults += [f"{name}: {key} is stored on one side only" for key in stored[0] ^ stored[1]]
        prompt = batches["qwen"]["ids"][:1, :5]
        theirs = models["qwen"].generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12,
                                         do_sample=False)
        ours = load_file(at("qwen.generate"))["tokens"]
        if ours.tolist() != theirs[0, 5:].tolist():
            comparison.faults.append(f"qwen generated {ours.tolist()}, transformers {theirs[0, 5:].tolist()}")
        for name, (model, _) in WRONG.items():
            found = base.difference(load_file(at(name + ".wrong"))["loss"], expected[model]["loss"])
            if found <= 10 * base.TOLERANCE:
                comparison.faults.append(f"a wrong {name} differs by {found:.2e} only: it would not be noticed")
    for fault in comparison.faults:
        print(fault)
    print(f"{comparison.count} tensors compared with transformers {transformers.__version__}, "
          f"the worst differs by {comparison.worst:.1e}; {len(comparison.faults)} faults")
    sys.exit(1 if comparison.faults else 0)


if __name__ == "__main__":
    main(sys.argv[1])
