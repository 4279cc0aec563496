# SPDX-License-Identifier: Apache-2.0
# A Hugging Face model's folder -> what of it says how text becomes tokens: tokenizer, special tokens, chat template.
# Second step of `sealift-train tokenize`, once a run.
# By `tokenizers` alone, which an environment has where it has none of the large libraries.
import hashlib
import json

import tokenizers

from added_tokens import add_missing


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
        roles = read_json(folder / "special_tokens_map.json")
        # A config that lists its tokens is newer than the map, and the map newer than one that does not.
        merged = {**roles, **config} if "added_tokens_decoder" in config else {**config, **roles}
        self.special = self._special(merged)
        self.notes = [f"{name!r} has the number {number} in tokenizer_config.json or added_tokens.json, and {found} in "
                      "tokenizer.json, which counts, as in transformers" for name, number, found in
                      add_missing(self.tokenizer, merged, read_json(folder / "added_tokens.json"))]
        self.vocabulary = (shape.get("vocab_size") or (shape.get("text_config") or {}).get("vocab_size")
                           or self.tokenizer.get_vocab_size())
        self.ends = tuple(token.content for token in self.tokenizer.get_added_tokens_decoder().values() if token.special)
        begin = self.special.get("bos_token")
        self.begin = begin and self.tokenizer.token_to_id(begin)
        self.end = self._end(shape, read_json(folder / "generation_config.json"))
        self.templates = self._templates(folder, config)
        self.notes += self._disagreements(config)

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

    def _disagreements(self, config):
        """A note for each flag of tokenizer_config.json that says another thing than tokenizer.json does."""
        ids = self.tokenizer.encode("a").ids
        for name, token, at in (("add_bos_token", self.begin, 0), ("add_eos_token", self.end, -1)):
            if isinstance(config.get(name), bool) and token is not None and ids and config[name] != (ids[at] == token):
                yield (f"tokenizer_config.json has {name}: {str(config[name]).lower()}, and tokenizer.json does otherwise, "
                       "which counts, as in transformers")

    @staticmethod
    def _templates(folder, config):
        """The chat templates by name; most models have one, `default`. Files are stronger than tokenizer_config.json."""
        files = {path.stem: path for path in (folder / "additional_chat_templates").glob("*.jinja")}
        files.update({"default": path for path in [folder / "chat_template.jinja"] if path.is_file()})
        if files:
            return {name: path.read_text(encoding="utf-8") for name, path in files.items()}
        template = config.get("chat_template") or read_json(folder / "chat_template.json").get("chat_template")
        if isinstance(template, list):
            return {entry["name"]: entry["template"] for entry in template}
        return template if isinstance(template, dict) else {"default": template} if template else {}
