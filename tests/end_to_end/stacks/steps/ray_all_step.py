# SPDX-License-Identifier: Apache-2.0
# Ray: tasks, a search by Tune, and an answer of Serve over HTTP on the loopback.
import urllib.request

import ray
from ray import serve, tune

ray.init(num_cpus=2, include_dashboard=False)


@ray.remote
def square(number):
    return number * number


squares = ray.get([square.remote(i) for i in range(5)])


def trial(config):
    tune.report({"loss": (config["x"] - 3) ** 2})


best = tune.Tuner(trial, param_space={"x": tune.grid_search([1, 3])}, tune_config=tune.TuneConfig(metric="loss", mode="min")).fit()


@serve.deployment
class Echo:
    async def __call__(self, request):
        return "heard " + request.query_params["word"]


serve.run(Echo.bind())
heard = urllib.request.urlopen("http://127.0.0.1:8000/?word=yes").read().decode()
assert squares[-1] == 16 and heard == "heard yes"
print("step: squares", squares, "best", best.get_best_result().config, heard)
