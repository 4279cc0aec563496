# SPDX-License-Identifier: Apache-2.0
# Folders whose tokenizer is more than tokenizer.json: tokens and end tokens that other files name, several templates.
# Held to transformers' AutoTokenizer of the same folder, token by token; what cannot be read of the tokens is a note.
# Public reports were rebuilt: special tokens that fell into pieces, texts that never ended, tool templates not taken.
#   tokenizers_test.py SCRIPTS TOKEN_FILE_DUMP    with the Python of torch; PYTHONPATH: the peers
import json
import unittest

import transformers

from made_data import MARKS, SKIPS, DataTest, assistant, user

CALL = {"content": "<|call|>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
TOOLS = [{"type": "function", "function": {"name": "count", "parameters": {"type": "object", "properties": {}}}}]
CHAT = {"messages": [user("hello"), assistant("<|call|>world")]}


class Folders(DataTest):
    def made(self, name, template=SKIPS, files=None, **config):
        """A model's folder; files: further ones by name, as JSON or as text."""
        folder = self.folder / name
        folder.mkdir()
        self.tokenizer.save(str(folder / "tokenizer.json"))
        about = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", **config}
        about.update({"chat_template": template} if template else {})
        for path, content in {"tokenizer_config.json": about, **(files or {})}.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(content if isinstance(content, str) else json.dumps(content))
        return name

    def is_as_in_transformers(self, name, line, **more):
        """The tokens of a chat are AutoTokenizer's; what was said."""
        _, _, said = self.taken(self.lines(line), *more.get("options", ()), model=name)
        theirs = transformers.AutoTokenizer.from_pretrained(self.folder / name)
        ids = theirs.apply_chat_template(line["messages"], tools=line.get("tools"), tokenize=True, return_dict=False)
        self.assertEqual(self.ids[0], list(ids))
        return said

    def taken(self, data, *options, **where):
        found = super().taken(data, *options, **where)
        self.ids = self.read["ids"]
        return found

    def test_tokens_that_stand_beside_tokenizer_json_are_whole(self):
        number = self.tokenizer.get_vocab_size()
        for name, more in (("config", {"added_tokens_decoder": {str(number): CALL}}),
                           ("list", {"additional_special_tokens": ["<|call|>"]}),
                           ("file", {"files": {"added_tokens.json": {"<|call|>": number}}}),
                           ("map", {"files": {"special_tokens_map.json": {"pad_token": "<|call|>"}}})):
            with self.subTest(name=name):
                said = self.is_as_in_transformers(self.made(f"beside_{name}", **more), CHAT)
                self.assertIn(number, self.ids[0])
                self.assertNotIn("has the number", said)

    def test_a_number_that_the_tokenizer_does_not_give_is_told(self):
        number = self.tokenizer.get_vocab_size()
        name = self.made("elsewhere", added_tokens_decoder={str(number + 7): CALL})
        said = self.is_as_in_transformers(name, CHAT)
        self.assertIn(f"'<|call|>' has the number {number + 7}", said)

    def test_an_end_token_without_a_number_gets_the_next_one_and_ends_texts(self):
        name = self.made("no_end", template=None, eos_token="<|stop|>")
        self.taken(self.lines({"text": "hello"}), model=name)
        theirs = transformers.AutoTokenizer.from_pretrained(self.folder / name)
        self.assertEqual(self.ids[0], [*theirs("hello").input_ids, theirs.eos_token_id])

    def test_a_line_with_tools_takes_the_template_of_that_name(self):
        with_tools = "TOOLS {{ tools | length }}\n" + SKIPS
        named = [{"name": "default", "template": SKIPS}, {"name": "tool_use", "template": with_tools}]
        files = {"chat_template.jinja": SKIPS, "additional_chat_templates/tool_use.jinja": with_tools}
        for name in (self.made("named", template=named), self.made("filed", template="not this", files=files)):
            self.is_as_in_transformers(name, {**CHAT, "tools": TOOLS})
            self.assertTrue(self.whole[0].startswith("TOOLS 1"))
            self.is_as_in_transformers(name, CHAT)
            self.assertFalse(self.whole[0].startswith("TOOLS"))

    def test_several_templates_without_a_default_are_named(self):
        name = self.made("no_default", template=[{"name": "rag", "template": SKIPS}])
        code, _, said = self.run_on(self.lines(CHAT), model=name)
        self.assertEqual(code, 2)
        self.assertIn("the chat templates rag and none is the default", said)

    def test_marks_that_end_before_the_end_token_are_told_of(self):
        short = MARKS.replace("<|im_end|>{% endgeneration %}", "{% endgeneration %}<|im_end|>")
        _, _, said = self.taken(self.lines(CHAT), model=self.made("short", template=short))
        self.assertIn("does not learn to end there", said)
        _, _, said = self.taken(self.lines(CHAT), model=self.made("whole", template=MARKS))
        self.assertNotIn("does not learn", said)

    def test_flags_that_tokenizer_json_does_not_follow_are_told_of(self):
        _, _, said = self.taken(self.lines(CHAT), model=self.made("flags", bos_token="<|im_start|>", add_bos_token=True))
        self.assertIn("add_bos_token: true, and tokenizer.json does otherwise", said)
        _, _, said = self.taken(self.lines(CHAT), model=self.made("agree", bos_token="<|im_start|>", add_bos_token=False))
        self.assertNotIn("does otherwise", said)


if __name__ == "__main__":
    unittest.main(argv=["tokenizers_test.py"], verbosity=1)
