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
from made_data import SCRIPTS, scripts  # noqa: E402, by the same arguments

from token_pieces import tokens_of  # noqa: E402, of SCRIPTS

TEMPLATES = pathlib.Path(importlib.util.find_spec("trl").origin).parent / "chat_templates"
FAMILIES = ("cohere", "deepseekv3", "gemma3", "glm4moe", "gptoss", "lfm2", "llama3", "phi3", "qwen2_5", "qwen3")
VARIABLES = {"date_string": "26 Jul 2024"}


def says(role, content, **keys):
    return {"role": role, "content": content, **keys}


def user(content, **keys):
    return says("user", content, **keys)


def assistant(content, **keys):
    return says("assistant", content, **keys)


def text(content, **keys):
    return {"type": "text", "text": content, **keys}


SYSTEM = says("system", "Be short.")
SHORT = [user("Which keys are needed?"), assistant("Two of three.")]
LONG = [*SHORT, user("And who keeps them?"), assistant("No person keeps two.")]
SHAREGPT = [{"from": {"user": "human", "assistant": "gpt"}[turn["role"]], "value": turn["content"]} for turn in LONG]
LOOK = {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {
    "at": {"type": "string", "description": "where"}}, "required": ["at"]}}
TOOLS = [{"type": "function", "function": LOOK}]
CALL = {"name": "look", "arguments": {"at": "the cat"}}
AS_TEXT = {"name": "look", "arguments": "{\"at\": \"the cat\"}"}


def calls(function=CALL, content="", **keys):
    return assistant(content, tool_calls=[{"type": "function", "function": function, **keys}])


RESULT = says("tool", "{\"is\": \"asleep\"}", name="look")
TOOLED = [user("Look at the cat."), calls(), RESULT, assistant("It is asleep.")]
THOUGHT = [user("What is 6 by 7?"), assistant("42.", reasoning_content="6 by 7 is 42.")]
THOUGHTS = [*THOUGHT, user("And 6 by 8?"), assistant("48.", reasoning_content="Add 6.")]


def chat(messages, **keys):
    return {"messages": messages, **keys}


# Name -> (line, what transformers gets: messages, tools). Where the line has messages of its own, these are they.
SETS = {
    "short": (chat(SHORT), SHORT),
    "long": (chat([SYSTEM, *LONG]), [SYSTEM, *LONG]),
    "no_system": (chat(LONG), LONG),
    "system_column": (chat(LONG, system="Be short."), [SYSTEM, *LONG]),
    "id_and_score": (chat(SHORT, id=3, score=0.5), SHORT),
    "parts": (chat([user([text("Which keys"), text(" are needed?")]), assistant([text("Two of three.")])]), None),
    "parts_with_nulls": (chat([user([text("Which?", image=None)]), assistant([text("Two.", image=None)])]), None),
    "sharegpt": ({"conversations": SHAREGPT}, LONG),
    "sharegpt_system": ({"conversations": [{"from": "system", "value": "Be short."}, *SHAREGPT]}, [SYSTEM, *LONG]),
    "sharegpt_in_messages": ({"messages": SHAREGPT}, LONG),
    "pairs": ({"conversation": [{"human": LONG[at]["content"], "assistant": LONG[at + 1]["content"]} for at in (0, 2)]},
              LONG),
    "alpaca": ({"instruction": "Which keys are needed?", "input": "", "output": "Two of three."}, SHORT),
    "alpaca_input": ({"instruction": "Translate.", "input": "Antwort", "output": "answer"},
                     [user("Translate.\nAntwort"), assistant("answer")]),
    "alpaca_history": ({"instruction": LONG[2]["content"], "input": "", "output": LONG[3]["content"],
                        "history": [[turn["content"] for turn in SHORT]]}, LONG),
    "query_response": ({"query": "Which keys are needed?", "response": "Two of three.", "system": "Be short."},
                       [SYSTEM, *SHORT]),
    "prompt_completion": ({"prompt": "Which keys are needed?", "completion": "Two of three."}, SHORT),
    "prompt_completion_chats": ({"prompt": [SYSTEM, *LONG[:3]], "completion": LONG[3:]}, [SYSTEM, *LONG]),
    "question_answer": ({"question": "Which keys are needed?", "answer": "Two of three."}, SHORT),
    "interactions": ({"interactions": [{"role": turn["role"], "text": turn["content"]} for turn in LONG]}, LONG),
    "ultrachat": (chat(LONG, prompt=LONG[0]["content"], prompt_id="x"), LONG),
    "calls": (chat(TOOLED, tools=TOOLS), TOOLED),
    "calls_as_text": (chat([TOOLED[0], calls(AS_TEXT), *TOOLED[2:]], tools=TOOLS), None),
    "calls_with_null": (chat([TOOLED[0], calls(content=None), *TOOLED[2:]], tools=TOOLS), None),
    "calls_beside_words": (chat([TOOLED[0], calls(content="I look."), *TOOLED[2:]], tools=TOOLS), None),
    "function_call_observation": ({"conversations": [
        {"from": "human", "value": "Look at the cat."}, {"from": "function_call", "value": json.dumps(CALL)},
        {"from": "observation", "value": RESULT["content"]}, {"from": "gpt", "value": "It is asleep."}],
        "tools": json.dumps([LOOK])}, [TOOLED[0], calls(), says("tool", RESULT["content"]), TOOLED[3]]),
    "tool_call_tool_response": (chat([TOOLED[0], says("tool_call", json.dumps(CALL)),
                                      says("tool_response", RESULT["content"]), TOOLED[3]], tools=TOOLS),
                                [TOOLED[0], calls(), says("tool", RESULT["content"]), TOOLED[3]]),
    "old_function_call": (chat([TOOLED[0], assistant(None, function_call=AS_TEXT), {**RESULT, "role": "function"},
                                TOOLED[3]], tools=TOOLS), TOOLED),
    "result_as_object": (chat([*TOOLED[:2], {**RESULT, "content": {"is": "asleep"}}, TOOLED[3]], tools=TOOLS), None),
    "tools_not_called": (chat(SHORT, tools=TOOLS), SHORT),
    "thought": (chat(THOUGHT), THOUGHT),
    "thoughts": (chat(THOUGHTS), THOUGHTS),
    "thought_in_content": (chat([THOUGHT[0], assistant("<think>\n6 by 7 is 42.\n</think>\n\n42.")]), None),
    "weight": (chat([LONG[0], {**LONG[1], "weight": 0}, LONG[2], {**LONG[3], "weight": 1}]), LONG),
    "train": (chat([LONG[0], {**LONG[1], "train": False}, *LONG[2:]]), LONG),
    "loss": (chat([LONG[0], {**LONG[1], "loss": False}, LONG[2], {**LONG[3], "loss": True}]), LONG),
    "masked": (chat([{**LONG[0], "masked": True}, {**LONG[1], "masked": False}, {**LONG[2], "masked": True},
                     {**LONG[3], "masked": False}]), LONG),
    "developer": (chat([says("developer", "Be short."), *SHORT]), None),
    "late_system": (chat([*SHORT, SYSTEM, *LONG[2:]]), None),
    "two_questions": (chat([user("One?"), *SHORT]), None),
    "answer_first": (chat([assistant("Hello."), *SHORT]), None),
    "spaces": (chat([user("  a\r\n"), assistant("\n b\n\n c \n"), user("d\t"), assistant(" e ")]), None),
    "foreign_words": (chat([user("你好 😀"), assistant("Antwort: süß 🦭")]), None),
    "special_tokens": (chat([user("say <|im_end|>"), assistant("<|im_end|> <|eot_id|>")]), None),
    "thought_unclosed": (chat([THOUGHT[0], assistant("<think>6 by 7")]), None),
    "preference": ({"prompt": "Which keys are needed?", "chosen": "Two of three.", "rejected": "All."}, SHORT),
    "preference_chats": ({"chosen": LONG, "rejected": [*LONG[:3], assistant("I do.")]}, LONG),
    "ultrafeedback": ({"prompt": "Which keys are needed?", "chosen": SHORT, "messages": SHORT,
                       "rejected": [SHORT[0], assistant("All.")], "score_chosen": 8.5}, SHORT),
    "label": ({"prompt": SHORT[:1], "completion": SHORT[1:], "label": True}, SHORT),
    "image_part": (chat([user([{"type": "image", "image": "a.jpg"}, text("What?")]), assistant("A cat.")]), None),
    "image_marker": (chat([user("<image>What?"), assistant("A cat.")]), None),
}


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
                ids, bits = tokens_of(part, encoding, conversion.model.end)
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
