# SPDX-License-Identifier: Apache-2.0
# sealift-train sft, dpo, kto, reward and pretrain as a user runs them, held to transformers, PEFT and to themselves.
#   a made Qwen is fine-tuned with every tuner under every parallel method, with options drawn from a seed: equal losses
#   the first losses, the learning rates and the losses of the whole run are those of a loop in transformers
#   the adapter is opened by PEFT, the model by transformers, and both have the loss that was reported, also of rewards
#   experts over ranks, resumed on one process, are those of one process; answers between steps are transformers'
#   a run that is killed ends with the losses of one that never stopped; ms-swift's args.json and flags are taken over
#   an embedding that is the head, an evaluation of NaN, and ranks that were given other jobs
# usage: fine_tune_test.py SEALIFT_TRAIN REPOSITORY [SEED [PART…]]      PART: a function's name; without: all
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import made_model as made  # noqa: E402

TRAIN, REPOSITORY = sys.argv[1], pathlib.Path(sys.argv[2])
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 20
DRAW = random.Random(SEED)
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("SEALIFT_TRAIN_", "RANK", "WORLD"))}
ENVIRONMENT.update(SEALIFT_TRAIN_DEVICE="cpu", SEALIFT_TRAIN_THREADS="1", SEALIFT_TRAIN_PYTHON=sys.executable)
BEGAN = time.monotonic()


def say(text):
    print(f"[{time.monotonic() - BEGAN:5.1f} s] {text}", flush=True)


def check(holds, what):
    if not holds:
        sys.exit(f"FAILED (seed {SEED}): {what}")


def run(*arguments, expect=0, says="", cwd=None):
    """Runs the program; its result.json's content where it made one."""
    words = [str(word) for word in arguments]
    done = subprocess.run([TRAIN, *words], capture_output=True, text=True, env=ENVIRONMENT, cwd=cwd, timeout=200)
    if done.returncode != expect or says not in done.stderr:
        print(done.stdout, done.stderr[-3000:], sep="\n", flush=True)
        sys.exit(f"FAILED (seed {SEED}): '{' '.join(words)}' exited with {done.returncode}, expected {expect} and '{says}'")
    return done


def train(verb, out, *arguments, ranks=1, **more):
    model = [] if "--model" in arguments else ["--model", MODEL]
    run(verb, *model, "--output_dir", out, "--ranks", ranks, *arguments, **more)
    return json.loads((out / "result.json").read_text())


def lines_of(out):
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def differ(one, other):
    """The largest relative difference of two curves."""
    check(len(one) == len(other), f"curves of {len(one)} and {len(other)} losses")
    return max(abs(a - b) / abs(a) for a, b in zip(one, other))


def tokenize(data, out, *more):
    subprocess.run([sys.executable, REPOSITORY / "trainer/data/tokenize", "--model", MODEL, "--data", data,
                    "--out", out, *more], check=True, stdout=subprocess.DEVNULL)
    return out


METHODS = {
    "none": (1, []),
    "ddp": (2, ["--parallel-method", "ddp"]),
    "fsdp": (2, ["--parallel-method", "fsdp"]),
    "hsdp": (4, ["--parallel-method", "hsdp", "--shard_size", "2"]),
}
ROWS = 8  # of a step
JOB = ["--max_steps", "6", "--learning_rate", "0.01", "--save_strategy", "no", "--precision", "fp32",
       "--lora_dropout", "0", "--warmup_steps", "2"]


def without(*flags):
    """JOB without these."""
    pairs = list(zip(JOB[::2], JOB[1::2]))
    return [word for flag, value in pairs if flag not in flags for word in (flag, value)]


def rows_for(ranks):
    """A step of ROWS rows on so many ranks, divided into micro-batches as drawn."""
    at_once = DRAW.choice([size for size in (1, 2, 4) if size * ranks <= ROWS])
    return ["--per_device_train_batch_size", str(at_once), "--gradient_accumulation_steps", str(ROWS // ranks // at_once)]


def drawn_for(method):
    """What changes no number."""
    words = ["--gradient_checkpointing", DRAW.choice(["true", "false"])]
    if method in ("fsdp", "hsdp"):
        words += DRAW.choice([[], ["--reshard_after_forward", "false"], ["--keep_gathered", "false"],
                              ["--wrapping_strategy", "by_block_group", "--blocks_per_unit", "2"]])
    return words


def methods_agree(name, verb, job, methods=tuple(METHODS), tolerance=1e-5):
    """Runs `job` under the methods, "none" first; the result of one process."""
    results = {}
    for method in methods:
        ranks, words = METHODS[method]
        options = rows_for(ranks) + drawn_for(method)
        results[method] = train(verb, WORK / f"{name}-{method}", *words, *options, *job, ranks=ranks)
        say(f"{name} {method}: {results[method]['losses'][0]:.4f} -> {results[method]['final_loss']:.4f} {' '.join(options)}")
        found = differ(results["none"]["losses"], results[method]["losses"])
        check(found <= tolerance, f"{name} {method}: losses differ by {found} from one process")
    first = results["none"]
    check(first["final_loss"] < 0.98 * first["losses"][0], f"{name}: the loss does not fall: {first['losses']}")
    return first


SCHEDULE = DRAW.choice([("cosine", {}), ("linear", {}), ("cosine_with_min_lr", {"min_lr": 1e-3}),
                        ("warmup_stable_decay", {"num_decay_steps": 3})])
AS_TRANSFORMERS = ["--train_dataloader_shuffle", "false", "--lr_scheduler_type", SCHEDULE[0], "--weight_decay", "0.3",
                   "--max_grad_norm", "0.7", *(["--lr_scheduler_kwargs", json.dumps(SCHEDULE[1])] if SCHEDULE[1] else [])]


def like_transformers(result, out):
    """The whole job again in transformers, on the same rows: losses and learning rates."""
    import torch
    import transformers

    kind, kwargs = SCHEDULE
    model = transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
    decays = set(transformers.Trainer.get_decay_parameter_names(None, model))
    groups = [{"params": [p for n, p in model.named_parameters() if (n in decays) == wanted], "weight_decay": decay}
              for wanted, decay in ((True, 0.3), (False, 0.0))]
    optimizer = torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.95), eps=1e-8)
    scheduler = transformers.get_scheduler(kind, optimizer, 2, 6, scheduler_specific_kwargs=kwargs)
    sequences = made.read_tokens(CHAT)
    logged = [line for line in lines_of(out) if "loss" in line]
    for step in range(6):
        losses = tokens = 0
        for ids, counts in sequences[step * ROWS:(step + 1) * ROWS]:
            labels = torch.tensor([[token if count else -100 for token, count in zip(ids, counts)]])
            logits = model(input_ids=torch.tensor([ids])).logits
            losses = losses + torch.nn.functional.cross_entropy(logits[0, :-1], labels[0, 1:], reduction="sum")
            tokens += int((labels[0, 1:] != -100).sum())
        (losses / tokens).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.7).item()
        for what, ours, theirs in (("loss", result["losses"][step], (losses / tokens).item()),
                                   ("grad_norm", logged[step]["grad_norm"], norm),
                                   ("learning_rate", logged[step]["learning_rate"], optimizer.param_groups[0]["lr"])):
            check(abs(ours - theirs) <= 2e-4 * abs(theirs) + 1e-12,
                  f"step {step + 1} of {kind}: {what} is {ours}, transformers has {theirs}")
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    say(f"six steps under {kind} are those of transformers")


def has_cards(out, name):
    """The model card is one for huggingface_hub, and says on what it was trained; the training card is beside it."""
    import huggingface_hub

    card = huggingface_hub.ModelCard.load(out / name / "README.md")
    check(card.data.base_model and card.data.library_name == ("peft" if name == "adapter" else "transformers"),
          f"the model card of {name} says {card.data}")
    result = json.loads((out / "result.json").read_text())
    page = (out / "training_card.md").read_text()
    for part in (str(result["trainable_parameters"]), "learning\\_rate", "| dataset | ", str(result["losses"][-1])[:6]):
        check(part in page, f"the training card has no {part}: {page}")


def tensors_of(folder):
    """Name, shape and dtype of each tensor: what a loader of such a folder goes by."""
    from safetensors import safe_open

    found = {}
    for path in pathlib.Path(folder).glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            found.update({name: (file.get_slice(name).get_shape(), file.get_slice(name).get_dtype()) for name in file.keys()})
    return found


def opened_by_transformers(result, out, name="model", tolerance=1e-5):
    """The model that was written has the evaluation's loss in transformers."""
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(out / name, dtype=torch.float32)
    theirs = made.mean_loss(model, made.read_tokens(EVALUATION))
    check(abs(theirs - result["evaluations"][-1]["loss"]) < tolerance * theirs,
          f"transformers has a loss of {theirs} where {result['evaluations'][-1]['loss']} was reported")
    transformers.AutoTokenizer.from_pretrained(out / name)
    check(tensors_of(out / name) == tensors_of(json.loads((out / "result.json").read_text())["configuration"]["model"]),
          "names, shapes or dtypes are not those of the base")
    has_cards(out, name)
    say("transformers opens the model and has the loss that was reported")


def opened_by_peft(result, out):
    """The adapter that was written has the evaluation's loss in PEFT, over the untouched base."""
    import peft
    import torch
    import transformers

    base = transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
    before = made.mean_loss(base, made.read_tokens(EVALUATION))
    model = peft.PeftModel.from_pretrained(base, out / "adapter").eval()
    theirs, ours = made.mean_loss(model, made.read_tokens(EVALUATION)), result["evaluations"][-1]["loss"]
    check(abs(theirs - ours) < 1e-5 * theirs, f"PEFT has a loss of {theirs} where {ours} was reported")
    check(abs(before - theirs) > 1e-2, "the adapter changes nothing")
    has_cards(out, "adapter")
    has_cards(out, "merged")
    merged = transformers.AutoModelForCausalLM.from_pretrained(out / "merged", dtype=torch.float32)
    theirs = made.mean_loss(merged, made.read_tokens(EVALUATION))
    check(abs(theirs - ours) < 1e-4 * theirs, f"the merged model has a loss of {theirs} where {ours} was reported")
    say("PEFT opens the adapter, transformers the merged model; both have the loss that was reported")


def killed_and_resumed():
    """kill -9 after a checkpoint, then the same command: the losses of a run that never stopped."""
    # Dropout, so that random numbers must come back too, and rows that do not fill the last step of an epoch.
    job = ["--data", CHAT, "--tuner", "lora", "--lora_dropout", "0.2", "--num_train_epochs", "2", "--save_steps", "3",
           "--save_total_limit", "2", "--per_device_train_batch_size", "3", "--gradient_accumulation_steps", "2",
           "--learning_rate", "0.01", "--parallel-method", "fsdp", "--val_dataset", EVALUATION, "--eval_steps", "4"]
    whole = train("sft", WORK / "never-stopped", *job, ranks=2)
    out = WORK / "killed"
    process = subprocess.Popen([TRAIN, "sft", "--model", MODEL, "--output_dir", out, "--ranks", "2", *map(str, job)],
                               stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    while process.poll() is None and not list(out.glob("checkpoints/step-*/index.json")):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    saved = sorted(path.parent.name for path in out.glob("checkpoints/step-*/index.json"))
    check(saved and not (out / "result.json").exists(), f"the run was not killed in the middle: {saved}")
    resumed = train("sft", out, *job, ranks=2, says="resuming after step")
    check(resumed["losses"] == whole["losses"], f"after a kill at {saved} the losses are {resumed['losses']}, not "
          f"{whole['losses']}")
    check(whole["resumed_after"] == 0 and f"step-{resumed['resumed_after']:06}" in saved,
          f"{resumed['resumed_after']} is no step of {saved}")
    check(resumed["evaluations"] == whole["evaluations"], "after a kill the evaluations differ")
    say(f"killed after {saved[-1]}, resumed to the same {len(whole['losses'])} losses")
    run("sft", "--model", MODEL, "--output_dir", out, "--ranks", "2", *job, "--lora_rank", "4", expect=1,
        says='lora_rank is "4", was "8"')


def experts_over_ranks():
    """Experts on two ranks for three steps, then on one process: the losses of one process, and transformers' model."""
    folder = made.make_experts(WORK / "experts", MODEL)
    job = ["--model", folder, "--data", CHAT, "--tuner", "none", *without("--save_strategy", "--max_steps"),
           "--lr_scheduler_type", "constant", "--val_dataset", EVALUATION, "--eval_steps", "6"]
    out = WORK / "spread"
    spread = [*job, "--parallel-method", "fsdp", "--expert_parallel_size", "2", *rows_for(2)]
    train("sft", out, *spread, "--max_steps", "3", "--eval_strategy", "no", ranks=2)
    result = train("sft", out, *job, *rows_for(1), "--max_steps", "6", says="resuming after step 3")
    alone = train("sft", WORK / "alone", *job, *rows_for(1), "--max_steps", "6", "--save_strategy", "no")
    found = differ(alone["losses"], result["losses"])
    check(found < 2e-5, f"experts over two ranks, resumed on one process: losses differ by {found}")
    # An adapted one: the last step of six has 5 rows, so that a rank has no tokens of its own in its last micro-batch.
    job = ["--model", folder, "--data", CHAT, *LORA, *JOB, "--merge_lora", "true", "--val_dataset", EVALUATION]
    adapted = train("sft", WORK / "spread-lora", *job, "--per_device_train_batch_size", "1", "--gradient_accumulation_steps",
                    "4", "--parallel-method", DRAW.choice(["fsdp", "ddp"]), "--expert_parallel_size", "2", ranks=2)
    lonely = train("sft", WORK / "alone-lora", *job, *rows_for(1))
    found = differ(lonely["losses"], adapted["losses"])
    check(found < 2e-5, f"adapters beside experts over two ranks: losses differ by {found}")
    opened_by_transformers(result, out)
    opened_by_transformers(adapted, WORK / "spread-lora", "merged", 1e-4)
    refuse = ["--data", CHAT, "--output_dir", WORK / "refused", "--expert_parallel_size", "2"]
    run("sft", "--model", MODEL, *refuse, expect=2, says="has no experts; leave it out")
    run("sft", "--model", folder, *refuse[:-1], "3", expect=2, says="has 4 experts in a layer, which cannot be divided by it")
    say(f"experts over two ranks, resumed on one process: the losses of one process, {found:.1e}")


def labelled_answers():
    """KTO: the same under methods, whatever the micro-batches: its distance is of the step."""
    job = ["--data", LABELS, "--tuner", "lora", "--desirable_weight", "1.5", "--undesirable_weight", "1.5",
           "--beta", "0.3", "--val_dataset", LABELS, *JOB]
    kto = methods_agree("kto", "kto", job, ("none", DRAW.choice(["ddp", "fsdp"])))
    check(abs(kto["losses"][0] - 0.75) < 1e-5, f"kto begins with {kto['losses'][0]}, not half of the weight")
    found = kto["evaluations"][-1]["metrics"]
    check(found["rewards/chosen"] > found["rewards/rejected"], f"good answers are worth no more than bad ones: {found}")
    run("dpo", "--model", MODEL, "--data", LABELS, "--rlhf_type", "kto", expect=2, says="use sealift-train kto")
    run("kto", "--model", MODEL, "--data", PAIRS, "--output_dir", WORK / "refused", expect=2, says="(labelled)")


def rewards():
    """A score trained beside adapters: PEFT and transformers open it and have the loss that was reported."""
    import peft
    import torch
    import transformers

    job = ["--data", PAIRS, *LORA, "--merge_lora", "true", "--center_rewards_coefficient", "0.01", "--val_dataset", PAIRS, *JOB]
    scored = methods_agree("reward", "reward", job, ("none", "ddp", "fsdp"))
    out, ours = WORK / "reward-fsdp", scored["evaluations"][-1]
    of_scores = transformers.AutoModelForSequenceClassification
    base = of_scores.from_pretrained(MODEL, dtype=torch.float32, num_labels=1)
    models = {"adapter": peft.PeftModel.from_pretrained(base, out / "adapter").eval(),
              "merged": of_scores.from_pretrained(out / "merged", dtype=torch.float32).eval()}
    for name, model in models.items():
        loss, accuracy = made.reward_loss(model, made.read_tokens(PAIRS), 0.01)
        check(abs(loss - ours["loss"]) < 1e-4 * loss, f"{name}: transformers has {loss}, {ours['loss']} was reported")
        check(abs(accuracy - ours["metrics"]["accuracy"]) < 1e-9, f"{name}: {accuracy} of the pairs, reported {ours}")
    run("sft", "--model", out / "merged", "--data", CHAT, "--output_dir", WORK / "refused", expect=2, says="is a reward model")
    say("PEFT and transformers score as was reported")


def goes_on_from_an_adapter():
    """A saved adapter is where training begins; what the reference is, is said; samples are transformers' answers."""
    import torch
    import transformers

    adapter, merged = WORK / "lora-none/adapter", WORK / "lora-none/merged"
    ended = json.loads((WORK / "lora-none/result.json").read_text())["evaluations"][-1]["loss"]
    still = [*without("--learning_rate", "--max_steps", "--warmup_steps"), "--learning_rate", "1e-12", "--max_steps", "1",
             "--adapters", adapter]
    out = WORK / "goes-on"
    result = train("sft", out, "--data", CHAT, "--val_dataset", EVALUATION, *still, "--sample_prompts", "2",
                   "--sample_tokens", "6", "--parallel-method", "fsdp", *rows_for(2), ranks=2)
    found = result["evaluations"][-1]["loss"]
    check(abs(found - ended) < 1e-5 * ended, f"with the adapter the loss is {found}, it ended with {ended}")
    model = transformers.AutoModelForCausalLM.from_pretrained(merged, dtype=torch.float32)
    samples = [json.loads(line) for line in (out / "samples.jsonl").read_text().splitlines()]
    check(len(samples) == 2, f"samples are {samples}")
    for sample in samples:
        ids = torch.tensor([sample["prompt"]])
        theirs = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=6)
        check(theirs[0, ids.shape[1]:].tolist() == sample["answer"], f"transformers answers {theirs[0].tolist()}: {sample}")
        check("<|im_start|>assistant" in sample["prompt_text"] and "text" in sample, f"a sample without text: {sample}")
    first = {}
    for name, more in (("base", []), ("model", ["--ref_model", MODEL]), ("adapter", ["--ref_adapters", adapter])):
        first[name] = train("dpo", WORK / f"ref-{name}", "--data", PAIRS, *still, *rows_for(1), *more)["losses"][0]
    check(abs(first["adapter"] - 0.693147) < 1e-5, f"with itself as the reference dpo begins with {first['adapter']}")
    check(abs(first["base"] - first["adapter"]) > 1e-4, "the adapter is no part of the difference from the base")
    check(abs(first["base"] - first["model"]) < 1e-5, f"the base as ref_model is another reference: {first}")
    say("training goes on from an adapter; samples are transformers' answers; three references")


def stops_early():
    """A rate that is far too high: evaluation gets worse, the run stops, and the best model is what is written."""
    out = WORK / "early"
    result = train("sft", out, "--data", CHAT, "--tuner", "none", "--val_dataset", EVALUATION, "--eval_steps", "1",
                   "--learning_rate", "0.3", "--lr_scheduler_type", "constant", "--max_grad_norm", "0", "--max_steps", "30",
                   "--early_stop_interval", "2", "--load_best_model_at_end", "true", *rows_for(1))
    losses = [each["loss"] for each in result["evaluations"]]
    check(result["stopped_early"] and result["steps"] < 30, "the run did not stop early")
    check(losses.index(min(losses)) == len(losses) - 3, f"it stopped after {losses}, which is not two without a better one")
    opened_by_transformers({"evaluations": [{"loss": min(losses)}]}, out)
    say(f"stopped after step {result['steps']}, the model of step {result['best']['step']} was written")


def best_of_a_resumed_run():
    """Killed between the save of the best model and the next checkpoint: what counts at the end is what was seen again."""
    out = WORK / "best"
    best, checkpoints = out / "best", out / "checkpoints"
    job = ["--data", CHAT, "--tuner", "lora", "--val_dataset", EVALUATION, "--learning_rate", "0.01",
           "--lr_scheduler_type", "constant", "--eval_steps", "2", "--save_steps", "3", "--load_best_model_at_end", "true",
           *rows_for(1)]
    train("sft", out, *job, "--max_steps", "3")
    shutil.copytree(best, WORK / "best-of-3")
    train("sft", out, *job, "--max_steps", "4")
    # As a kill after the evaluation of step 4 leaves it: a better one, and the best that the last checkpoint knows.
    shutil.rmtree(checkpoints / "step-000004")
    shutil.copytree(WORK / "best-of-3", best, dirs_exist_ok=True)
    shutil.copytree(best / "step-000004", best / "step-000007")
    check(len(list(best.iterdir())) == 3, f"there are {list(best.iterdir())}")
    result = train("sft", out, *job, "--max_steps", "5", says="resuming after step 3")
    kept = [path.name for path in best.iterdir()]
    check(kept == [f"step-{result['best']['step']:06}"], f"kept as the best are {kept}, the best is {result['best']}")
    again = ["sft", "--model", MODEL, "--output_dir", out, *job, "--max_steps", "6"]
    run(*again, "--resume_from_checkpoint", checkpoints / "step-000003", expect=1, says="and this run begins after step 3")
    shutil.rmtree(best)
    run(*again, expect=1, says="go on without load_best_model_at_end")
    say(f"resumed, the best is that of step {result['best']['step']}")


def words_of_swift():
    """An args.json of ms-swift, its flags with underscores and lists with spaces; what cannot be is refused by name."""
    args = {"model": str(MODEL), "dataset": [str(CHAT)], "train_type": "lora", "torch_dtype": "float32", "lora_rank": 4,
            "lora_alpha": 8, "lora_dropout": 0.0, "target_modules": ["all-linear"], "per_device_train_batch_size": 4,
            "gradient_accumulation_steps": 2, "learning_rate": 1e-2, "num_train_epochs": 1.0, "max_steps": -1,
            "lr_scheduler_type": "cosine", "warmup_ratio": 0.05, "weight_decay": 0.1, "bf16": False, "fp16": False,
            "gradient_checkpointing": True, "save_steps": 500.0, "eval_strategy": "no", "val_dataset": [], "deepspeed": None,
            "report_to": ["tensorboard"], "dataloader_num_workers": 4, "use_galore": False, "galore_rank": 128, "seed": 42}
    (WORK / "args.json").write_text(json.dumps(args))
    out = WORK / "swift"
    done = run("sft", "--config", WORK / "args.json", "--output_dir", out, "--max_steps", "2", "--target_modules", "q_proj",
               "v_proj", "--report_to", "none", says="ignored, since they change no number here: ")
    result = json.loads((out / "result.json").read_text())
    check(result["steps"] == 2 and result["configuration"]["target_modules"] == "q_proj,v_proj", "the flags did not count")
    check(" after 2 steps; adapter in " in done.stdout, "no summary on stdout")
    plan = json.loads(run("sft", "--config", WORK / "args.json", "--dry_run", "true", "--ranks", "2").stdout)
    check(plan["rows_of_a_step"] == 16 and plan["steps"] == 3 and plan["warmup_steps"] == 1, f"the plan is {plan}")
    check(plan["trainable_parameters"] < plan["parameters"] / 4 and len(plan["learning_rates"]) == 3, f"the plan is {plan}")
    refuse = ["sft", "--config", WORK / "args.json", "--output_dir", WORK / "refused"]
    run(*refuse, "--deepspeed", "zero3", expect=2, says="deepspeed is 'zero3'; here it can only be nothing")
    run(*refuse, "--lora_rang", "3", expect=2, says="unknown key 'lora_rang'")
    run(*refuse, "--dataset", PAIRS, expect=2, says="this verb needs prompts with answers (chat)")
    run(*refuse, "--system", "Be brief.", expect=2, says="system is of JSON lines, and dataset is the token file")
    run(*refuse, "--max_length", "8", expect=2, says="more than max_length, 8; tokenize with --max-length 8")
    say("ms-swift's args.json and flags are taken over, or refused by name")


def tied_head():
    """An embedding that is trained whole beside adapters and is the head too: PEFT, transformers and a later run agree."""
    import peft
    import torch
    import transformers

    tied = made.make_model(WORK / "tied", tie_word_embeddings=True)
    job = ["--model", tied, "--data", CHAT, *LORA, "--modules_to_save", "embed_tokens", "--merge_lora", "true", *JOB]
    ranks, words = METHODS[DRAW.choice(["ddp", "fsdp", "hsdp"])]
    out = WORK / "tied-lora"
    ours = train("sft", out, *job, "--val_dataset", EVALUATION, *words, *rows_for(ranks), ranks=ranks)["evaluations"][-1]["loss"]
    base = transformers.AutoModelForCausalLM.from_pretrained(tied, dtype=torch.float32)
    models = {"adapter": peft.PeftModel.from_pretrained(base, out / "adapter").eval(),
              "merged": transformers.AutoModelForCausalLM.from_pretrained(out / "merged", dtype=torch.float32)}
    for name, model in models.items():
        theirs = made.mean_loss(model, made.read_tokens(EVALUATION))
        check(abs(theirs - ours) < 1e-4 * theirs, f"{name}: a loss of {theirs} where {ours} was reported")
    for ties in (True, False):  # what PEFT makes
        base = transformers.AutoModelForCausalLM.from_pretrained(tied, dtype=torch.float32)
        config = peft.LoraConfig(r=4, target_modules=["q_proj"], modules_to_save=["embed_tokens"], ensure_weight_tying=ties,
                                 task_type="CAUSAL_LM")
        model = peft.get_peft_model(base, config)
        torch.manual_seed(5)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter) * parameter.requires_grad)
        model.eval().save_pretrained(WORK / f"tied-{ties}")
        begin = ["--model", tied, "--data", CHAT, "--tuner", "lora", "--adapters", WORK / f"tied-{ties}", "--learning_rate",
                 "1e-12", "--max_steps", "1", "--save_strategy", "no", "--val_dataset", EVALUATION, *rows_for(1)]
        if not ties:
            run("sft", "--output_dir", WORK / "refused", *begin, expect=1, says="PEFT takes the base's head")
            continue
        theirs = made.mean_loss(model, made.read_tokens(EVALUATION))
        found = train("sft", WORK / "tied-goes-on", *begin)["evaluations"][-1]["loss"]
        check(abs(theirs - found) < 1e-4 * theirs, f"PEFT has a loss of {theirs}, a run that goes on from it {found}")
    say("an embedding that is the head too is one for PEFT, transformers and a later run")


def evaluation_of_nan():
    """A step that makes the model's loss NaN: the checkpoint after it is whole, NaN is no best loss, and the run says why it ends."""
    out = WORK / "nan"
    job = ["--data", CHAT, "--tuner", "none", "--learning_rate", "1e30", "--lr_scheduler_type", "constant", "--max_grad_norm",
           "0", "--weight_decay", "0", "--val_dataset", EVALUATION, "--eval_steps", "1", "--save_steps", "1",
           "--load_best_model_at_end", "true", *rows_for(1)]
    result = train("sft", out, *job, "--max_steps", "1", says="no evaluation loss was finite")
    check(result["evaluations"] == [{"step": 1, "loss": "nan"}] and "best" not in result, f"the result is {result}")
    check(lines_of(out)[-1]["eval_loss"] == "nan", f"the log is {lines_of(out)}")
    again = train("sft", out, *job, "--max_steps", "1", says="resuming after step 1")
    check(again["evaluations"] == result["evaluations"], f"resumed, the evaluations are {again['evaluations']}")
    run("sft", "--model", MODEL, "--output_dir", out, *job, "--max_steps", "2", expect=1, says="try a lower learning_rate")
    say("an evaluation of NaN is saved, resumed from, and never the best")


def not_finite_and_on():
    """A rate that makes the second step's loss NaN: skip ends after ten such steps in a row, rollback after three."""
    job = ["--data", CHAT, "--tuner", "none", "--learning_rate", "1e30", "--lr_scheduler_type", "constant", "--max_grad_norm",
           "0", "--weight_decay", "0", "--save_steps", "1", "--max_steps", "20", *rows_for(2), "--parallel-method", "fsdp"]
    run("sft", "--model", MODEL, "--output_dir", WORK / "skipped", "--ranks", "2", *job, "--on_nonfinite", "skip", expect=1,
        says="the 10th such step in a row")
    run("sft", "--model", MODEL, "--output_dir", WORK / "rolled", "--ranks", "2", *job, "--on_nonfinite", "rollback", expect=1,
        says="it went back to step 1 3 times already")
    say("steps that are not finite are left out, or the run goes back, and neither without end")


def rows_that_end_unevenly():
    """45 examples for steps of 6 rows on three ranks: some have rows at the end, others none; the losses of one process."""
    job = ["--data", CHAT, "--tuner", "none", *without("--max_steps"), "--num_train_epochs", "1"]
    at_once = ["--per_device_train_batch_size", "1", "--gradient_accumulation_steps"]
    alone = train("sft", WORK / "even", *job, *at_once, "6")
    three = train("sft", WORK / "uneven", *job, *at_once, "2", "--parallel-method", "ddp", ranks=3)
    found = differ(alone["losses"], three["losses"])
    check(len(three["losses"]) == 8 and found < 1e-5, f"{len(three['losses'])} losses, which differ by {found}")
    say("rows that end unevenly have the losses of one process")


def told_to_end():
    """SIGTERM in the middle: a checkpoint and no model; the same command ends with the losses of a run that never stopped."""
    out = WORK / "told"
    job = ["--data", CHAT, "--tuner", "lora", "--learning_rate", "0.01", "--num_train_epochs", "8", "--parallel-method", "fsdp",
           *rows_for(2)]
    whole = train("sft", WORK / "not-told", *job, ranks=2)
    words = [TRAIN, "sft", "--model", MODEL, "--output_dir", out, "--ranks", "2", *job]
    process = subprocess.Popen([str(word) for word in words], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               env=ENVIRONMENT)
    while process.poll() is None and not ((out / "log.jsonl").exists() and (out / "log.jsonl").read_text().count("\n") > 3):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    check(process.wait(60) == 143, f"it ended with {process.returncode}")
    told = json.loads((out / "result.json").read_text())
    check(not told["finished"] and not (out / "adapter").exists() and "the same command goes on" in told["saved"], f"{told}")
    resumed = train("sft", out, *job, ranks=2, says=f"resuming after step {told['steps']}")
    check(resumed["finished"] and resumed["losses"] == whole["losses"], "the losses are not those of a run that never stopped")
    say(f"told to end after step {told['steps']}, the same command goes on bit for bit")


def ranks_of_other_jobs():
    """Ranks whose hosts have other settings or another file of data are told so, and train nothing."""
    other = WORK / "other.jsonl"
    made.write_lines(other, made.chat_lines(45, 77))
    other = tokenize(other, WORK / "other.tokens")
    job = ["--model", MODEL, "--tuner", "none", "--parallel-method", "ddp", "--max_steps", "2", "--save_strategy", "no"]
    for theirs, says in ((["--data", CHAT, "--learning_rate", "0.5"], "learning_rate is '0.5', on rank 0 ''"),
                         (["--data", other], "dataset is '"),
                         (["--data", CHAT, "--eval_steps", "7"], "eval_steps is '7', on rank 0 '500'")):
        ranks = []
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        for rank, words in enumerate((["--data", CHAT], theirs)):
            place = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": port}
            words = [TRAIN, "sft", "--output_dir", WORK / f"other-{rank}", *job, *words]
            ranks.append(subprocess.Popen([str(word) for word in words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                          text=True, env={**ENVIRONMENT, **{key: str(value) for key, value in place.items()}}))
        said = [rank.communicate(timeout=200)[1] for rank in ranks]
        check(all(rank.returncode == 1 for rank in ranks), f"ranks of other jobs ended with {said}")
        check(all("rank 1 has another job than rank 0: " + says in text for text in said), f"they said {said}")
    say("ranks with other settings or data than rank 0's are refused by name")


def another_tokenizer():
    other = WORK / "other"
    made.make_model(other, seed=9)
    text = (other / "tokenizer.json").read_text()
    (other / "tokenizer.json").write_text(text + "\n")
    run("sft", "--model", other, "--data", CHAT, "--output_dir", WORK / "refused", expect=2, says="tokenize the data with this model")


FAILED = []


def part(what, *arguments, **more):
    """Runs one part; another that fails must not hide what the rest does."""
    try:
        return what(*arguments, **more)
    except (SystemExit, OSError, KeyError, ImportError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        FAILED.append(f"{what.__name__}: {error}")
        say(f"{what.__name__}: {type(error).__name__} {error}")
        return None


def whole_models():
    full = methods_agree("full", "sft", ["--data", CHAT, "--tuner", "none", *AS_TRANSFORMERS, *EVALUATES])
    like_transformers(full, WORK / "full-none")
    opened_by_transformers(full, WORK / "full-hsdp")


LORA = ["--tuner", "lora", "--lora_rank", DRAW.choice(["4", "7"]), "--use_rslora", DRAW.choice(["true", "false"]),
        "--use_dora", DRAW.choice(["true", "false"]),
        *DRAW.choice([[], ["--target_regex", r"model\.layers\.\d+\.self_attn\.[qv]_proj"]])]


def adapters():
    adapted = methods_agree("lora", "sft", ["--data", CHAT, *LORA, *EVALUATES, "--packing", "true", "--max_length", "128",
                                            "--merge_lora", "true", "--modules_to_save", "lm_head", "embed_tokens"],
                            ("none", DRAW.choice(["ddp", "hsdp"]), "fsdp"))
    opened_by_peft(adapted, WORK / "lora-fsdp")


def adapters_over_four_bits():
    quantized = methods_agree("qlora", "sft", ["--data", CHAT, "--tuner", "qlora", *JOB],
                              ("none", DRAW.choice(["ddp", "fsdp"])))
    check(quantized["trainable_parameters"] < quantized["parameters"] / 4, "qlora trains the whole model")


def preferences():
    pairs = methods_agree("dpo", "dpo", ["--data", PAIRS, "--tuner", "lora", "--rlhf_type", "dpo", "--beta", "0.2", *JOB],
                          ("none", DRAW.choice(["ddp", "fsdp"])))
    check(abs(pairs["losses"][0] - 0.693147) < 1e-5, f"dpo begins with {pairs['losses'][0]}, not log 2")
    logged = lines_of(WORK / "dpo-none")
    check(logged[-1]["rewards/margins"] > logged[0]["rewards/margins"], f"the margin does not grow: {logged}")


def text():
    """JSON lines are tokenized by the verb itself."""
    methods_agree("pretrain", "pretrain", ["--data", WORK / "text.jsonl", "--max_length", "64", "--truncation_strategy", "split", *JOB],
                  ("none", DRAW.choice(["ddp", "fsdp"])))


def several_token_files():
    """They are the file of all their lines."""
    lines = made.chat_lines(45, 1)
    halves = []
    for name, part_of in (("first", lines[:20]), ("second", lines[20:])):
        made.write_lines(WORK / f"{name}.jsonl", part_of)
        halves.append(tokenize(WORK / f"{name}.jsonl", WORK / f"{name}.tokens"))
    job = [*LORA, *JOB, *rows_for(1)]
    whole = train("sft", WORK / "one-file", "--data", CHAT, *job)
    check(train("sft", WORK / "two-files", "--data", *halves, *job)["losses"] == whole["losses"], "two files train otherwise")
    run("sft", "--model", MODEL, "--data", halves[0], PAIRS, "--output_dir", WORK / "unlike", *job, expect=2,
        says="differ in their kind: chat and preference")
    run("sft", "--model", MODEL, "--data", halves[0], WORK / "second.jsonl", "--output_dir", WORK / "unlike", *job, expect=2,
        says="names a token file beside other files; give token files alone")


def half_precision():
    for precision, ranks in (("bf16", 1), ("fp16", 2)):
        half = train("sft", WORK / precision, "--data", CHAT, *LORA, *without("--precision"), "--precision", precision,
                     "--parallel-method", "auto", *rows_for(ranks), ranks=ranks, says="parallel_method auto: ")
        check(half["parallel_method"] == ("none" if ranks == 1 else "ddp"), f"auto chose {half['parallel_method']}")
        check(half["final_loss"] < half["losses"][0] and half["skipped_steps"] <= 3, f"{precision}: {half['losses']}")
        say(f"{precision} learns: {half['losses'][0]:.4f} -> {half['final_loss']:.4f}")


with tempfile.TemporaryDirectory() as folder:
    WORK = pathlib.Path(folder)
    MODEL = made.make_model(WORK / "model")
    for name, lines in (("chat", made.chat_lines(45, 1)), ("evaluation", made.chat_lines(7, 2)),
                        ("pairs", made.pair_lines(20, 3)), ("labels", made.label_lines(21, 5)),
                        ("text", made.text_lines(30, 4))):
        made.write_lines(WORK / f"{name}.jsonl", lines)
    CHAT, EVALUATION, PAIRS, LABELS = (tokenize(WORK / f"{name}.jsonl", WORK / name)
                                       for name in ("chat", "evaluation", "pairs", "labels"))
    EVALUATES = ["--val_dataset", EVALUATION, "--eval_steps", "6", *JOB]
    say("made a Qwen2, its tokenizer and data")
    parts = (whole_models, adapters, goes_on_from_an_adapter, adapters_over_four_bits, preferences, labelled_answers, rewards,
             text, killed_and_resumed, experts_over_ranks, stops_early, best_of_a_resumed_run, tied_head, evaluation_of_nan,
             not_finite_and_on, rows_that_end_unevenly, told_to_end, ranks_of_other_jobs, words_of_swift, another_tokenizer,
             several_token_files, half_precision)
    for each in parts:
        if len(sys.argv) <= 4 or each.__name__ in sys.argv[4:]:
            part(each)
if FAILED:
    sys.exit("FAILED:\n  " + "\n  ".join(FAILED))
say("all good")
