# SPDX-License-Identifier: Apache-2.0
# Our objectives against TRL's own losses on made batches: loss, gradient of every token's log-probability, metrics.
# TRL's methods are called as they are, on a stand-in for the trainer that has only what they read; versions: peers.txt.
# The last cases are ours with a setting that is 1 % off and must be told apart, so that agreement means something.
#   objectives_peer_test.py PROGRAM    PROGRAM: objectives_peer; PYTHONPATH: the peers, with the Python of that torch
import collections
import functools
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import warnings

warnings.filterwarnings("ignore")

import torch
import transformers
import trl
from torch.nn import functional as F
from transformers.loss.loss_utils import ForCausalLMLoss
from trl.experimental.cpo.cpo_trainer import CPOTrainer
from trl.experimental.orpo.orpo_trainer import ORPOTrainer

TOLERANCE = 1e-5  # relative, with as much absolutely
PAIRS, LONGEST = 5, 7


def peers_are_pinned():
    """The formulas below are these versions'; another one is another question."""
    lines = (pathlib.Path(__file__).parent.parent / "peers.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    for module in (transformers, trl):
        assert module.__version__ == pins[module.__name__], f"{module.__name__} is {module.__version__}"


def stand_in(**attributes):
    accelerator = types.SimpleNamespace(device=torch.device("cpu"), gather=lambda x: x, gather_for_metrics=lambda x: x)
    metrics = {"train": collections.defaultdict(list)}
    return types.SimpleNamespace(
        model=types.SimpleNamespace(training=True), accelerator=accelerator, ld_alpha=None, aux_loss_enabled=False,
        precompute_ref_logps=True, f_divergence_type="reverse_kl", use_weighting=False, _metrics=metrics,
        _total_train_tokens=0, _tp_size=1, args=types.SimpleNamespace(), **attributes)


class Answers:
    """Log-probabilities of answers of several lengths; TRL has them padded, ours gets lists."""

    def __init__(self, count, seed):
        torch.manual_seed(seed)
        self.lengths = torch.randint(1, LONGEST + 1, (count,))
        self.mask = torch.arange(LONGEST)[None] < self.lengths[:, None]
        self.padded = (-3 * torch.rand(count, LONGEST) * self.mask).requires_grad_()
        self.reference = -3 * torch.rand(count) * self.lengths

    def lists(self, order):
        return [self.padded[row, : self.lengths[row]].tolist() for row in order]

    def gradient(self, order):
        return torch.cat([self.padded.grad[row, : self.lengths[row]] for row in order]).tolist()

    def sums(self):
        return self.padded.sum(1)

    def means(self):
        return self.padded.sum(1) / self.lengths

    def outputs(self):
        zeros = torch.zeros_like(self.padded.detach())
        return types.SimpleNamespace(log_probs=self.padded, entropy=zeros, mean_logits=zeros, is_top1=zeros.bool())

    def inputs(self):
        """input_ids with one token of the prompt, so that the shifted mask is the answers'."""
        ids = torch.zeros(len(self.lengths), LONGEST + 1, dtype=torch.long)
        mask = F.pad(self.mask, (1, 0)).long()
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "completion_mask": mask}


# TRL has all chosen answers before all rejected ones, we each beside the other.
INTERLEAVED = [row for pair in range(PAIRS) for row in (pair, pair + PAIRS)]


def case(objective, answers, order, loss, metrics, **given):
    loss.backward()
    return ({"objective": objective, "answers": answers.lists(order), **given},
            {"loss": loss.item(), "gradient": answers.gradient(order), "metrics": metrics})


def last(metrics):
    return {name: values[-1] for name, values in metrics["train"].items()}


def dpo(seed, method, loss_types, loss_weights=(1.0,), beta=0.1, label_smoothing=0.0, **ours):
    """DPOTrainer's own loss; `ours`: what we are told instead."""
    answers = Answers(2 * PAIRS, seed)
    trainer = stand_in(beta=beta, loss_types=list(loss_types), loss_weights=list(loss_weights),
                       label_smoothing=label_smoothing)
    inputs = {**answers.inputs(), "ref_chosen_logps": answers.reference[:PAIRS],
              "ref_rejected_logps": answers.reference[PAIRS:]}
    loss = trl.DPOTrainer._compute_loss(trainer, lambda **_: answers.outputs(), inputs, False)
    given = {"method": method, "beta": beta, "label_smoothing": label_smoothing, **ours}
    return case("preference", answers, INTERLEAVED, loss, last(trainer._metrics),
                reference=answers.reference[INTERLEAVED].tolist(), **given)


def cautious_dpo(seed, **ours):
    """DPO with label smoothing: TRL has the formula in CPO, of log-ratios DPO's."""
    answers = Answers(2 * PAIRS, seed)
    trainer = stand_in(beta=0.3, alpha=0.0, loss_type="sigmoid", label_smoothing=0.1, simpo_gamma=0.0)
    ratios = answers.sums() - answers.reference
    losses, _, _ = CPOTrainer.cpo_loss(trainer, ratios[:PAIRS], ratios[PAIRS:])
    given = {"method": "dpo", "beta": 0.3, "label_smoothing": 0.1, **ours}
    return case("preference", answers, INTERLEAVED, losses.mean(), {},
                reference=answers.reference[INTERLEAVED].tolist(), **given)


def cpo(seed, method, loss_type, beta, gamma=0.0, alpha=0.0, label_smoothing=0.0, **ours):
    answers = Answers(2 * PAIRS, seed)
    trainer = stand_in(beta=beta, alpha=0.0, loss_type=loss_type, label_smoothing=label_smoothing, simpo_gamma=gamma,
                       cpo_alpha=alpha)
    trainer.cpo_loss = functools.partial(CPOTrainer.cpo_loss, trainer)
    logps = answers.means() if loss_type in ("ipo", "simpo") else answers.sums()
    nll = -answers.sums()[:PAIRS].sum() / answers.lengths[:PAIRS].sum()
    nothing = torch.zeros(1)
    trainer.concatenated_forward = lambda *_: (logps[:PAIRS], logps[PAIRS:], nothing, nothing, nll)
    loss, metrics = CPOTrainer.get_batch_loss_metrics(trainer, None, None)
    if loss_type == "simpo":
        metrics = {name: value for name, value in metrics.items() if not name.startswith("logps")}  # ours are sums
    given = {"method": method, "beta": beta, "margin": gamma, "nll_weight": alpha, "label_smoothing": label_smoothing,
             **ours}
    return case("preference", answers, INTERLEAVED, loss, metrics, **given)


def orpo(seed, weight, with_prompt, **ours):
    answers = Answers(2 * PAIRS, seed)
    trainer = stand_in(beta=weight)
    trainer.odds_ratio_loss = functools.partial(ORPOTrainer.odds_ratio_loss, trainer)
    means, given = answers.means(), {"method": "orpo", "weight": weight}
    nll = -answers.sums()[:PAIRS].sum() / answers.lengths[:PAIRS].sum()
    if with_prompt:
        nll, given = torch.tensor(1.75), {**given, "nll_sum": 35.0, "nll_tokens": 20.0}
    nothing = torch.zeros(1)
    trainer.concatenated_forward = lambda *_: (means[:PAIRS], means[PAIRS:], nothing, nothing, nll)
    loss, metrics = ORPOTrainer.get_batch_loss_metrics(trainer, None, None)
    metrics = {name: value for name, value in metrics.items() if not name.startswith("logps")}  # ours are sums
    return case("preference", answers, INTERLEAVED, loss, metrics, **{**given, **ours})


def kto(seed, loss_type="kto", desirable_weight=1.0, undesirable_weight=1.0, shift=0.5, **ours):
    answers = Answers(2 * PAIRS, seed)
    labels = torch.rand(2 * PAIRS) < 0.6
    mismatched = -4 * torch.rand(2 * PAIRS)
    reference_mismatched = mismatched - shift * torch.rand(2 * PAIRS)
    with_distance = loss_type == "kto"
    trainer = stand_in(beta=0.2, loss_type=loss_type, calculate_KL=with_distance, desirable_weight=desirable_weight,
                       undesirable_weight=undesirable_weight, _compute_kl_logps=lambda *_: mismatched)
    inputs = {**answers.inputs(), "label": labels, "ref_logps": answers.reference, "ref_KL_logps": reference_mismatched}
    loss = trl.KTOTrainer._compute_loss(trainer, lambda **_: answers.outputs(), inputs, False)
    given = {"beta": 0.2, "desirable_weight": desirable_weight, "undesirable_weight": undesirable_weight,
             "distance": with_distance, **ours}
    return case("kto", answers, range(2 * PAIRS), loss, last(trainer._metrics), reference=answers.reference.tolist(),
                desirable=labels.float().tolist(), mismatched=mismatched.tolist(),
                reference_mismatched=reference_mismatched.tolist(), **given)


def reward(seed, margins, center, **ours):
    answers = Answers(2 * PAIRS, seed)
    trainer = stand_in()
    trainer.args.center_rewards_coefficient = center
    inputs = {"attention_mask": torch.ones(1)}
    given = {"center_coefficient": center or 0.0}
    if margins:
        inputs["margin"] = torch.rand(PAIRS)
        given["margins"] = inputs["margin"].tolist()
    model = lambda **_: types.SimpleNamespace(logits=answers.sums()[:, None])
    loss = trl.RewardTrainer.compute_loss(trainer, model, inputs)
    return case("reward", answers, INTERLEAVED, loss, last(trainer._metrics), **{**given, **ours})


def causal(seed):
    """Hugging Face's loss of two rows, divided by the tokens that it is told."""
    torch.manual_seed(seed)
    logits = torch.randn(2, LONGEST + 1, 11)
    labels = torch.randint(0, 11, (2, LONGEST + 1))
    labels[0, :3] = labels[1, -2:] = -100
    loss = ForCausalLMLoss(logits, labels, vocab_size=11, num_items_in_batch=17)
    log_probs = torch.log_softmax(logits[:, :-1], -1).gather(-1, labels[:, 1:].clamp_min(0)[..., None])[..., 0]
    lists = [row[label != -100].tolist() for row, label in zip(log_probs, labels[:, 1:])]
    count = sum(map(len, lists))
    return ({"objective": "causal", "answers": lists, "tokens": 17},
            {"loss": loss.item(), "gradient": [-1 / 17] * count, "metrics": {}})


def cases():
    yield "causal", causal(1)
    yield "dpo", dpo(2, "dpo", ["sigmoid"])
    yield "dpo_beta", dpo(3, "dpo", ["sigmoid"], beta=0.7)
    yield "dpo_label_smoothing", cautious_dpo(4)
    yield "ipo", dpo(5, "ipo", ["ipo"], beta=0.2)
    yield "hinge", dpo(6, "hinge", ["hinge"], beta=0.5)
    yield "robust", dpo(7, "robust", ["robust"], label_smoothing=0.15)
    yield "rpo", dpo(8, "dpo", ["sigmoid", "sft"], [1.0, 0.6], nll_weight=0.6)
    yield "ipo_with_nll", dpo(9, "ipo", ["ipo", "sft"], [1.0, 2.0], nll_weight=2.0)
    yield "simpo", cpo(10, "simpo", "simpo", 2.0, gamma=1.0)
    yield "simpo_nll", cpo(11, "simpo", "simpo", 2.5, gamma=1.4, alpha=0.3)
    yield "simpo_label_smoothing", cpo(12, "simpo", "simpo", 2.0, gamma=0.5, label_smoothing=0.2)
    yield "cpo", cpo(13, "cpo", "sigmoid", 0.1, alpha=1.0)
    yield "orpo", orpo(14, 0.1, False)
    yield "orpo_nll_of_prompt", orpo(15, 0.4, True)
    yield "kto", kto(16)
    yield "kto_weights", kto(17, desirable_weight=1.3, undesirable_weight=0.8)
    yield "kto_distance_below_zero", kto(18, shift=-2.0)
    yield "apo_zero_unpaired", kto(19, loss_type="apo_zero_unpaired")
    yield "reward", reward(20, False, None)
    yield "reward_margin", reward(21, True, None)
    yield "reward_centered", reward(22, True, 0.05)
    yield "wrong_beta", dpo(23, "dpo", ["sigmoid"], beta=0.5)
    yield "wrong_nll", dpo(24, "dpo", ["sigmoid", "sft"], [1.0, 0.6], nll_weight=0.606)
    yield "wrong_margin", cpo(25, "simpo", "simpo", 2.0, gamma=1.0)
    yield "wrong_distance", kto(26, distance=False)


def near(ours, theirs):
    return abs(ours - theirs) <= TOLERANCE * (1 + abs(theirs))


def differences(ours, theirs):
    found = [] if near(ours["loss"], theirs["loss"]) else [f"loss {ours['loss']}, TRL's {theirs['loss']}"]
    if len(ours["gradient"]) != len(theirs["gradient"]):
        found.append(f"{len(ours['gradient'])} gradients, TRL's {len(theirs['gradient'])}")
    found += [f"gradient {at}: {a}, TRL's {b}"
              for at, (a, b) in enumerate(zip(ours["gradient"], theirs["gradient"])) if not near(a, b)]
    for name in set(ours["metrics"] or {}) & set(theirs["metrics"]):
        if not near(ours["metrics"][name], float(theirs["metrics"][name])):
            found.append(f"{name} {ours['metrics'][name]}, TRL's {theirs['metrics'][name]}")
    return found


def main(program):
    peers_are_pinned()
    names, pairs = zip(*cases())
    for name, (given, _) in zip(names, pairs):
        if name == "wrong_beta":
            given["beta"] *= 1.01
        if name == "wrong_margin":
            given["margin"] *= 1.01
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([given for given, _ in pairs], file)
        file.flush()
        answers = json.loads(subprocess.run([program, file.name], check=True, capture_output=True).stdout)
    compared, failed = 0, False
    for name, (given, theirs), ours in zip(names, pairs, answers, strict=True):
        found = differences(ours, theirs)
        compared += len(set(ours["metrics"] or {}) & set(theirs["metrics"]))
        failed |= bool(found) != name.startswith("wrong_")
        print(f"{name:24} loss {ours['loss']:.7f} TRL {theirs['loss']:.7f}  " + ("; ".join(found[:3]) or "agree"))
    assert compared > 60, f"only {compared} metrics were compared"
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
