# SPDX-License-Identifier: Apache-2.0
# A Hugging Face model's folder -> what of it says how text becomes tokens: tokenizer, special tokens, chat template.
# Second step of `sealift-train tokenize`, once a run.
# By `tokenizers` alone, which an environment has where it has none of the large libraries.
import hashlib
import json

import tokenizers


def read_json(path):
    """The object of a JSON file; empty where there is none."""
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if not isinstance(content, dict):
        raise SystemExit(f"{path} is no JSON object; the model's folder is damaged")
    return content


class Model:
    """What of a model's folder says how text becomes tokens."""

    def __init__(self, folder):
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise SystemExit(f"{folder} has no tokenizer.json; expected the folder of a Hugging Face model")
        self.tokenizer = tokenizers.Tokenizer.from_file(str(path))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.digest = hashlib.sha256(path.read_bytes()).digest()
        config = read_json(folder / "tokenizer_config.json")
        shape = read_json(folder / "config.json")
        self.vocabulary = (shape.get("vocab_size") or (shape.get("text_config") or {}).get("vocab_size")
                           or self.tokenizer.get_vocab_size())
        self.special = self._special({**read_json(folder / "special_tokens_map.json"), **config})
        begin = self.special.get("bos_token")
        self.begin = begin and self.tokenizer.token_to_id(begin)
        self.end = self._end(shape, read_json(folder / "generation_config.json"))
        self.template = self._template(folder, config)

    @staticmethod
    def _special(config):
        tokens = {}
        for name, token in config.items():
            token = token.get("content") if isinstance(token, dict) else token
            if name.endswith("_token") and isinstance(token, str):
                tokens[name] = token
        return tokens

    def _end(self, *configs):
        """The number of the token that ends a text; None where nothing says it."""
        if "eos_token" in self.special:
            return self.tokenizer.token_to_id(self.special["eos_token"])
        for config in configs:
            end = config.get("eos_token_id")
            end = end[0] if isinstance(end, list) and end else end
            if isinstance(end, int):
                return end
        return None

    @staticmethod
    def _template(folder, config):
        path = folder / "chat_template.jinja"
        if path.is_file():
            return path.read_text(encoding="utf-8")
        template = config.get("chat_template") or read_json(folder / "chat_template.json").get("chat_template")
        if isinstance(template, list):
            template = {entry["name"]: entry["template"] for entry in template}.get("default")
        return template
