# SPDX-License-Identifier: Apache-2.0
# What `sealift-train sft` leaves, opened by vLLM, made a GGUF by llama.cpp's own scripts, and that opened by llama.cpp.
# By hand, since they need gigabytes: opened_test.sh gets both and runs this.
# Judge is transformers, which holds the model to the losses that were reported in loop/fine_tune_test.py: vLLM must
# and llama.cpp must say the same words, greedily, of the same prompts, and the GGUF have the same tensors.
#   opened_test.py SEALIFT_TRAIN REPOSITORY LLAMA_CPP [PYTHON_OF_VLLM]     with the Python of torch; PYTHONPATH: the peers
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
TRAIN, REPOSITORY, LLAMA = sys.argv[1], *map(pathlib.Path, sys.argv[2:4])
VLLM = sys.argv[4] if len(sys.argv) > 4 else None
sys.path.insert(0, str(LLAMA / "gguf-py"))
import gguf  # noqa: E402
import made_model as made  # noqa: E402
import peft  # noqa: E402
import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

# Of Qwen2's tokenizer, which llama.cpp knows by what it makes of a text; a made one has no name there.
SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
WORDS = 12  # tokens that each program says


def check(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=900, **more)
    check(done.returncode == 0, f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done


def tokenizer_of_qwen2(folder):
    """Qwen2's own, of the vocabulary that llama.cpp's tests have; how many tokens."""
    fields = gguf.GGUFReader(LLAMA / "models/ggml-vocab-qwen2.gguf").fields
    tokens, merges, kinds = (fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges", "token_type"))
    special = [token for token, kind in zip(tokens, kinds) if kind == gguf.TokenType.CONTROL]
    plain = {token: at for at, (token, kind) in enumerate(zip(tokens, kinds)) if kind == gguf.TokenType.NORMAL}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(plain, [tuple(merge.split(" ")) for merge in merges]))
    tokenizer.normalizer = tokenizers.normalizers.NFC()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Split(tokenizers.Regex(SPLIT), "isolated"),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    for token in special:
        check(tokenizer.token_to_id(token) == tokens.index(token), f"{token} has another number than llama.cpp's")
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "chat_template": made.TEMPLATE,
         "tokenizer_class": "Qwen2TokenizerFast"}))
    return len(tokens), tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")


def made_base(folder):
    folder.mkdir()
    size, end, padding = tokenizer_of_qwen2(folder)
    config = transformers.Qwen2Config(
        vocab_size=size, hidden_size=128, intermediate_size=192, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=256, tie_word_embeddings=False, use_cache=False, eos_token_id=end,
        pad_token_id=padding)
    return made.save_random(folder, transformers.Qwen2ForCausalLM, config, 7)


def trained(base, out, *words):
    data = out.with_suffix(".jsonl")
    made.write_lines(data, made.chat_lines(64, 3))
    run(TRAIN, "sft", "--model", base, "--dataset", data, "--output_dir", out, "--max_steps", 30, "--save_strategy", "no",
        "--per_device_train_batch_size", 8, "--gradient_accumulation_steps", 1, "--precision", "fp32", "--learning_rate",
        0.01, *words, env=os.environ | {"SEALIFT_TRAIN_DEVICE": "cpu", "SEALIFT_TRAIN_PYTHON": sys.executable})


def said_by_transformers(model, tokenizer, prompts):
    found = []
    for prompt in prompts:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        made_ids = model.generate(ids, max_new_tokens=WORDS, do_sample=False, use_cache=True)[0, ids.shape[1]:]
        found.append(made_ids.tolist())
    return found


def of_gguf(folder, out):
    """Converts by llama.cpp's own script; the tensors must be the folder's, and the words those of transformers."""
    run(sys.executable, LLAMA / "convert_hf_to_gguf.py", folder, "--outfile", out, "--outtype", "f32")
    config = json.loads((folder / "config.json").read_text())
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, config["num_hidden_layers"])
    found = {tensor.name: torch.from_numpy(tensor.data.copy()) for tensor in gguf.GGUFReader(out).tensors}
    theirs = {}
    for path in folder.glob("*.safetensors"):
        theirs.update(load_file(path))
    for name, tensor in theirs.items():
        name = names.get_name(name, try_suffixes=(".weight", ".bias"))
        check(name in found and torch.equal(found.pop(name).reshape(tensor.shape), tensor.float()),
              f"{name} in the GGUF is not the tensor of {folder}")
    check(not found, f"the GGUF has {sorted(found)}, and {folder} has not")
    print(f"{out.name}: {len(theirs)} tensors, each equal to that of {folder.name}/", flush=True)


LLAMA_SAYS = """
import json, sys
import xllamacpp
job = json.load(open(sys.argv[1]))
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel, params.cpuparams.n_threads = job["model"], 128, 1, 2
if job["adapter"]:
    params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(job["adapter"], 1.0)]
server = xllamacpp.Server(params)
made = [server.handle_completions({"prompt": ids, "max_tokens": job["words"], "temperature": 0, "cache_prompt": False})
        for ids in job["prompts"]]
json.dump([each["choices"][0]["text"] for each in made], open(sys.argv[2], "w"))
"""


def said_by_llama_cpp(work, model, prompts, adapter=None):
    job, out, says = work / "llama.json", work / "llama.out", work / "llama_says.py"
    job.write_text(json.dumps({"model": str(model), "adapter": adapter and str(adapter), "prompts": prompts, "words": WORDS}))
    says.write_text(LLAMA_SAYS)
    run(sys.executable, says, job, out)
    return json.loads(out.read_text())


def in_llama_cpp(work, tokenizer, prompts, says):
    """llama.cpp's words of each GGUF, which are transformers'; the token that ends a text it does not print."""
    ids = [tokenizer(prompt).input_ids for prompt in prompts]
    for name, model, adapter in (("model", "model.gguf", None), ("merged", "merged.gguf", None),
                                 ("adapter", "base.gguf", work / "adapter.gguf")):
        found = said_by_llama_cpp(work, work / model, ids, adapter)
        words = [tokenizer.decode([token for token in each if token != tokenizer.eos_token_id]) for each in says[name]]
        check(found == words, f"llama.cpp says {found} of {name}, transformers {words}")
        print(f"llama.cpp says of {name} what transformers says", flush=True)


VLLM_SAYS = """
import json, sys
from vllm import LLM, SamplingParams
from vllm.lora.request import LoRARequest
job = json.load(open(sys.argv[1]))
llm = LLM(job["model"], dtype="float32", enforce_eager=True, max_model_len=128, enable_lora=bool(job["adapter"]),
          max_lora_rank=8)
lora = LoRARequest("ours", 1, job["adapter"]) if job["adapter"] else None
made = llm.generate(job["prompts"], SamplingParams(temperature=0, max_tokens=job["words"], ignore_eos=False,
                                                   skip_special_tokens=False), lora_request=lora)
json.dump([list(each.outputs[0].token_ids) for each in made], open(sys.argv[2], "w"))
"""


def said_by_vllm(work, model, prompts, adapter=None):
    job, out = work / "vllm.json", work / "vllm.out"
    job.write_text(json.dumps({"model": str(model), "adapter": adapter and str(adapter), "prompts": prompts,
                               "words": WORDS}))
    (work / "says.py").write_text("if __name__ == '__main__':\n" + VLLM_SAYS.strip().replace("\n", "\n    ").join(
        ("    ", "\n")))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    run(VLLM, work / "says.py", job, out, env=environment | {
        "VLLM_CPU_KVCACHE_SPACE": "1", "TORCHDYNAMO_DISABLE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "2"})
    return json.loads(out.read_text())


def main(work):
    base = made_base(work / "base")
    trained(base, work / "full", "--tuner_type", "none")
    trained(base, work / "lora", "--tuner_type", "lora", "--lora_rank", "8", "--merge_lora", "true")
    tokenizer = transformers.AutoTokenizer.from_pretrained(work / "full/model")
    prompts = [tokenizer.apply_chat_template([{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True)
               for text in ("red cat sees dog", "the big bird", "one two three four")]
    folders = {"model": work / "full/model", "merged": work / "lora/merged"}
    says = {name: said_by_transformers(
        transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), tokenizer, prompts)
        for name, folder in folders.items()}
    adapted = peft.PeftModel.from_pretrained(transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32),
                                             work / "lora/adapter").eval()
    says["adapter"] = said_by_transformers(adapted, tokenizer, prompts)
    check(len({json.dumps(each) for each in (says["model"], says["merged"])}) == 2, "both models say the same")
    print("transformers:", {name: tokenizer.batch_decode(each)[0] for name, each in says.items()}, flush=True)

    for name, folder in folders.items():
        of_gguf(folder, work / f"{name}.gguf")
    run(sys.executable, LLAMA / "convert_hf_to_gguf.py", base, "--outfile", work / "base.gguf", "--outtype", "f32")
    run(sys.executable, LLAMA / "convert_lora_to_gguf.py", work / "lora/adapter", "--base", base, "--outfile",
        work / "adapter.gguf", "--outtype", "f32")
    print("adapter.gguf, base.gguf: converted", flush=True)
    in_llama_cpp(work, tokenizer, prompts, says)
    if not VLLM:
        return print("left out: vLLM, whose Python is not given")
    for name, model, adapter in (("model", folders["model"], None), ("merged", folders["merged"], None),
                                 ("adapter", base, work / "lora/adapter")):
        found = said_by_vllm(work, model, prompts, adapter)
        check(found == says[name], f"vLLM says {tokenizer.batch_decode(found)} of {name}, transformers "
                                   f"{tokenizer.batch_decode(says[name])}")
        print(f"vLLM says of {name} what transformers says", flush=True)


with tempfile.TemporaryDirectory() as folder:
    main(pathlib.Path(folder))
