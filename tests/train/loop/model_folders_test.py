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
    for name, part in (("layers.0.", "_orig_mod"), ("layers.1.", "_checkpoint_wrapped_module"), ("q_proj.", "base_layer")):
        is_refused(variant(f"inside_{part}", {key.replace(name, f"{name}{part}."): value for key, value in stored().items()}),
                   f"has .{part}. in it, so a wrapper was saved")
    is_refused(variant("head_rows", {**stored(), "lm_head.weight": stored()["lm_head.weight"][:304]}),
               "the lm_head has 304 rows, and config.json says vocab_size 320")
    is_refused(variant("rows_384", vocab_size=384), "the embedding has 320 rows", "set vocab_size to 320")


def what_is_beyond_the_config_is_left_out_and_named():
    layer = {f"model.layers.2.{name}": stored()[f"model.layers.0.{name}"].clone()
             for name in ("self_attn.q_proj.weight", "input_layernorm.weight")}
    plain, _ = is_as_in_transformers(MODEL)
    for name, more in (("next_tokens", layer), ("values", {"v_head.summary.weight": torch.zeros(1, 48)})):
        folder = variant(name, {**stored(), **more})
        check(is_as_in_transformers(folder)[0] == plain, name)
        said = run("sft", "--model", folder, "--data", DATA, "--output_dir", WORK / "beyond", "--tuner", "none", *ONE_STEP)
        check(f"note: {len(more)} tensors of {folder} are of no part that its config.json describes (2 layers)" in
              said.stderr, said.stderr[-1000:])
    is_as_in_transformers(variant("fewer_layers", num_hidden_layers=1, layer_types=["full_attention"], max_window_layers=1))
    is_refused(variant("scaled", {**stored(), "model.layers.0.self_attn.q_proj.weight_scale_inv": torch.ones(1, 1)}),
               "Not in the model: model.layers.0.self_attn.q_proj.weight_scale_inv")


def a_folder_without_weights_says_what_it_has():
    for name in ("pytorch_model.bin", "model.fp16.safetensors", "consolidated.safetensors"):
        folder = variant(f"only_{name}")
        (folder / "model.safetensors").rename(folder / name)
        is_refused(folder, f"has no weights that can be read", f"it has {name}", "save_pretrained()")


def made_adapter(name, config=None, **lora):
    """Random factors, of q_proj and v_proj unless `lora` says otherwise, as PEFT saves them; then keys of its config."""
    torch.manual_seed(5)
    lora = {"r": 4, "target_modules": ["q_proj", "v_proj"], **lora}
    model = peft.get_peft_model(transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32),
                                peft.LoraConfig(**lora))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.copy_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(WORK / name)
    path = WORK / name / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **(config or {})}))
    return WORK / name


def renamed(folder, change):
    """The folder's adapter with other names of tensors; those that become empty are left out."""
    file = folder / "adapter_model.safetensors"
    tensors = {change(name): value for name, value in load_file(file).items()}
    save_file({name: value for name, value in tensors.items() if name}, file)
    return folder


def adapters_as_people_have_them():
    plain, _ = is_as_in_transformers(MODEL, made_adapter("plain"))
    for name, config in (("expression", {"target_modules": r".*self_attn\.(q|v)_proj"}),
                         ("others", {"target_modules": ["q_proj", "v_proj", "qkv", "linear_fc1"]}),
                         ("unset_init", {"init_lora_weights": False}), ("eva", {"init_lora_weights": "eva"}),
                         ("other_task", {"task_type": "SEQ_2_SEQ_LM"})):
        check(is_as_in_transformers(MODEL, made_adapter(name, config))[0] == plain, name)
    named = renamed(made_adapter("named_default"), lambda name: name.replace(".weight", ".default.weight"))
    check(is_as_in_transformers(MODEL, named)[0] == plain, "names of a state_dict")
    is_refused(MODEL, "target_modules names no projection", adapter=made_adapter("none", {"target_modules": ["qkv"]}))


def adapters_that_say_something_of_single_modules():
    linear = ["k_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    for name, lora in {
            "patterns": {"rank_pattern": {"q_proj": 2}, "alpha_pattern": {"v_proj": 16}},
            "pattern_of_paths": {"rank_pattern": {"layers.1.self_attn.q_proj": 6, r"layers\.\d\.self_attn\.q_proj": 3}},
            "stabilized": {"use_rslora": True, "rank_pattern": {"q_proj": 9}, "alpha_pattern": {r"layers.0.*": 5}},
            "dora": {"use_dora": True, "rank_pattern": {"v_proj": 2}},
            "one_layer": {"layers_to_transform": [1]},
            "first_layer": {"layers_to_transform": 0, "layers_pattern": "layers"},
            "excluded": {"exclude_modules": ["q_proj"]},
            "excluded_by_expression": {"exclude_modules": r".*layers\.0.*q_proj"},
            "all_but": {"target_modules": "all-linear", "exclude_modules": linear}}.items():
        folder = made_adapter(name, **lora)
        _, out = is_as_in_transformers(MODEL, folder)
        if name in ("patterns", "stabilized", "one_layer"):
            is_as_in_transformers(MODEL, out / "adapter")  # what a step made of it, saved and read by both


def adapters_that_are_refused_by_their_key():
    for name, key, config in (("bias", "bias is", {"bias": "lora_only"}),
                              ("pissa", "init_lora_weights is", {"init_lora_weights": "pissa"}),
                              ("parameters", "target_parameters is", {"target_parameters": ["experts.gate_up_proj"]}),
                              ("indices", "trainable_token_indices is", {"trainable_token_indices": [1]}),
                              ("replicated", "layer_replication is", {"layer_replication": [[0, 2], [0, 2]]}),
                              ("transposed", "fan_in_fan_out is", {"fan_in_fan_out": True})):
        is_refused(MODEL, key, "merge_and_unload()", adapter=made_adapter(name, config))
    is_refused(MODEL, "layers_to_transform is [1]", adapter=made_adapter(
        "both", {"target_modules": ".*q_proj", "layers_to_transform": [1]}))


def an_adapters_faults_are_its_own():
    half = renamed(made_adapter("half"), lambda name: "" if "layers.1.self_attn.v_proj.lora_B" in name else name)
    is_refused(MODEL, "half/adapter_model.safetensors has no base_model.model.model.layers.1.self_attn.v_proj.lora_B",
               adapter=half)
    is_refused(MODEL, "adapter_model.safetensors has 'model.layers.0.self_attn.q_proj.lora_A.weight'",
               adapter=renamed(made_adapter("bare"), lambda name: name.removeprefix("base_model.model.")))
    is_refused(MODEL, "twice/adapter_model.safetensors has base_model.model.base_model.model.model.layers.0",
               adapter=renamed(made_adapter("twice"), lambda name: "base_model.model." + name))
    is_refused(MODEL, "more/adapter_model.safetensors has base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight, for which this "
               "model has no adapter by adapter_config.json",
               adapter=made_adapter("more", {"target_modules": ["v_proj"]}))
    gone = made_adapter("gone")
    (gone / "adapter_model.safetensors").rename(gone / "adapter_model.bin")
    is_refused(MODEL, "gone has no adapter_model.safetensors", adapter=gone)
    is_refused(MODEL, "v_proj.lora_A.weight is [4, 48]; by adapter_config.json and this model it is [3, 48]",
               adapter=made_adapter("rank", {"rank_pattern": {"v_proj": 3}}))
    head = made_adapter("head", target_modules=["q_proj", "v_proj", "lm_head"])
    is_refused(MODEL, "target_modules has lm_head, beside which there is no adapter here", "merge_and_unload()",
               f"in the adapter {head}", adapter=head)


def what_vllm_does_not_serve_is_said_when_a_run_begins():
    def said(*words):
        return run("sft", "--model", MODEL, "--data", DATA, "--output_dir", WORK / "for-vllm", "--tuner", "lora", *ONE_STEP,
                   *words).stderr

    for words, line in ((["--modules_to_save", "norm"], "it takes none with modules_to_save (norm)"),
                        (["--use_dora", "true"], "most of its versions have no DoRA"),
                        (["--lora_rank", "24"], "vLLM loads an adapter of rank 24 with --max-lora-rank 32"),
                        (["--lora_rank", "513"], "its rank is 513, above vLLM's largest max_lora_rank, 512")):
        check(line in said(*words), f"{words}: no '{line}'")
    check("vLLM" not in said("--lora_rank", "16"), "a rank of 16")
    check("vLLM" not in said("--use_dora", "true", "--merge_lora", "true"), "a merged model")


def rows_that_nobody_trained_are_named_where_they_stay_frozen():
    tensors = stored()
    tensors["model.embed_tokens.weight"][1] = 0
    tensors["lm_head.weight"][2] = tensors["lm_head.weight"].mean(0)
    base = variant("new_tokens", tensors)
    line = ("whose rows of embed_tokens and lm_head look untrained, and stay so, since adapters leave these frozen: "
            "'<|im_start|>' (1), '<|im_end|>' (2); train them by modules_to_save embed_tokens lm_head")

    def said(model, *words, tuner="lora"):
        return run("sft", "--model", model, "--data", DATA, "--output_dir", WORK / "rows", "--tuner", tuner, *ONE_STEP,
                   *words).stderr

    check(line in said(base), said(base)[-1000:])
    check("rows of lm_head look untrained, and stay so, since adapters leave these frozen: '<|im_end|>' (2);" in
          said(base, "--modules_to_save", "embed_tokens"), "the head alone is frozen")
    check("untrained" not in said(base, "--modules_to_save", "embed_tokens", "lm_head"), "nothing is frozen")
    check("untrained" not in said(base, tuner="none"), "the whole model is trained")
    check("untrained" not in said(MODEL), "rows like others")


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
           what_is_beyond_the_config_is_left_out_and_named, a_folder_without_weights_says_what_it_has,
           adapters_as_people_have_them, adapters_that_say_something_of_single_modules,
           adapters_that_are_refused_by_their_key, an_adapters_faults_are_its_own,
           what_vllm_does_not_serve_is_said_when_a_run_begins, rows_that_nobody_trained_are_named_where_they_stay_frozen,
           another_base_is_refused, a_folder_in_use_is_locked,
           a_reward_models_padding_is_no_end, answers_end_where_they_were_trained_to, a_merge_rounds_once_and_what_is_frozen_is_the_bases])
