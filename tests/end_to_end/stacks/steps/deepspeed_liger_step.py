# SPDX-License-Identifier: Apache-2.0
# DeepSpeed's engine takes a step of a small network on the CPU, which compiles an operator first; a kernel of Liger's is
# asked for and wants a GPU. Where each of them stops is said.
import os

os.environ.update(DS_ACCELERATOR="cpu", MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
import torch

torch.manual_seed(1)
layer = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
x, y = torch.randn(32, 8), torch.randn(32, 1)
try:
    from liger_kernel.transformers import LigerRMSNorm

    LigerRMSNorm(8)(x)
    liger = "a kernel ran"
except Exception as error:
    liger = "%s: %s" % (type(error).__name__, error)
import deepspeed

config = {"train_batch_size": 32, "optimizer": {"type": "AdamW", "params": {"lr": 0.01, "torch_adam": True}},
          "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": True}
losses = []
try:
    deepspeed.init_distributed(dist_backend="gloo", init_method="tcp://127.0.0.1:29511", rank=0, world_size=1)
    engine = deepspeed.initialize(model=layer, config=config)[0]
    for _ in range(2):
        loss = ((engine(x) - y) ** 2).mean()
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    said = "losses %.6f %.6f" % tuple(losses)
except RuntimeError as error:
    said = "%s: %s" % (type(error).__name__, error)
print("step: deepspeed %s: %s; liger: %s" % (deepspeed.__version__, said, liger))
