# SPDX-License-Identifier: Apache-2.0
# The connected side again: transformers and PEFT load what was trained inside, and agree with what was computed there.
#   logits: the adapter over the untouched base, the merged model, and our own decoder over the merged model
#   loss: what the run inside reported for its last evaluation
# The isolated side made the tokens of the chats.
#   check.py OUT SEALIFT_MODELS_PEER       OUT/made and OUT/tuned
import json
import pathlib
import subprocess
import sys

out, program = pathlib.Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "train/loop"))
import made_model as made  # noqa: E402
import peft  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402


def check(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def difference(one, other):
    """The largest, of the largest that there is."""
    return ((one - other).abs().max() / other.abs().max()).item()


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def logits_of(model, ids):
    with torch.no_grad():
        return model(input_ids=ids, use_cache=False).logits


def logits_of_ours(folder, ids):
    """Those of our decoder, one process, over the folder's files."""
    save_file({"ids": ids, "labels": ids.clone()}, folder / "batch.safetensors")
    (out / "cases").write_text(f"forward {folder} none 1 - {out / 'ours.safetensors'}\n")
    subprocess.run([program, out / "cases"], check=True)
    return load_file(out / "ours.safetensors")["logits"]


result = json.loads((out / "tuned/result.json").read_text())
losses, reported = result["losses"], result["evaluations"][-1]["loss"]
check((result["parallel_method"], result["world_size"]) == ("fsdp", 2), f"trained as {result['parallel_method']}")
check(15e6 < result["parameters"] < 30e6 and result["trainable_parameters"] < result["parameters"] / 20,
      f"{result['trainable_parameters']} of {result['parameters']} parameters were trained")
check(losses[-1] < 0.7 * losses[0], f"the loss does not fall: {losses[0]} -> {losses[-1]}")

sequences = made.read_tokens(out / "tuned/tokens/val_dataset.tokens")
length = min(len(ids) for ids, _ in sequences)
ids = torch.tensor([sequence[:length] for sequence, _ in sequences[:4]])
base = load(out / "made/qwen")
untouched = logits_of(base, ids)
adapted = peft.PeftModel.from_pretrained(base, out / "tuned/adapter").eval()
merged = load(out / "tuned/merged")
of_adapter, of_merged = logits_of(adapted, ids), logits_of(merged, ids)
check(difference(of_adapter, untouched) > 1e-2, "the adapter changes nothing")
for what, other in (("the merged model", of_merged), ("our decoder over the merged model", logits_of_ours(out / "tuned/merged", ids))):
    found = difference(other, of_adapter)
    print(f"logits of {what} and of PEFT's adapter differ by {found:.1e}")
    check(found < 1e-4, f"logits of {what} differ by {found}")
for what, model in (("PEFT's adapter", adapted), ("the merged model", merged)):
    theirs = made.mean_loss(model, sequences)
    print(f"loss of {what}: {theirs:.6f}; reported inside: {reported:.6f}")
    check(abs(theirs - reported) < 1e-4 * reported, f"{what} has a loss of {theirs}, inside it was {reported}")
text = transformers.AutoTokenizer.from_pretrained(out / "tuned/merged").decode(sequences[0][0])
check("<|im_start|>assistant" in text, f"the tokenizer that was carried decodes to {text!r}")
