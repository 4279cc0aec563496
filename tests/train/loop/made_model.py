# SPDX-License-Identifier: Apache-2.0
# A made Qwen2 with a made tokenizer, data for it, and the reader of token files: what fine_tune_test.py trains on.
# Random weights and a made language, so that nothing is downloaded; the families' own parts are tested in models/.
# The tokenizer is trained on the data, the template is ChatML, as Qwen's.
import json
import random
import struct

import tokenizers
import torch

TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' "
            "+ '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
WORDS = "red green blue one two three four cat dog bird sees takes has big small old new the a".split()


def sentence(draw):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(3, 9)))


def answer_to(prompt):
    """What there is to learn: the words backwards."""
    return " ".join(reversed(prompt.split()))


def chat_lines(count, seed):
    draw = random.Random(seed)
    prompts = [sentence(draw) for _ in range(count)]
    return [{"messages": [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer_to(prompt)}]}
            for prompt in prompts]


def pair_lines(count, seed):
    draw = random.Random(seed)
    prompts = [sentence(draw) for _ in range(count)]
    return [{"prompt": prompt, "chosen": answer_to(prompt), "rejected": sentence(draw)} for prompt in prompts]


def label_lines(count, seed):
    """Every other answer is a bad one."""
    draw = random.Random(seed)
    prompts = [sentence(draw) for _ in range(count)]
    return [{"prompt": prompt, "completion": answer_to(prompt) if i % 2 else sentence(draw), "label": i % 2 == 1}
            for i, prompt in enumerate(prompts)]


def text_lines(count, seed):
    draw = random.Random(seed)
    return [{"text": " ".join(sentence(draw) for _ in range(3))} for _ in range(count)]


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def make_tokenizer(folder):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=320, special_tokens=special, show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([" ".join(WORDS)] * 4 + ["user\nassistant\n"], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "chat_template": TEMPLATE,
         "tokenizer_class": "PreTrainedTokenizerFast"}))


SHAPE = {"vocab_size": 320, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 128, "tie_word_embeddings": False}


def make_model(folder, seed=7, **shape):
    """A Qwen2 of about 0.1 M parameters, or of another shape, in transformers' own layout."""
    import transformers

    folder.mkdir()
    make_tokenizer(folder)
    config = transformers.Qwen2Config(**{**SHAPE, **shape}, use_cache=False, eos_token_id=2, pad_token_id=0)
    return save_random(folder, transformers.Qwen2ForCausalLM, config, seed)


def make_experts(folder, like, seed=8):
    """A Qwen3-MoE of four experts with the tokenizer of the folder `like`."""
    import transformers

    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((like / name).read_bytes())
    config = transformers.Qwen3MoeConfig(
        vocab_size=320, hidden_size=32, intermediate_size=48, moe_intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, num_experts=4, num_experts_per_tok=2,
        norm_topk_prob=True, max_position_embeddings=128, tie_word_embeddings=False, use_cache=False, eos_token_id=2,
        pad_token_id=0)
    return save_random(folder, transformers.Qwen3MoeForCausalLM, config, seed)


def save_random(folder, family, config, seed):
    torch.manual_seed(seed)
    model = family(config).float()
    with torch.no_grad():  # transformers' own first values hide a wrong bias and a wrong norm
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
            else:
                parameter.mul_(3)
    model.save_pretrained(folder)
    return folder


def read_tokens(path):
    """The sequences of a token file: (ids, whether each counts)."""
    data = path.read_bytes()
    magic, version, kind, width, _, _, examples, sequences, tokens, _ = struct.unpack_from("<8sIIIIQQQQQ", data)
    assert (magic, version) == (b"SLTOKENS", 1), path
    begins = struct.unpack_from(f"<{sequences + 1}Q", data, 160)
    values = 160 + 8 * (sequences + 1)
    mask = values + ((4 * examples + 7) // 8 * 8 if kind in (2, 3) else 0)
    first = mask + ((tokens + 7) // 8 + 7) // 8 * 8
    ids = struct.unpack_from(f"<{tokens}{'H' if width == 2 else 'I'}", data, first)
    counts = [data[mask + i // 8] >> (i % 8) & 1 == 1 for i in range(tokens)]
    return [(ids[a:b], counts[a:b]) for a, b in zip(begins, begins[1:])]


def reward_loss(model, sequences, center):
    """The mean of -log sigmoid(chosen - rejected) + center (chosen + rejected)^2, and how often chosen is above."""
    losses = right = 0
    with torch.no_grad():
        for (chosen, _), (rejected, _) in zip(sequences[::2], sequences[1::2]):
            scores = [model(input_ids=torch.tensor([ids])).logits[0, 0].double() for ids in (chosen, rejected)]
            losses += center * sum(scores).item() ** 2
            losses -= torch.nn.functional.logsigmoid(scores[0] - scores[1]).item()
            right += int(scores[0] > scores[1])
    pairs = len(sequences) // 2
    return losses / pairs, right / pairs


def mean_loss(model, sequences):
    """Minus the mean log-probability of all tokens that count, over all sequences."""
    total = tokens = 0
    with torch.no_grad():
        for ids, counts in sequences:
            ids = torch.tensor([ids])
            log_probs = torch.log_softmax(model(input_ids=ids).logits[0, :-1].float(), -1)
            of_labels = log_probs.gather(1, ids[0, 1:, None])[:, 0]
            chosen = torch.tensor(counts[1:])
            total += -of_labels[chosen].double().sum().item()
            tokens += int(chosen.sum())
    return total / tokens
