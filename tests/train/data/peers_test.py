# SPDX-License-Identifier: Apache-2.0
# Data sets as each public format has them, times chat templates of ten families: the tokens that `sealift-train
# tokenize` makes of a line, and which of them are learned, against transformers' apply_chat_template with its masks.
# Each difference stands on a page with its reason; one that does not stand there fails, and so does a row without one.
#   peers_test.py SCRIPTS TOKEN_FILE_DUMP PAGE    with the Python of torch; PYTHONPATH: the peers
import fnmatch
import importlib.util
import json
import pathlib
import re
import sys
import tempfile
import unittest

import tokenizers
import transformers

PAGE = pathlib.Path(sys.argv[3]).resolve()
from data_sets import SETS, TOOLS  # noqa: E402
from made_data import SCRIPTS, scripts  # noqa: E402, by the same arguments

from token_pieces import tokens_of  # noqa: E402, of SCRIPTS

TEMPLATES = pathlib.Path(importlib.util.find_spec("trl").origin).parent / "chat_templates"
FAMILIES = ("cohere", "deepseekv3", "gemma3", "glm4moe", "gptoss", "lfm2", "llama3", "phi3", "qwen2_5", "qwen3")
VARIABLES = {"date_string": "26 Jul 2024"}


def rows_of_page():
    """(sets, families, ours, reason) of each row of the page's table."""
    rows = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[0].startswith("`"):
            rows.append(([re.findall(r"`([^`]+)`", cell) for cell in cells[:2]], cells[2], cells[3]))
    return rows


class Peers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
        tokenizer.train_from_iterator(["Which keys are needed? Two of three. No person keeps two.", "你好 süß"] * 20,
                                      tokenizers.trainers.BpeTrainer(
            vocab_size=400, special_tokens=["<s>", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>"],
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
        for family in FAMILIES:
            (cls.folder / family).mkdir()
            tokenizer.save(str(cls.folder / family / "tokenizer.json"))
            template = (TEMPLATES / f"{family}_training.jinja").read_text(encoding="utf-8")
            (cls.folder / family / "chat_template.jinja").write_text(template, encoding="utf-8")
            (cls.folder / family / "tokenizer_config.json").write_text(json.dumps(
                {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "bos_token": "<s>"}))

    def ours(self, family):
        """Of each set the tokens and bits of its first sequence, or why it is refused."""
        conversion = scripts.Conversion(scripts.options_of([
            "--model", str(self.folder / family), "--data", "none", "--out", str(self.folder / "out"),
            "--template-args", json.dumps(VARIABLES)]))
        found = {}
        for name, (line, _) in SETS.items():
            conversion.report.line = lambda where, reason, name=name: found.__setitem__(name, f"refused: {reason}")
            conversion.kind, examined = "auto", conversion.examine(name, line)
            if examined:
                part = examined[2][0]
                encoding = conversion.model.tokenizer.encode(part.text, add_special_tokens=part.special)
                ids, bits = tokens_of(part, [encoding], conversion.model)
                found[name] = ids, [int(chr(bit)) for bit in bits], examined[1].kind
            if conversion.writer:
                conversion.writer.close()
                conversion.writer = None
        return found

    def theirs(self, family):
        tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(self.folder / family)
        found = {}
        for name, (line, messages) in SETS.items():
            tools = TOOLS if line.get("tools") else None
            try:
                made = tokenizer.apply_chat_template(messages or line["messages"], tools=tools, return_dict=True,
                                                     return_assistant_tokens_mask=True, **VARIABLES)
                found[name] = made["input_ids"], made["assistant_masks"]
            except Exception as error:  # whatever a template or transformers throws
                found[name] = f"refused: {error}"
        return found

    def outcome(self, ours, theirs):
        """In a word; empty where they agree."""
        if isinstance(ours, str) or isinstance(theirs, str):
            both = isinstance(ours, str) and isinstance(theirs, str)
            return "" if both else "refused" if isinstance(ours, str) else "taken"
        if ours[0] != theirs[0]:
            return "other tokens"
        if ours[2] != "chat":  # as TRL: all that follows the prompt
            begin, marks = ours[1].index(1), "".join(map(str, theirs[1]))
            end = len(marks.rstrip("0"))
            return "" if all(ours[1][begin:]) and begin <= marks.rfind("0", 0, end) + 1 < end else "other answers"
        if ours[1] != theirs[1]:
            return "fewer learned" if all(a <= b for a, b in zip(ours[1], theirs[1])) else "others learned"
        return ""

    def test_each_difference_from_transformers_stands_on_the_page_with_its_reason(self):
        self.assertGreaterEqual((len(SETS), len(FAMILIES)), (40, 10))
        found, agree = {}, 0
        for family in FAMILIES:
            ours, theirs = self.ours(family), self.theirs(family)
            for name in SETS:
                if word := self.outcome(ours[name], theirs[name]):
                    found[name, family] = word, ours[name], theirs[name]
                else:
                    agree += 1
        used = set()
        for (name, family), (word, ours, theirs) in found.items():
            match = next((at for at, ((sets, families), outcome, reason) in enumerate(rows_of_page())
                          if any(fnmatch.fnmatch(name, each) for each in sets)
                          and any(fnmatch.fnmatch(family, each) for each in families) and outcome == word and reason), None)
            with self.subTest(set=name, family=family):
                self.assertIsNotNone(match, f"{word}\n  ours   {str(ours)[:600]}\n  theirs {str(theirs)[:600]}")
            used.add(match)
        for at, row in enumerate(rows_of_page()):
            with self.subTest(row=row):
                self.assertIn(at, used, "the page has a difference that there is not")
        print(f"{agree} of {len(SETS) * len(FAMILIES)} agree, {len(found)} differ on purpose", file=sys.stderr)


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    unittest.main(argv=sys.argv[:1], verbosity=1)
