# SPDX-License-Identifier: Apache-2.0
# Run by the carried interpreter on the isolated host: two ranks, one DistributedDataParallel step over Gloo on loopback.
# Prints one line of JSON. Both ranks must end with the same weights, and these must be the ones of a single process.
import json
import os
import sys
import tempfile

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29555", WORLD_SIZE="2", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
results = tempfile.mkdtemp()
children = []
for rank in range(2):
    child = os.fork()
    if child == 0:
        break
    children.append(child)
else:
    if any(os.waitpid(child, 0)[1] for child in children):
        sys.exit("a rank of the DDP step failed")

import torch  # after the fork: each rank loads its own

torch.manual_seed(0)
plain = torch.nn.Linear(8, 4)
data = torch.randn(6, 8)


def step(model, batch):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    return [p.detach().flatten() for p in model.parameters()]


if len(children) < 2:
    rank = len(children)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(plain)
    torch.save(torch.cat(step(model, data[rank::2])), os.path.join(results, str(rank)))
    torch.distributed.destroy_process_group()
    os._exit(0)

ranks = [torch.load(os.path.join(results, str(rank))) for rank in range(2)]
expected = torch.cat(step(plain, data))
difference = max((weights - expected).abs().max().item() for weights in ranks)
print(json.dumps({
    "python": sys.version.split()[0], "executable": sys.executable, "torch": torch.__version__,
    "torch_from": os.path.dirname(torch.__file__), "cuda": torch.version.cuda,
    "nccl": ".".join(map(str, torch.cuda.nccl.version())), "cudnn": torch.backends.cudnn.version(),
    "ddp_ranks": 2, "ddp_max_difference": difference, "ranks_equal": bool((ranks[0] == ranks[1]).all())}))
sys.exit(0 if difference < 1e-6 else "DDP's weights differ from one process by %g" % difference)
