# SPDX-License-Identifier: Apache-2.0
# What tests of training data share: a small model with templates, the scripts of `sealift-train tokenize` in this
# process, and what is learned of given lines, read back by the reader that trains.
# In one process, since a start of Python with its libraries takes longer than all lines of a test.
import contextlib
import importlib.util
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import tokenizers

SCRIPTS, DUMP = (str(pathlib.Path(argument).resolve()) for argument in sys.argv[1:3])
sys.path.insert(0, SCRIPTS)
spec = importlib.util.spec_from_file_location("tokenize_main", SCRIPTS + "/__main__.py")
scripts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(scripts)

# As Qwen3's: content other than text is left out, without a word.
SKIPS = """{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.content is string %}{{ m.content }}{% endif %}{% for c in m.tool_calls or [] %}
<call>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
MARKS = """{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{% else %}{{ m.content }}\
<|im_end|>{% endif %}

{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
NO_TOOLS = SKIPS.replace("m.tool_calls or []", "[]")
LAST_THOUGHTS = """{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content and loop.last %}<think>{{ m.reasoning_content }}</think>{% endif %}\
{{ m.content.split('</think>')[-1] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
# As Qwen3's: the last answer has thoughts, empty ones too, and an earlier one has none.
THINKS = """{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' and loop.last %}{{ '<think>\\n' + (m.reasoning_content or '') + '\\n</think>\\n\\n' }}{% endif %}\
{{ m.content.split('</think>')[-1].lstrip() }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}"""
NO_SYSTEM = "{% for m in messages if m.role != 'system' %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" \
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
TEMPLATES = {"skips": SKIPS, "marks": MARKS, "no_tools": NO_TOOLS, "last_thoughts": LAST_THOUGHTS, "no_system": NO_SYSTEM,
             "thinks": THINKS}


def user(content, **keys):
    return {"role": "user", "content": content, **keys}


def assistant(content, **keys):
    return {"role": "assistant", "content": content, **keys}


def text(content, **keys):
    return {"type": "text", "text": content, **keys}


class DataTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        cls.tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        cls.tokenizer.decoder = tokenizers.decoders.ByteLevel()
        alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
        cls.tokenizer.train_from_iterator(["hello world what is it? a cat"], tokenizers.trainers.BpeTrainer(
            vocab_size=300, special_tokens=["<|im_start|>", "<|im_end|>"], initial_alphabet=alphabet,
            show_progress=False))
        for name, template in TEMPLATES.items():
            (cls.folder / name).mkdir()
            cls.tokenizer.save(str(cls.folder / name / "tokenizer.json"))
            (cls.folder / name / "chat_template.jinja").write_text(template)
            (cls.folder / name / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}')

    def run_on(self, data, *options, model="skips"):
        """(code, what was printed, what was said)"""
        out, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
            code = scripts.main(list(map(str, ["--model", self.folder / model, "--out", self.folder / "out", "--data",
                                               *data, *options])))
        return code, out.getvalue(), said.getvalue()

    def lines(self, *lines):
        path = self.folder / "data.jsonl"
        path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        return [path]

    def taken(self, data, *options, **where):
        """(learned texts of each sequence, what was printed, what was said)"""
        code, out, said = self.run_on(data, *options, **where)
        self.assertEqual(code, 0, said)
        read = json.loads(subprocess.run([DUMP, self.folder / "out"], capture_output=True, text=True, check=True).stdout)
        self.read = read
        self.whole = [self.tokenizer.decode(ids, skip_special_tokens=False) for ids in read["ids"]]
        learned = [self.tokenizer.decode([token for token, counts in zip(ids, bits) if counts], skip_special_tokens=False)
                   for ids, bits in zip(read["ids"], read["counts"])]
        return learned, json.loads(out), said

    def learned(self, *lines, options=(), **where):
        return self.taken(self.lines(*lines), *options, **where)[0]

    def refused(self, line, *reasons, options=(), **where):
        with self.subTest(line=line):
            code, _, said = self.run_on(self.lines(line), *options, **where)
            self.assertEqual(code, 2, said)
            for reason in (*reasons, "data.jsonl line 1"):
                self.assertIn(reason, said)

    def same(self, lines, expected, *options):
        """Each of `lines` becomes what `expected` does."""
        learned = self.learned(*lines, expected, options=options)
        for at, line in enumerate(lines):
            with self.subTest(line=line):
                self.assertEqual((self.whole[at], learned[at]), (self.whole[-1], learned[-1]))
