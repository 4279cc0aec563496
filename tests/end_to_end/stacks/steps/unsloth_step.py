# SPDX-License-Identifier: Apache-2.0
# unsloth is imported, without a GPU too, and TRL trains a made model for two steps on the CPU.
import made_model

try:
    import unsloth

    print("unsloth: imported", unsloth.__version__)
except Exception as error:
    print("device: %s: %s" % (type(error).__name__, error))

from datasets import load_dataset
from trl import SFTConfig, SFTTrainer

folder = made_model.make()
rows = load_dataset("json", data_files=folder + "/rows.jsonl", split="train")
rows = rows.map(lambda row: {"text": row["instruction"] + row["output"]})
trainer = SFTTrainer(model=folder + "/model", train_dataset=rows,
                     args=SFTConfig(output_dir=folder + "/out", max_steps=2, use_cpu=True, report_to="none", logging_steps=1,
                                    per_device_train_batch_size=2, dataset_text_field="text", bf16=False))
trainer.train()
print("step: losses", [row["loss"] for row in trainer.state.log_history if "loss" in row])
