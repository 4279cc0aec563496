# SPDX-License-Identifier: Apache-2.0
# NeMo: a made speech recognizer (CTC) takes two optimizer steps on made sound, on the CPU.
import nemo
import nemo.collections.asr as asr
import torch
from omegaconf import OmegaConf

torch.manual_seed(1)
letters = [" ", "a", "b", "c"]
config = OmegaConf.create({
    "sample_rate": 16000, "labels": letters,
    "preprocessor": {"_target_": "nemo.collections.asr.modules.AudioToMelSpectrogramPreprocessor", "features": 32,
                     "sample_rate": 16000},
    "encoder": {"_target_": "nemo.collections.asr.modules.ConvASREncoder", "feat_in": 32, "activation": "relu", "conv_mask": True,
                "jasper": [{"filters": 32, "repeat": 1, "kernel": [11], "stride": [1], "dilation": [1], "dropout": 0.0,
                            "residual": False, "separable": True}]},
    "decoder": {"_target_": "nemo.collections.asr.modules.ConvASRDecoder", "feat_in": 32, "num_classes": 4, "vocabulary": letters},
    "optim": {"name": "adamw", "lr": 0.01}})
model = asr.models.EncDecCTCModel(cfg=config)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
sound, sizes = torch.randn(2, 16000), torch.tensor([16000, 16000])
wanted, many = torch.tensor([[1, 2, 3], [3, 2, 1]]), torch.tensor([3, 3])
losses = []
for _ in range(2):
    out, length, _ = model(input_signal=sound, input_signal_length=sizes)
    loss = model.loss(log_probs=out, targets=wanted, input_lengths=length, target_lengths=many)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[1] < losses[0], losses
print("step: NeMo %s, losses %.4f %.4f" % (nemo.__version__, *losses))
