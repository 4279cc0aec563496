# SPDX-License-Identifier: Apache-2.0
# axolotl trains a made model for two steps on the CPU, by its own command.
import glob
import json
import subprocess
import sys

import made_model

folder = made_model.make()
with open(folder + "/job.yml", "w") as stream:
    stream.write("""base_model: %s/model
datasets: [{path: %s/rows.jsonl, ds_type: json, type: alpaca}]
dataset_prepared_path: %s/prepared
output_dir: %s/out
sequence_len: 512
micro_batch_size: 2
gradient_accumulation_steps: 1
max_steps: 2
num_epochs: 1
learning_rate: 0.01
optimizer: adamw_torch
lr_scheduler: constant
logging_steps: 1
bf16: false
fp16: false
tf32: false
val_set_size: 0
use_cpu: true
""" % ((folder,) * 4))
subprocess.run([sys.executable, "-m", "axolotl.cli.main", "train", folder + "/job.yml", "--launcher", "python"], check=True)
states = glob.glob(folder + "/out/**/trainer_state.json", recursive=True)
with open(states[0]) as stream:
    print("step: losses", [row["loss"] for row in json.load(stream)["log_history"] if "loss" in row])
