# SPDX-License-Identifier: Apache-2.0
# verl: one policy update of a made model with verl's own advantage and loss, and a worker of Ray's that gives it rows.
import made_model
import ray
import torch
from transformers import AutoModelForCausalLM
from verl import DataProto
from verl.trainer.ppo import core_algos

folder = made_model.make()
ray.init(num_cpus=2, include_dashboard=False)


@ray.remote
def rows():
    torch.manual_seed(1)
    return DataProto.from_dict({"ids": torch.randint(3, 500, (4, 12))})


batch = ray.get(rows.remote())
model = AutoModelForCausalLM.from_pretrained(folder + "/model")
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)


def log_probs():
    ids = batch.batch["ids"]
    return torch.log_softmax(model(ids).logits[:, :-1], -1).gather(-1, ids[:, 1:, None])[..., 0]


mask = torch.ones(4, 11)
rewards = torch.zeros(4, 11)
rewards[:, -1] = torch.tensor([1.0, 0.0, 1.0, 0.0])
advantages, _ = core_algos.compute_grpo_outcome_advantage(rewards, mask, index=__import__("numpy").array(["a", "a", "b", "b"]))
old = log_probs().detach()
losses = []
for _ in range(2):
    ratio = torch.exp(log_probs() - old)
    loss = core_algos.agg_loss(-advantages * ratio, mask, "token-mean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(round(loss.item(), 6))
assert losses[1] < losses[0], losses
print("step: losses", losses)
