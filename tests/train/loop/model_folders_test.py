# SPDX-License-Identifier: Apache-2.0
# Folders of models and adapters as people have them, through one step of sealift-train, held to transformers and PEFT.
#   two sets of weights, an old index, a tied config with a head of its own, a head without its embedding
#   refusals that name the cause: a wrapper's names, other rows than vocab_size, files that are gone
#   adapters whose targets are an expression or name others; half an adapter; a merge that leaves the base bit for bit
# usage: model_folders_test.py SEALIFT_TRAIN [PART…]      with the Python of torch; PYTHONPATH: the peers
import json
import shutil

import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

from short_runs import MODEL, WORK, check, made, run, run_parts

DATA = WORK / "chats.jsonl"
made.write_lines(DATA, made.chat_lines(4, 3))
ONE_STEP = ["--max_steps", "1", "--per_device_train_batch_size", "4", "--gradient_accumulation_steps", "1",
            "--save_strategy", "no", "--learning_rate", "1e-4"]


def variant(name, tensors=None, of=MODEL, **config):
    """A copy of the model with other tensors or keys of config.json."""
    folder = WORK / name
    shutil.copytree(of, folder)
    if tensors is not None:
        save_file({key: value.contiguous() for key, value in tensors.items()}, folder / "model.safetensors",
                  metadata={"format": "pt"})
    if config:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    return folder


def stored():
    return load_file(MODEL / "model.safetensors")


def first_loss(folder, *words, tuner="none"):
    out = WORK / f"out-{folder.name}-{len(list(WORK.glob('out-*')))}"
    run("sft", "--model", folder, "--data", DATA, "--output_dir", out, "--tuner", tuner, *ONE_STEP, *words)
    return json.loads((out / "result.json").read_text())["losses"][0], out


def theirs(folder, out, adapter=None):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model = peft.PeftModel.from_pretrained(model, adapter) if adapter else model
    return made.mean_loss(model.eval(), made.read_tokens(out / "tokens" / "dataset.tokens"))


def is_as_in_transformers(folder, adapter=None):
    words = ["--adapters", adapter, "--lora_dropout", "0"] if adapter else []
    ours, out = first_loss(folder, *words, tuner="lora" if adapter else "none")
    other = theirs(folder, out, adapter)
    check(abs(ours - other) < 1e-5 * abs(other), f"{(adapter or folder).name}: the loss is {ours}, transformers' {other}")
    return ours, out


def is_refused(folder, *parts, adapter=None):
    words = ["--adapters", adapter, "--tuner", "lora"] if adapter else ["--tuner", "none"]
    out = WORK / "refused"
    done = run("sft", "--model", folder, "--data", DATA, "--output_dir", out, *ONE_STEP, *words, expect=None)
    check(done.returncode in (1, 2), f"{(adapter or folder).name} is taken")
    for part in parts:
        check(part in done.stderr, f"{(adapter or folder).name}: no '{part}' in {done.stderr[-2000:]}")


def shards(folder, tensors, writes=True):
    """A set of two files with its index beside what the folder has."""
    where = {}
    for number in (0, 1):
        name = f"model-{number + 1:05}-of-00002.safetensors"
        part = dict(list(tensors.items())[number::2])
        where.update(dict.fromkeys(part, name))
        if writes:
            save_file({key: value.contiguous() for key, value in part.items()}, folder / name, metadata={"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": where}))


def of_two_sets_the_single_file_counts():
    plain, _ = is_as_in_transformers(MODEL)
    both = variant("both_sets")
    shards(both, {name: value + 0.1 for name, value in stored().items()})
    check(is_as_in_transformers(both)[0] == plain, "the shards were taken")
    stale = variant("stale_index")
    shards(stale, stored(), writes=False)
    check(is_as_in_transformers(stale)[0] == plain, "an old index was heeded")
    gone = variant("files_gone")
    (gone / "model.safetensors").unlink()
    shards(gone, stored(), writes=False)
    is_refused(gone, "names model-00001-of-00002.safetensors, which is not in the folder")


def a_tied_config_and_a_head():
    tensors = stored()
    embedding = tensors["model.embed_tokens.weight"]
    own = variant("own_head", tensors, tie_word_embeddings=True)
    _, out = is_as_in_transformers(own)
    check(json.loads((out / "model/config.json").read_text())["tie_word_embeddings"] is False, "the result ties the head")
    is_as_in_transformers(variant("same_head", {**tensors, "lm_head.weight": embedding.clone()}, tie_word_embeddings=True))
    only = {name: value for name, value in tensors.items() if name != "model.embed_tokens.weight"}
    is_as_in_transformers(variant("head_only", {**only, "lm_head.weight": embedding}, tie_word_embeddings=True))


def a_refusal_names_the_cause():
    for prefix in ("_orig_mod.", "module.", "base_model.model."):
        is_refused(variant(f"wrapped_{prefix}", {prefix + name: value for name, value in stored().items()}),
                   f"every tensor's name begins with {prefix}")
    body = {name.removeprefix("model."): value for name, value in stored().items() if name != "lm_head.weight"}
    is_refused(variant("body", body), "the model's body was saved alone")
    is_refused(variant("rows_384", vocab_size=384), "the embedding has 320 rows", "set vocab_size to 320")


def made_adapter(name, **config):
    """Random factors of q_proj and v_proj, as PEFT saves them, with other keys in its config."""
    torch.manual_seed(5)
    model = peft.get_peft_model(transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32),
                                peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.copy_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(WORK / name)
    path = WORK / name / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    return WORK / name


def adapters_as_people_have_them():
    plain, _ = is_as_in_transformers(MODEL, made_adapter("plain"))
    for name, targets in (("expression", r".*self_attn\.(q|v)_proj"), ("others", ["q_proj", "v_proj", "qkv", "linear_fc1"])):
        check(is_as_in_transformers(MODEL, made_adapter(name, target_modules=targets))[0] == plain, name)
    is_refused(MODEL, "target_modules names no projection", adapter=made_adapter("none_of_it", target_modules=["qkv"]))
    is_refused(MODEL, "rank_pattern", "merge_and_unload", adapter=made_adapter("ranks", rank_pattern={"q_proj": 2}))
    half = made_adapter("half")
    tensors = load_file(half / "adapter_model.safetensors")
    save_file({name: value for name, value in tensors.items() if "layers.1.self_attn.v_proj.lora_B" not in name},
              half / "adapter_model.safetensors")
    is_refused(MODEL, "half/adapter_model.safetensors has no base_model.model.model.layers.1.self_attn.v_proj.lora_B",
               adapter=half)


def a_merge_rounds_once_and_what_is_frozen_is_the_bases():
    for name, dtype in (("f16", torch.float16), ("f32", torch.float32)):
        base = variant(f"base_{name}", {key: value.to(dtype) for key, value in stored().items()},
                       torch_dtype=f"float{name[1:]}", dtype=None)
        _, out = first_loss(base, "--lora_rank", "2", "--target_modules", "q_proj", "--merge_lora", "true", "--precision",
                            "bf16", tuner="lora")
        before, after = (load_file(folder / "model.safetensors") if (folder / "model.safetensors").exists() else {
            key: value for path in folder.glob("*.safetensors") for key, value in load_file(path).items()}
            for folder in (base, out / "merged"))
        check(before.keys() == after.keys(), "other tensors")
        changed = {key for key in before if before[key].dtype != after[key].dtype or not before[key].equal(after[key])}
        check(changed == {key for key in before if "q_proj.weight" in key}, f"{name}: changed are {sorted(changed)}")
        factors = load_file(out / "adapter/adapter_model.safetensors")
        scale = json.loads((out / "adapter/adapter_config.json").read_text())
        for key in changed:
            a, b = (factors[f"base_model.model.{key.removesuffix('.weight')}.lora_{side}.weight"] for side in "AB")
            merged = (before[key].float() + scale["lora_alpha"] / scale["r"] * b @ a).to(dtype)
            check(torch.allclose(merged.float(), after[key].float(), rtol=1e-3 if name == "f16" else 1e-6, atol=1e-7),
                  f"{name}: {key} was rounded more than once")
        config = json.loads((out / "merged/config.json").read_text())
        check(config["torch_dtype"] == config["dtype"] == f"float{name[1:]}", f"the dtypes are {config}")


def another_base_is_refused():
    other = variant("other_base", {name: value + 0.01 for name, value in stored().items()})
    moved = variant("moved_base")
    out = WORK / "of-base"
    job = ["--data", DATA, "--output_dir", out, "--tuner", "lora", "--lora_dropout", "0", "--save_steps", "1",
           "--per_device_train_batch_size", "4", "--gradient_accumulation_steps", "1"]
    run("sft", "--model", MODEL, *job, "--max_steps", "2")
    done = run("sft", "--model", other, *job, "--max_steps", "3", expect=1)
    check("weights of the base is" in done.stderr, done.stderr[-2000:])
    run("sft", "--model", moved, *job, "--max_steps", "3")
    is_refused(other, "was trained over", str(other), adapter=out / "adapter")
    is_as_in_transformers(moved, out / "adapter")
    (out / "adapter/sealift_base.json").unlink()
    is_as_in_transformers(other, out / "adapter")


def a_folder_in_use_is_locked():
    import fcntl

    out = WORK / "in-use"
    out.mkdir()
    job = ["sft", "--model", MODEL, "--data", DATA, "--output_dir", out, "--tuner", "none", *ONE_STEP]
    with (out / ".in_use").open("w") as file:
        file.write("process 7 on far")
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        done = run(*job, expect=1)
        check("is in use by process 7 on far" in done.stderr and not (out / "tokens").exists(), done.stderr[-2000:])
        done = run(*job, "--ranks", "2", "--parallel-method", "ddp", expect=1)
        check("is in use by process 7 on far" in done.stderr, done.stderr[-2000:])
    run(*job)
    check("process" in (out / ".in_use").read_text(), "it does not say whose it is")


def answers_end_where_they_were_trained_to():
    base = variant("base_end", eos_token_id=0)
    (base / "generation_config.json").write_text('{"eos_token_id": 0}')
    out = WORK / "ends"
    done = run("sft", "--model", base, "--data", DATA, "--output_dir", out, "--tuner", "none", *ONE_STEP)
    check("answers end with token 2, which config.json does not name" in done.stderr, done.stderr[-2000:])
    ends = transformers.GenerationConfig.from_pretrained(out / "model").eos_token_id
    check(ends == [0, 2], f"generation ends after {ends}")
    done = run("sft", "--model", base, "--data", DATA, "--output_dir", out, "--tuner", "lora", *ONE_STEP)
    check("an adapter has no place for it" in done.stderr, done.stderr[-2000:])
    done = run("sft", "--model", MODEL, "--data", DATA, "--output_dir", out, "--tuner", "none", *ONE_STEP)
    check("answers end with" not in done.stderr, done.stderr[-2000:])


def a_reward_models_padding_is_no_end():
    pairs = WORK / "pairs.jsonl"
    made.write_lines(pairs, made.pair_lines(4, 3))
    base = variant("padded", pad_token_id=2)
    words = ["--data", pairs, "--use_chat_template", "false", "--output_dir", WORK / "reward", "--tuner", "none", *ONE_STEP]
    done = run("reward", "--model", base, *words, expect=2)
    check("ends with token 2, which is pad_token_id" in done.stderr, done.stderr[-2000:])
    run("reward", "--model", MODEL, *words)


run_parts([of_two_sets_the_single_file_counts, a_tied_config_and_a_head, a_refusal_names_the_cause,
           adapters_as_people_have_them, another_base_is_refused, a_folder_in_use_is_locked,
           a_reward_models_padding_is_no_end, answers_end_where_they_were_trained_to, a_merge_rounds_once_and_what_is_frozen_is_the_bases])
