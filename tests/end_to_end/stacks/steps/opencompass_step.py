# SPDX-License-Identifier: Apache-2.0
# opencompass judges a made model by a made set of questions on the CPU, by its own runner.
import json
import subprocess
import sys

import made_model

folder = made_model.make()
with open(folder + "/questions.jsonl", "w") as stream:
    for i in range(4):
        stream.write(json.dumps({"question": "%d+1=" % i, "A": str(i), "B": str(i + 1), "C": "9", "D": "8", "answer": "B"}) + "\n")
ended = subprocess.run([sys.executable, "-c", "from opencompass.cli.main import main; main()", "--hf-type", "base",
                        "--hf-path", folder + "/model", "--hf-num-gpus", "0", "--custom-dataset-path", folder + "/questions.jsonl",
                        "--custom-dataset-data-type", "mcq", "--custom-dataset-infer-method", "gen", "--max-out-len", "4",
                        "--debug", "-w", folder + "/out"], capture_output=True, text=True)
print(ended.stdout[-3000:], ended.stderr[-3000:])
scores = [line for line in ended.stdout.splitlines() if "accuracy" in line]
assert scores, ended.returncode
print("step:", scores[-1].strip())
