# SPDX-License-Identifier: Apache-2.0
# Settings of a job that say how its JSON lines are read, in whole runs: the tokens that a run made by them.
#   data_format: whose keys a message has; training_key: the key that masks; dataset_dir: names of LLaMA-Factory's folder
#   literal_markers: <image> and its like as words; split_dataset_ratio: rows that are evaluated and not learned
# usage: data_settings_test.py SEALIFT_TRAIN [PART...]      with the Python of torch; PYTHONPATH: the peers
import json

from short_runs import (FIRST, MODEL, ONE_STEP, SECOND, TWO_ANSWERS, WORK, chat, check, learned, llama_factory_data, made,
                        run, run_parts, trained)


def data_format_says_whose_keys_a_message_has():
    data = WORK / "weights.jsonl"
    made.write_lines(data, [TWO_ANSWERS] * 2)
    for name, runs in (("any", [SECOND]), ("mistral-finetune", [SECOND]), ("trl", [FIRST, SECOND]),
                       ("ms-swift", [FIRST, SECOND])):
        sequences, said = trained(f"format-{name}", "--model", MODEL, "--data", data, "--data_format", name, *ONE_STEP)
        check(learned(sequences) == [runs] * 2, f"data_format {name}: learned {learned(sequences)}")
        ignored = '"ignored_weights": {"weight": 2}' in said
        check(ignored == (name in ("trl", "ms-swift")), f"data_format {name} says of the ignored key: {said}")
    run("sft", "--model", MODEL, "--data", data, "--data_format", "nobodys", expect=2)


def training_key_names_the_key_that_masks():
    data = WORK / "keys.jsonl"
    line = json.loads(json.dumps(TWO_ANSWERS))
    del line["messages"][1]["weight"]
    made.write_lines(data, [line] * 2)
    sequences, _ = trained("key", "--model", MODEL, "--data", data, "--training_key", "learn", *ONE_STEP)
    check(learned(sequences) == [[SECOND]] * 2, f"training_key: learned {learned(sequences)}")
    sequences, said = trained("no-key", "--model", MODEL, "--data", data, *ONE_STEP)
    check(learned(sequences) == [[FIRST, SECOND]] * 2, f"no training_key: learned {learned(sequences)}")
    check("learn" in said, f"a key of a message that nobody knows is not said: {said}")


def dataset_dir_has_names_of_data():
    folder = llama_factory_data()
    sequences, _ = trained("dir", "--model", MODEL, "--data", "mine", "--dataset_dir", folder, *ONE_STEP)
    check(learned(sequences) == [["blue<|im_end|>\n"]] * 6, f"dataset_dir: learned {learned(sequences)}")
    done = run("sft", "--model", MODEL, "--data", "nobodys", "--dataset_dir", folder, "--output_dir", WORK / "none", expect=2)
    check("known are mine" in done.stderr, f"an unknown name: {done.stderr}")


def literal_markers_are_words():
    data = WORK / "markers.jsonl"
    made.write_lines(data, [chat(("user", "<image> one", {}), ("assistant", "red", {}))] * 2)
    done = run("sft", "--model", MODEL, "--data", data, "--output_dir", WORK / "markers", expect=2)
    check("<image>" in done.stderr, f"a marker is not refused by name: {done.stderr}")
    sequences, _ = trained("markers", "--model", MODEL, "--data", data, "--literal_markers", "true", *ONE_STEP)
    check(learned(sequences) == [[FIRST]] * 2, f"literal_markers: learned {learned(sequences)}")


def split_dataset_ratio_holds_rows_out():
    data = WORK / "ten.jsonl"
    made.write_lines(data, [chat(("user", str(number), {}), ("assistant", "red", {})) for number in range(10)])
    kept, said = trained("split", "--model", MODEL, "--data", data, "--split_dataset_ratio", "0.2", *ONE_STEP)
    held = made.read_tokens(WORK / "out-split" / "tokens" / "val_dataset.tokens")
    check(len(kept) == 8 and len(held) == 2 and not any(row in kept for row in held), f"kept {kept}, held {held}")
    check(json.loads((WORK / "out-split" / "result.json").read_text())["evaluations"], "the rows are not evaluated")
    whole = WORK / "out-split" / "tokens" / "dataset.tokens"
    done = run("sft", "--model", MODEL, "--data", whole, "--split_dataset_ratio", "0.2", "--output_dir", WORK / "no", expect=2)
    check("split_dataset_ratio is of JSON lines" in done.stderr, done.stderr)


def packing_without_max_length_has_rows_of_2048():
    model = made.make_model(WORK / "far", max_position_embeddings=1 << 23)
    lines = [chat(("user", str(number), {}), ("assistant", "red " * (1 + number % 9), {})) for number in range(300)]
    data = WORK / "many.jsonl"
    for name, further in (("short", []), ("long", [chat(("user", "long", {}), ("assistant", "blue " * 2500, {}))])):
        made.write_lines(data, lines + further)
        sequences, said = trained(f"far-{name}", "--model", model, "--data", data, "--packing", "true", *ONE_STEP)
        longest = max(len(ids) for ids, _ in sequences)
        rows = max(2048, longest)
        check((longest > 2048) == bool(further), f"the longest example has {longest} tokens")
        check(f"packing without max_length: rows of {rows} tokens, while max_position_embeddings is {1 << 23}" in said,
              f"rows of {rows} tokens are not said: {said}")
    _, said = trained("far-given", "--model", model, "--data", data, "--packing", "true", "--max_length", "4096", *ONE_STEP)
    check("packing without" not in said, f"max_length is given: {said}")


run_parts([packing_without_max_length_has_rows_of_2048, data_format_says_whose_keys_a_message_has, training_key_names_the_key_that_masks,
           dataset_dir_has_names_of_data, literal_markers_are_words, split_dataset_ratio_holds_rows_out])
