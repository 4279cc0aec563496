# SPDX-License-Identifier: Apache-2.0
# LLaMA-Factory trains a made model for two steps on the CPU, by its own program.
import json
import os
import subprocess
import sys

import made_model

folder = made_model.make()
with open(folder + "/dataset_info.json", "w") as stream:
    json.dump({"made": {"file_name": "rows.json"}}, stream)
program = os.path.join(os.path.dirname(sys.executable), "llamafactory-cli")
job = {"stage": "sft", "do_train": True, "model_name_or_path": folder + "/model", "dataset": "made",
       "dataset_dir": folder, "template": "default", "finetuning_type": "lora", "output_dir": folder + "/out",
       "max_steps": 2, "per_device_train_batch_size": 2, "logging_steps": 1, "learning_rate": 0.01, "use_cpu": True,
       "overwrite_output_dir": True, "report_to": "none", "cutoff_len": 128}
with open(folder + "/job.yaml", "w") as stream:
    json.dump(job, stream)
subprocess.run([program, "train", folder + "/job.yaml"], check=True)
with open(folder + "/out/trainer_state.json") as stream:
    losses = [row["loss"] for row in json.load(stream)["log_history"] if "loss" in row]
assert len(losses) == 2, losses
print("step: losses", losses)
