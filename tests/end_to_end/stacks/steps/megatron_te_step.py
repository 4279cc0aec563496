# SPDX-License-Identifier: Apache-2.0
# megatron-core imports transformer-engine, which wants the GPU's driver; without that, a made GPT takes two steps on the
# CPU.
import os

import torch

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29512", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
try:
    import megatron.core
except (ImportError, OSError, RuntimeError) as error:
    print("step: stops at the device: %s: %s" % (type(error).__name__, error))
    raise SystemExit
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
for _ in range(2):
    loss = model(ids, torch.arange(16).expand(2, -1), mask, labels=ids).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[1] < losses[0], losses
print("step: losses %.6f %.6f" % tuple(losses))
