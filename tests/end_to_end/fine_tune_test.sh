#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A made Qwen, its tokenizer and chats came in the bundle: LoRA under fsdp on two ranks on the bare host, without a
# network; then transformers on the connected side opens the adapter and the merged model.
#   fine_tune_test.sh OUT PYTHON SEALIFT_MODELS_PEER      after samples/air_gap.sh packed OUT/made; PYTHON has peers.txt
set -euo pipefail
out=$1 python=$2 peer=$3
project=$(realpath "$(dirname "$0")/../..")
installed=/opt/sealift/current
host=$out/host
source "$project/samples/bare_host.sh"
end() { if [ "$mounts" = bind ]; then while umount -l "$host" 2>/dev/null; do :; done; fi; }
trap end EXIT

rm -rf "$out/tuned"
"${enter[@]}" rm -rf "$host/var/tmp/tuned"
inside $installed/bin/sealift-train sft --model $installed/models/qwen --data $installed/data/chats/train.jsonl \
  --val-dataset $installed/data/chats/evaluation.jsonl --tuner lora --lora-rank 8 --merge-lora true --parallel-method fsdp --ranks 2 \
  --per-device-train-batch-size 4 --gradient-accumulation-steps 1 --max-steps 20 --learning-rate 5e-3 --warmup-steps 4 \
  --save-strategy no --output-dir /var/tmp/tuned 2>&1 | tee "$out/logs/fine_tune.log"
cp -r "$host/var/tmp/tuned" "$out/tuned"
PYTHONPATH=$project/build/prerequisites/peers HF_HUB_OFFLINE=1 "$python" "$project/tests/end_to_end/fine_tune/check.py" "$out" "$peer"
echo "what was fine-tuned inside is what transformers computes outside"
