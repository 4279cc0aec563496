# SPDX-License-Identifier: Apache-2.0
# sealift-verify's training and Python parts as a site runs them: clean runs pass.
#   a golden run of a made Qwen, whole and by LoRA, and of the verification job, is recorded and met: alone and on ranks
#   the same recorded by two ranks, ddp and fsdp: met to the bit by two, by one and by four; a job of ranks is refused
#   a golden run of conversations is met by two ranks, each of which makes its own tokens
#   swift sft, where this Python has ms-swift, gives the same golden run, whole and by LoRA; a wrong one is named
#   at level full the methods agree, accumulation and recompute too, and jobs resume, also in another world
# usage: training_test.py SEALIFT_VERIFY SEALIFT_TRAIN REPOSITORY [PART…]      PART: a function's name; without: all
import importlib.util
import json
import shutil
import subprocess

from training_site import GOLDEN, JOBS, PREFIX, RANKS, SWIFT, WORK, check, record, run, run_parts, say, verify


def clean():
    for arguments in ([], ["--ranks", "2"]):
        checks = run("clean" + "".join(arguments), *arguments)
        check(set(checks) == {f"training.golden.{name}" for name in JOBS}, checks.keys())
        check(all(each["outcome"] == "PASS" for each in checks.values()), "a clean run does not pass")
        check("2 ranks here" in checks["training.golden.qwen"]["reason"]["en"] or not arguments, "ranks were not run")


def python_side():
    for arguments in ([], ["--ranks", "2"]):
        checks = run("python" + "".join(arguments), "--level", "full", *arguments, only="python", expect=0)
        found = {name: each["outcome"] for name, each in checks.items()}
        check(found["python.golden.qwen"] == found["python.adapter.qwen_lora"] == "PASS", found)
        check(all(found[name] == "NOT RUN" for name in found.keys() - {"python.golden.qwen", "python.adapter.qwen_lora"}),
              found)
    recorded = (GOLDEN / "qwen.json").read_text()
    golden = json.loads(recorded)
    golden["losses"][3] = repr(float(golden["losses"][3]) * 1.001)
    (GOLDEN / "qwen.json").write_text(json.dumps(golden))
    found = run("pythonwrong", "--level", "full", only="python.golden.qwen", expect=1)["python.golden.qwen"]
    check("part in step 4" in found["reason"]["en"] and "DDP" in found["reason"]["en"], found)
    (GOLDEN / "qwen.json").write_text(recorded)


def lines():
    """Conversations: the ranks of a check have a folder each, and so make tokens each."""
    others = WORK / "others"
    GOLDEN.rename(others)
    GOLDEN.mkdir()
    shutil.copy(WORK / "chat.jsonl", PREFIX / "data")
    record("chat")
    found = run("lines", "--ranks", "2")["training.golden.chat"]
    check(found["outcome"] == "PASS" and "2 ranks here and the golden run agree" in found["reason"]["en"], found)
    shutil.rmtree(GOLDEN)
    others.rename(GOLDEN)


def swift_side():
    """Conversations, which swift reads as we do; an adapter to begin from, since first values would be each one's own."""
    if importlib.util.find_spec("swift") is None:
        return say("NOT RUN: this Python has no ms-swift")
    shutil.copy(WORK / "chat.jsonl", PREFIX / "data")
    subprocess.run([PREFIX / "bin/sealift-train", "sft", "--model", PREFIX / "models/tiny", "--dataset",
                    PREFIX / "data/chat.tokens", "--lora-dropout", "0", "--max-steps", "1", "--learning-rate", "0.01",
                    "--per-device-train-batch-size", "8", "--gradient-accumulation-steps", "1", "--save-strategy", "no",
                    "--output-dir", WORK / "first"], check=True, capture_output=True)
    shutil.copytree(WORK / "first/adapter", PREFIX / "models/first")
    others = WORK / "others"
    GOLDEN.rename(others)
    GOLDEN.mkdir()
    for name in SWIFT:
        record(name)
    checks = run("swift", "--level", "full", only="python")
    found = {name: each["outcome"] for name, each in checks.items()}
    passes = {"python.swift.chat", "python.swift.chat_lora", "python.golden.chat", "python.adapter.chat_lora"}
    check({name for name, outcome in found.items() if outcome == "PASS"} == passes, found)
    check(set(found.values()) == {"PASS", "NOT RUN"}, found)
    found = run("swift2", "--level", "full", "--ranks", "2", only="python.swift.chat_lora")["python.swift.chat_lora"]
    check(found["outcome"] == "PASS" and found["reason"]["en"].startswith("swift sft on 2 ranks"), found)
    golden = json.loads((GOLDEN / "chat.json").read_text())
    golden["losses"][3] = repr(float(golden["losses"][3]) * 1.001)
    (GOLDEN / "chat.json").write_text(json.dumps(golden))
    found = run("swiftwrong", "--level", "full", only="python.swift.chat", expect=1)["python.swift.chat"]
    check("swift sft on 1 ranks and the golden run part in step 4" in found["reason"]["en"], found)
    file = PREFIX / "models/tiny/config.json"
    good = file.read_text()
    file.write_text("{ torn")
    found = run("swifttorn", "--level", "full", only="python.swift.chat_lora", expect=1)["python.swift.chat_lora"]
    check(found["outcome"] == "FAIL" and found["at_fault"][0].startswith("rank 0 on"), found)
    file.write_text(good)
    shutil.rmtree(GOLDEN)
    others.rename(GOLDEN)


def full():
    names = ["one_process", "ddp", "fsdp", "hsdp", "accumulation", "recompute", "resume", "other_world", "site_method"]
    site = WORK / "site.toml"
    site.write_text('name = "here"\n[training]\nmethod = "fsdp"\nsettings = { wrapping_strategy = "by_block_group", '
                    "blocks_per_unit = 2 }\n")
    only = [word for name in names for word in ("--only", f"training.{name}")][1:]
    checks = run("full", *only[1:], "--site", site, "--level", "full", only=only[0])
    check(len(checks) == len(names) and all(each["outcome"] == "PASS" for each in checks.values()), "full does not pass")
    checks = run("full2", "--ranks", "2", "--only", "training.other_world", "--level", "full", only="training.resume")
    check(len(checks) == 2 and all(each["outcome"] == "PASS" for each in checks.values()), "full on ranks does not pass")


def ranks():
    """Golden runs of several ranks: their own folder, so that the other parts stay as quick as they are."""
    others = WORK / "others"
    GOLDEN.rename(others)
    GOLDEN.mkdir()
    for name in RANKS:
        record(name)
    for arguments in ([], ["--ranks", "2"], ["--ranks", "4"]):
        checks = run("ranks" + "".join(arguments), *arguments)
        check(set(checks) == {f"training.golden.{name}" for name in RANKS}, checks.keys())
        for each in checks.values():
            facts = dict((fact["name"], fact["value"]) for fact in each["facts"])
            check(each["outcome"] == "PASS" and facts["final weights"] == "the same bits", each)
            check(facts["held to"].startswith("the bit") and "2 ranks here as recorded" in each["reason"]["en"], each)
            check(("4 ranks here" in each["reason"]["en"]) == ("4" in arguments), each["reason"])
    golden = json.loads((GOLDEN / "qwen_fsdp.json").read_text())
    last = float(golden["losses"][-1])
    golden["losses"][-1] = repr(last * (1 + 3e-7))  # within what is stated: only the same crew can tell
    (GOLDEN / "qwen_fsdp.json").write_text(json.dumps(golden))
    found = run("ranksbit", only="training.golden.qwen_fsdp", expect=1)["training.golden.qwen_fsdp"]
    check(found["at_fault"] == ["the ranks together, as recorded"] and "part in step 5" in found["reason"]["en"], found)
    job = WORK / "dropout.toml"
    job.write_text((WORK / "lora_ddp.toml").read_text().replace("lora_dropout = 0", "lora_dropout = 0.5"))
    said = verify("golden", job, "--prefix", PREFIX, "--out", WORK / "dropout.json", expect=2).stderr
    check("depends on its number of ranks" in said, said)
    shutil.rmtree(GOLDEN)
    others.rename(GOLDEN)


run_parts([clean, ranks, lines, python_side, swift_side, full])
