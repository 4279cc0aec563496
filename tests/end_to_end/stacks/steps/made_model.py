# SPDX-License-Identifier: Apache-2.0
# A made Llama of some thousand parameters with a tokenizer, and conversations, for trainers that read folders.
import json
import os


def make(folder="/var/tmp/made"):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    os.makedirs(folder, exist_ok=True)
    rows = [{"instruction": "Add %d and %d." % (i, i + 1), "input": "", "output": "The sum is %d." % (2 * i + 1)}
            for i in range(32)]
    with open(folder + "/rows.json", "w") as stream:
        json.dump(rows, stream)
    with open(folder + "/rows.jsonl", "w") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=512, special_tokens=["<s>", "</s>", "<pad>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([row["instruction"] + " " + row["output"] for row in rows], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>",
                                   model_input_names=["input_ids", "attention_mask"])  # as a Llama's has them
    fast.chat_template = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + eos_token }}{% endfor %}"
    model = LlamaForCausalLM(LlamaConfig(vocab_size=512, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
                                         bos_token_id=0, eos_token_id=1, pad_token_id=2))
    model.save_pretrained(folder + "/model")
    fast.save_pretrained(folder + "/model")
    return folder


if __name__ == "__main__":
    print(make())
