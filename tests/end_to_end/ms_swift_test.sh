#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# samples/ms_swift, with a made Qwen: packed, installed on a bare Debian without a network, and there `swift sft` with two ranks
# on processors, as far as those go: FSDP2 with adapters, DDP and ZeRO 3 with every parameter. Losses fall, the adapter loads again.
#   ms_swift_test.sh OUT BIN PYTHON      PYTHON has tests/train/peers.txt; BIN: a build folder's programs
#   ctest --test-dir build/release -C slow -R ms_swift
# Needs a network, root, 12 GB in OUT; ten minutes once everything is fetched (SEALIFT_CACHE, build/prerequisites/downloads).
set -euo pipefail
out=$(realpath -m "$1") bin=$2 python=$3
project=$(realpath "$(dirname "$0")/../..")
prerequisites=$project/build/prerequisites
cache=${SEALIFT_CACHE:-$prerequisites/downloads}
[ "$(id -u)" -eq 0 ] || { echo "needs root for chroot: not run"; exit 77; }
export PATH=/usr/bin:$prerequisites/uv/bin:$PATH
host=$out/host root=/opt/sealift/current
fail() { echo "FAILED: $*"; exit 1; }
mkdir -p "$out/logs"
source "$project/samples/bare_host.sh"
end() { if [ "$mounts" = bind ]; then while umount -l "$host" 2>/dev/null; do :; done; fi; rm -rf "$host" "$out/bundle"; }
trap end EXIT

echo "== outside: make the model, lock, pack, sign"
cmake --install "$(dirname "$bin")" --component trainer --prefix "$out/stage" --strip > "$out/logs/install.log"
install -m 0755 "$bin/sealift-launch" "$out/stage/bin"
PYTHONPATH=$prerequisites/peers HF_HUB_OFFLINE=1 "$python" "$project/tests/end_to_end/fine_tune/make_swift_job.py" "$out" "$out/stage"
[ -f "$out/keys/root.1.json" ] || { rm -rf "$out/keys"; "$bin/sealift-pack" keygen "$out/keys" > "$out/logs/keygen.log" 2>&1; }
"$bin/sealift-pack" lock "$out/made/job.toml" -o "$out/ms_swift.lock.toml" --cache "$cache" --launcher "$bin/sealift-start" 2>&1 |
  tee "$out/logs/lock.log"
rm -rf "$out/bundle"
"$bin/sealift-pack" create "$out/ms_swift.lock.toml" --root "$out/keys/root.1.json" --key "$out/keys/release.key" -o "$out/bundle" \
  --cache "$cache" --installer "$bin/sealift-install" --no-rehearsal 2>&1 | tee "$out/logs/create.log"

echo "== inside: install on a bare host without a network"
if [ ! -f "$prerequisites/bare-host.tar" ]; then
  mmdebstrap --quiet --format=tar --variant=minbase bookworm "$prerequisites/bare-host.tar.partial"
  mv "$prerequisites/bare-host.tar.partial" "$prerequisites/bare-host.tar"
fi
rm -rf "$host" && mkdir -p "$host/disc"
tar -C "$host" --exclude='./dev/*' -xf "$prerequisites/bare-host.tar"
mv "$out/bundle/ms-swift-1/"* "$host/disc/"
! inside /bin/sh -c 'command -v python3 gcc curl' || fail "the host is not bare"
inside /disc/sealift-install apply /disc --prefix /opt/sealift --fingerprint "$(cat "$out/keys/root.fingerprint")" 2>&1 |
  tee "$out/logs/apply.log"
rm -rf "$host/disc"

# swift NAME PRESET ARGUMENTS...: two ranks on processors. Without use_cpu and gloo, swift's ranks would train apart.
swift() {
  local name=$1 preset=$2
  shift 2
  inside /bin/sh -c '. /opt/sealift/activate; exec sealift-launch --nproc 2 --per-host swift sft "$@"' sh \
    $root/data/presets/$preset.yaml --model $root/models/qwen --model_type qwen2 --template chatml \
    --dataset $root/data/examples/train.jsonl --output_dir /var/tmp/$name --use_cpu true --ddp_backend gloo --torch_dtype float32 \
    --per_device_train_batch_size 4 --gradient_accumulation_steps 1 --max_steps 12 --logging_steps 1 --learning_rate 5e-3 \
    --dataloader_num_workers 0 --add_version false "$@" > "$out/logs/$name.log" 2>&1
}
echo "== inside: adapters under FSDP2"
swift fsdp2_lora fsdp2_lora || { tail -30 "$out/logs/fsdp2_lora.log"; fail "swift sft, fsdp2_lora"; }
echo "== inside: every parameter under DDP"
swift ddp_full ddp_full --gradient_checkpointing false || { tail -30 "$out/logs/ddp_full.log"; fail "swift sft, ddp_full"; }
echo "== inside: every parameter under DeepSpeed's ZeRO 3"
# Where swift is told of processors, DeepSpeed joins its ranks' group after it has read its settings, for one rank by then:
# what it would be told of all ranks' batch is left out.
inside $root/bin/python -I -c '
import json, pathlib, swift
settings = json.loads((pathlib.Path(swift.__file__).parent / "config/zero3.json").read_text())
del settings["train_batch_size"]
pathlib.Path("/var/tmp/zero3.json").write_text(json.dumps(settings))' 2> "$out/logs/zero3_settings.log"
swift zero3 zero3 --gradient_checkpointing false --deepspeed /var/tmp/zero3.json || { tail -30 "$out/logs/zero3.log"; fail "swift sft, zero3"; }
echo "== inside: the older FSDP wants a GPU, and says so"
! swift fsdp_lora fsdp_lora || fail "FSDP 1 trained on processors: then this test can ask for more"
grep -q "no available devices found" "$out/logs/fsdp_lora.log" || { tail -30 "$out/logs/fsdp_lora.log"; fail "fsdp_lora: another reason"; }
for name in fsdp2_lora ddp_full zero3; do
  ! grep -E "NetworkError|ConnectionError|Max retries" "$out/logs/$name.log" || fail "$name asked for something outside"
done

echo "== inside: our trainer takes over the job of swift's args.json; each step of both has all rows"
swift all_rows ddp_full --gradient_checkpointing false --dataset $root/data/examples/few.jsonl --max_steps 6 --fp16 false --bf16 false \
  --lr_scheduler_type constant --warmup_ratio 0 --weight_decay 0 || { tail -30 "$out/logs/all_rows.log"; fail "swift sft, all_rows"; }
inside /bin/sh -c '. /opt/sealift/activate; exec sealift-train sft "$@"' sh --config /var/tmp/all_rows/args.json \
  --parallel-method fsdp --ranks 2 --output-dir /var/tmp/ours 2>&1 | tee "$out/logs/ours.log" | tail -2

echo "== inside: losses fall, the adapter loads again"
inside $root/bin/python -I -c '
import json, math, pathlib, sys
import torch, peft, transformers
root = sys.argv[1]
for name in ("fsdp2_lora", "ddp_full", "zero3"):
    lines = [json.loads(line) for line in pathlib.Path(f"/var/tmp/{name}/logging.jsonl").read_text().splitlines()]
    losses = [float(line["loss"]) for line in lines if "loss" in line]
    print(name, "losses", losses)
    assert len(losses) == 12, "a step of two ranks is logged once; more lines: the ranks trained apart"
    assert losses[-1] < losses[0] - 0.5
    if name == "ddp_full": ddp = losses
assert all(abs(a - b) < 1e-3 * a for a, b in zip(ddp, losses)), "zero3 trains what ddp_full trains"
def losses_of(path):
    lines = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    return [float(line["loss"]) for line in lines if "loss" in line]
swift, ours = losses_of("/var/tmp/all_rows/logging.jsonl")[:6], losses_of("/var/tmp/ours/log.jsonl")
print("swift", swift, "ours", ours)
assert len(ours) == 6 and all(abs(a - b) < 1e-4 * a for a, b in zip(swift, ours))
base = transformers.AutoModelForCausalLM.from_pretrained(f"{root}/models/qwen", dtype=torch.float32)
tokens = torch.arange(3, 40).reshape(1, -1)
with torch.no_grad():
    before = base(tokens).logits
    tuned = peft.PeftModel.from_pretrained(base, "/var/tmp/fsdp2_lora/checkpoint-12")
    after = tuned(tokens).logits
assert torch.isfinite(after).all() and (after - before).abs().max() > 0.1
print("the adapter changes logits by", (after - before).abs().max().item())
' $root
echo "samples/ms_swift trains on a bare host without a network"
