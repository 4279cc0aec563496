# SPDX-License-Identifier: Apache-2.0
# transformer-engine is asked for what megatron-core asks of it; where it stops is said. Without it, as megatron-core runs
# where it is not installed, a made GPT is trained, whose attention asks for the GPU.
import os
import sys

import torch

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29512", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
try:
    import transformer_engine.pytorch

    engine = "imported"
except (ImportError, OSError, RuntimeError) as error:
    engine = "%s: %s" % (type(error).__name__, error)
    for name in [name for name in sys.modules if name.split(".")[0] == "transformer_engine"]:
        del sys.modules[name]
    sys.modules["transformer_engine"] = None  # an ImportError, which megatron-core expects where there is none
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.transformer.transformer_config import TransformerConfig

torch.distributed.init_process_group("gloo")
parallel_state.initialize_model_parallel()
torch.manual_seed(1)
config = TransformerConfig(num_layers=2, hidden_size=32, num_attention_heads=4, use_cpu_initialization=True,
                           pipeline_dtype=torch.float32, attention_dropout=0.0, hidden_dropout=0.0,
                           gradient_accumulation_fusion=False, perform_initialization=True)
model = GPTModel(config=config, transformer_layer_spec=get_gpt_layer_local_spec(), vocab_size=100, max_sequence_length=16)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
ids = torch.randint(0, 100, (2, 16))
mask = torch.tril(torch.ones(1, 1, 16, 16)) < 0.5
losses = []
try:
    for _ in range(2):
        loss = model(ids, torch.arange(16).expand(2, -1), mask, labels=ids).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[1] < losses[0], losses
    said = "losses %.6f %.6f" % tuple(losses)
except RuntimeError as error:  # on the CPU: "Found no NVIDIA driver on your system"
    said = "stops at the device: %s" % error
torch.distributed.destroy_process_group()
print("step: %s; transformer-engine: %s" % (said, engine))
