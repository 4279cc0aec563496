# SPDX-License-Identifier: Apache-2.0
# PaddlePaddle: two optimizer steps of a small network on the CPU.
import paddle

paddle.seed(1)
net = paddle.nn.Sequential(paddle.nn.Linear(8, 16), paddle.nn.Tanh(), paddle.nn.Linear(16, 1))
optimizer = paddle.optimizer.AdamW(0.01, parameters=net.parameters())
x, y = paddle.randn([32, 8]), paddle.randn([32, 1])
losses = []
for _ in range(2):
    loss = paddle.nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    losses.append(float(loss))
assert losses[1] < losses[0], losses
print("step: %s, losses %.6f %.6f" % (paddle.device.get_device(), *losses))
