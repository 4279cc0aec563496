# SPDX-License-Identifier: Apache-2.0
# The made data sets through the trainers that their formats come from: TRL, LLaMA-Factory, axolotl and ms-swift load and
# preprocess each line themselves, and `sealift-train tokenize --data-format PROJECT` is held to that, token by token.
# Each difference stands on the page with its reason; one that does not stand there fails, and so does a row without one.
# By hand, since the projects are gigabytes: projects_test.sh installs them and runs this.
#   projects_test.py SCRIPTS TOKEN_FILE_DUMP PAGE PROJECT=PYTHON…    with the Python of torch; PYTHONPATH: the peers
import fnmatch
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import tokenizers

PAGE = pathlib.Path(sys.argv[3]).resolve()
PROJECTS = dict(argument.split("=", 1) for argument in sys.argv[4:])
HERE = pathlib.Path(__file__).resolve().parent
from data_sets import SETS  # noqa: E402
from made_data import SCRIPTS, scripts  # noqa: E402, by the same arguments

from token_pieces import tokens_of  # noqa: E402, of SCRIPTS

TEMPLATES = pathlib.Path(importlib.util.find_spec("trl").origin).parent / "chat_templates"
FAMILIES = ("qwen2_5", "qwen3")  # of which all four have the template
END_OF_TURN = ()  # its token and that of a newline, once there is a tokenizer


def rows_of_page():
    """(sets, projects, families, ours, reason) of each row of the page's table of projects."""
    rows = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0].startswith("`"):
            rows.append((*(re.findall(r"`([^`]+)`", cell) for cell in cells[:3]), cells[3], cells[4]))
    return rows


def newlines(ids):
    """Where the newline after the end of a turn is."""
    return {at + 1 for at, pair in enumerate(zip(ids, ids[1:])) if pair == END_OF_TURN}


def outcome(ours, theirs):
    """In a word; empty where they agree."""
    if isinstance(ours, str) or isinstance(theirs, str):
        both = isinstance(ours, str) and isinstance(theirs, str)
        return "" if both else "refused" if isinstance(ours, str) else "taken"
    if ours[0] != theirs[0]:
        return "other tokens"
    if ours[1] == theirs[1]:
        return ""
    newline = newlines(ours[0])
    if [int(bit and at not in newline) for at, bit in enumerate(ours[1])] == theirs[1]:
        return "newlines too"
    less, more = (all(a <= b for a, b in zip(*pair)) for pair in ((ours[1], theirs[1]), (theirs[1], ours[1])))
    return "fewer learned" if less else "more learned" if more else "others learned"


class Projects(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
        special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
        tokenizer.train_from_iterator(["Which keys are needed? Two of three. No person keeps two.", "你好 süß"] * 20,
                                      tokenizers.trainers.BpeTrainer(
            vocab_size=400, special_tokens=special, show_progress=False,
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
        for family in FAMILIES:
            (cls.folder / family).mkdir()
            tokenizer.save(str(cls.folder / family / "tokenizer.json"))
            template = (TEMPLATES / f"{family}.jinja").read_text(encoding="utf-8")
            (cls.folder / family / "chat_template.jinja").write_text(template, encoding="utf-8")
            (cls.folder / family / "tokenizer_config.json").write_text(json.dumps(
                {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}))
            (cls.folder / family / "config.json").write_text(json.dumps(
                {"model_type": "qwen3" if family == "qwen3" else "qwen2", "vocab_size": 512, "hidden_size": 8,
                 "architectures": ["Qwen3ForCausalLM" if family == "qwen3" else "Qwen2ForCausalLM"],
                 "max_position_embeddings": 4096}))
        cls.tokenizer = tokenizer
        global END_OF_TURN
        END_OF_TURN = (tokenizer.token_to_id("<|im_end|>"), tokenizer.encode("\n").ids[0])
        cls.files = {}
        for name, (line, _) in SETS.items():
            path = cls.folder / f"{name}.jsonl"
            path.write_text(json.dumps(line) + "\n")
            cls.files[name] = {"file": str(path), "line": line}
        (cls.folder / "job.json").write_text(json.dumps(cls.files))

    def ours(self, project, family):
        """Of each set the tokens and bits of its first sequence, or why it is refused."""
        conversion = scripts.Conversion(scripts.options_of([
            "--model", str(self.folder / family), "--data", "none", "--out", str(self.folder / "out"),
            "--data-format", project, *(["--alpaca-prompts"] if project == "axolotl" else [])]))
        found = {}
        for name, (line, _) in SETS.items():
            conversion.report.line = lambda where, reason, name=name: found.__setitem__(name, f"refused: {reason}")
            conversion.kind, examined = "auto", conversion.examine(name, json.loads(json.dumps(line)))
            if examined:
                part = examined[2][0]
                encodings = [conversion.model.tokenizer.encode(piece, add_special_tokens=part.special)
                             for piece in part.pieces]
                ids, bits = tokens_of(part, encodings, conversion.model)
                found[name] = list(ids), [int(chr(bit)) for bit in bits]
            if conversion.writer:
                conversion.writer.close()
                conversion.writer = None
        return found

    def theirs(self, project, family):
        out = self.folder / "theirs.json"
        out.unlink(missing_ok=True)
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH" or project == "trl"}
        done = subprocess.run([PROJECTS[project], HERE / "project_says.py", project, self.folder / family, family,
                               self.folder / "job.json", out], capture_output=True, text=True, env=environment,
                              cwd=self.folder)
        self.assertTrue(out.exists(), f"{project}: {done.stderr[-3000:]}")
        return {name: tuple(each) if isinstance(each, list) else each for name, each in json.loads(out.read_text()).items()}

    def shown(self, made):
        if isinstance(made, str):
            return made
        learned = [token for token, counts in zip(*made) if counts]
        return (f"{self.tokenizer.decode(made[0], skip_special_tokens=False)!r}\n           learned "
                f"{self.tokenizer.decode(learned, skip_special_tokens=False)!r}")

    def test_each_difference_from_a_project_stands_on_the_page_with_its_reason(self):
        rows, used = rows_of_page(), set()
        for project in PROJECTS:
            agree = differ = 0
            for family in FAMILIES:
                ours, theirs = self.ours(project, family), self.theirs(project, family)
                for name in SETS:
                    if theirs[name] is None:
                        continue
                    word = outcome(ours[name], theirs[name])
                    if not word:
                        agree += 1
                        continue
                    differ += 1
                    match = next((at for at, (*names, ours_is, reason) in enumerate(rows) if ours_is == word and reason
                                  and all(any(fnmatch.fnmatch(value, each) for each in patterns)
                                          for value, patterns in zip((name, project, family), names))), None)
                    used.add(match)
                    with self.subTest(set=name, project=project, family=family):
                        self.assertIsNotNone(match, f"{word}\n  ours   {self.shown(ours[name])}\n"
                                                    f"  theirs {self.shown(theirs[name])}")
            print(f"{project}: {agree} of {agree + differ} agree, {differ} differ", file=sys.stderr, flush=True)
        for at, row in enumerate(rows):
            if set(PROJECTS) & {project for project in PROJECTS for each in row[1] if fnmatch.fnmatch(project, each)}:
                with self.subTest(row=row):
                    self.assertIn(at, used, "the page has a difference that there is not")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
