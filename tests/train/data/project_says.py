# SPDX-License-Identifier: Apache-2.0
# The tokens that a trainer itself makes of the lines of given files, and which of them it learns: its own loading and
# preprocessing, by the doors that its command line takes. Run by projects_test.py with the Python that has the project.
#   project_says.py PROJECT MODEL FAMILY JOB OUT     JOB: {set: {"file", "line", …}}; OUT: {set: [ids, learned] or text}
import json
import logging
import os
import pathlib
import sys
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", DISABLE_VERSION_CHECK="1", AXOLOTL_DO_NOT_TRACK="1",
                  DO_NOT_TRACK="1", WANDB_MODE="disabled", HF_DATASETS_CACHE=tempfile.mkdtemp(), CUDA_VISIBLE_DEVICES="")
PROJECT, MODEL, FAMILY = sys.argv[1:4]
SHAREGPT = {"role_tag": "from", "content_tag": "value", "user_tag": "human", "assistant_tag": "gpt", "system_tag": "system",
            "observation_tag": "observation", "function_tag": "function_call"}
OPENAI = {"role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant",
          "system_tag": "system", "observation_tag": "tool", "function_tag": "function_call"}


def of_labels(row):
    ids, labels = list(row["input_ids"]), list(row["labels"])
    return ids, [int(label != -100) for label in labels]


def kind_of(line):
    """How somebody who knows the formats would name this one in a job."""
    if "chosen" in line or "label" in line:
        return "preference" if "chosen" in line else "label"
    for name in ("messages", "conversations", "conversation", "interactions"):
        if name in line:
            first = line[name][0]
            return name, "sharegpt" if "from" in first else "openai" if "role" in first else "other"
    return "alpaca" if "instruction" in line else "prompt"


def answer_columns(line):
    question = next(name for name in ("instruction", "prompt", "query", "question") if name in line)
    return question, next(name for name in ("output", "completion", "response", "answer") if name in line)


# -- TRL: SFTTrainer and DPOTrainer, with what its page advises for chats: assistant_only_loss


def trl():
    import datasets
    import transformers
    import trl

    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    config = transformers.Qwen2Config(vocab_size=len(tokenizer), hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                                      num_attention_heads=1, num_key_value_heads=1)

    def says(file, line):
        tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
        model = transformers.Qwen2ForCausalLM(config)
        rows = datasets.load_dataset("json", data_files=file, split="train")
        common = {"output_dir": tempfile.mkdtemp(), "use_cpu": True, "bf16": False, "report_to": [], "max_length": None}
        kind = kind_of(line)
        if kind == "preference":
            trainer = trl.DPOTrainer(model, transformers.Qwen2ForCausalLM(config), trl.DPOConfig(**common),
                                     train_dataset=rows, processing_class=tokenizer)
            row = trainer.train_dataset[0]
            prompt, chosen = list(row["prompt_ids"]), list(row["chosen_ids"])
            return prompt + chosen, [0] * len(prompt) + [1] * len(chosen)
        chat = kind != "prompt" or isinstance(line.get("prompt"), list)
        args = trl.SFTConfig(assistant_only_loss=chat and "prompt" not in line, **common)
        trainer = trl.SFTTrainer(model, args=args, train_dataset=rows, processing_class=tokenizer)
        batch = trainer.data_collator([trainer.train_dataset[0]])
        return of_labels({name: batch[name][0].tolist() for name in ("input_ids", "labels")})

    return says


# -- LLaMA-Factory: a data set of dataset_info.json through get_dataset


def llama_factory():
    import transformers
    from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
    from llamafactory.hparams import DataArguments, ModelArguments

    def entry(file, line):
        kind = kind_of(line)
        columns = {name: name for name in ("system", "tools", "history") if name in line}
        if kind == "preference":
            chat = isinstance(line["chosen"], list)
            return {"file_name": file, "ranking": True, "formatting": "sharegpt" if chat else "alpaca",
                    "columns": {"prompt": "prompt", "chosen": "chosen", "rejected": "rejected"}}
        if isinstance(kind, tuple):
            name, form = kind
            calls = any("tool_calls" in turn or "function_call" in turn for turn in line[name])
            return {"file_name": file, "formatting": "openai" if calls else "sharegpt",
                    "columns": {"messages": name, **columns}, "tags": SHAREGPT if form == "sharegpt" else OPENAI}
        question, answer = answer_columns(line)
        return {"file_name": file, "columns": {"prompt": question, "response": answer, **columns,
                                               **({"query": "input"} if "input" in line else {})}}

    def says(file, line):
        if kind_of(line) == "label" or isinstance(line.get("chosen"), list):
            return None  # it has them, with chats, under keys of its own
        folder = pathlib.Path(tempfile.mkdtemp())
        (folder / "dataset_info.json").write_text(json.dumps({"set": entry(file, line)}))
        tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
        data = DataArguments(template={"qwen2_5": "qwen", "qwen3": "qwen3"}[FAMILY], dataset="set", dataset_dir=str(folder),
                             cutoff_len=4096, overwrite_cache=True, preprocessing_num_workers=1)
        stage = "rm" if kind_of(line) == "preference" else "sft"
        found = get_dataset(get_template_and_fix_tokenizer(tokenizer, data), ModelArguments(model_name_or_path=MODEL), data,
                            transformers.Seq2SeqTrainingArguments(output_dir=str(folder), use_cpu=True), stage, tokenizer)
        row = found["train_dataset"][0]
        return of_labels(row if stage == "sft" else {"input_ids": row["chosen_input_ids"], "labels": row["chosen_labels"]})

    return says


# -- axolotl: a `datasets` entry of its YAML through its strategies


def axolotl():
    import datasets
    import transformers
    from axolotl.utils.data.wrappers import get_dataset_wrapper
    from axolotl.utils.dict import DictDefault

    def says(file, line):
        tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
        cfg = DictDefault({"sequence_len": 4096, "train_on_inputs": False, "chat_template": "tokenizer_default",
                           "dataset_num_proc": 1})
        kind = kind_of(line)
        if kind in ("preference", "label", "prompt"):
            return None  # it has them under keys that are its user's
        of = {"type": "alpaca"} if kind == "alpaca" else {"type": "chat_template", "field_messages": kind[0]}
        if kind[1] == "sharegpt":
            of["message_property_mappings"] = {"role": "from", "content": "value"}
        rows = datasets.load_dataset("json", data_files=file, split="train")
        made, _ = get_dataset_wrapper(DictDefault({"path": file, **of}), tokenizer, cfg, of["type"], rows)
        return of_labels(made[0])

    return says


# -- ms-swift: load_dataset and a template's encode, as `swift sft`


def ms_swift():
    from swift.dataset import load_dataset
    from swift.model import get_processor
    from swift.template import get_template

    processor = get_processor(MODEL, model_type={"qwen2_5": "qwen2", "qwen3": "qwen3"}[FAMILY])

    def says(file, line):
        if kind_of(line) in ("preference", "label"):
            return None  # a preference is rejected_response there
        # Of a model that may think `swift sft` itself adds this to loss_scale.
        scale = "default+ignore_empty_think" if FAMILY == "qwen3" else "default"
        template = get_template(processor, template_type={"qwen2_5": "qwen2_5", "qwen3": "qwen3"}[FAMILY],
                                loss_scale=scale)
        template.set_mode("train")
        rows = load_dataset([file], load_from_cache_file=False)[0]
        if not len(rows):
            return "dropped: no row is left"
        made = template.encode(dict(rows[0]))
        return of_labels({name: made[name] for name in ("input_ids", "labels")})

    return says


def main(job, out):
    logging.disable(logging.WARNING)
    says = {"trl": trl, "llama-factory": llama_factory, "axolotl": axolotl, "ms-swift": ms_swift}[PROJECT]()
    found = {}
    for name, each in json.loads(pathlib.Path(job).read_text()).items():
        try:
            found[name] = says(each["file"], each["line"])
        except BaseException as error:  # SystemExit too: whatever the project does with a line
            found[name] = f"{type(error).__name__}: {str(error)[:300]}"
    pathlib.Path(out).write_text(json.dumps(found))


main(*sys.argv[4:6])
