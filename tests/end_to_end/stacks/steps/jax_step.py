# SPDX-License-Identifier: Apache-2.0
# jax: one compiled gradient step of a small network.
import jax
import jax.numpy as jnp


def loss_of(weights, x, y):
    return jnp.mean((jnp.tanh(x @ weights["a"]) @ weights["b"] - y) ** 2)


keys = jax.random.split(jax.random.PRNGKey(1), 4)
weights = {"a": jax.random.normal(keys[0], (8, 16)), "b": jax.random.normal(keys[1], (16, 1))}
x, y = jax.random.normal(keys[2], (32, 8)), jax.random.normal(keys[3], (32, 1))
step = jax.jit(lambda w: (loss_of(w, x, y), jax.tree.map(lambda v, g: v - 0.05 * g, w, jax.grad(loss_of)(w, x, y))))
first, weights = step(weights)
second, weights = step(weights)
assert second < first, (first, second)
print("step: %s, loss %.6f, then %.6f" % (jax.devices()[0].platform, first, second))
