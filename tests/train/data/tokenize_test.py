# SPDX-License-Identifier: Apache-2.0
# `sealift-train tokenize` against transformers: the same tokens and the same answers' tokens, by a made model's folder.
# The tokenizer is trained here; templates are like Qwen's (no marks), Llama 3's (with {% generation %}) and Qwen3's
# (earlier turns are written differently). Files are read back by the reader that trains.
#   tokenize_test.py SEALIFT_TRAIN TOKEN_FILE_DUMP    with the Python of torch; PYTHONPATH: the peers
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import tokenizers
import transformers

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "trainer/data/tokenize"))
from token_pieces import shares  # noqa: E402

PROGRAM, DUMP = (str(pathlib.Path(argument).resolve()) for argument in sys.argv[1:3])

QWEN = """{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nYou are a made model.<|im_end|>\\n' }}
{%- endif %}
{%- if tools %}{{- 'Tools: ' + (tools | tojson) + '\\n' }}{%- endif %}
{%- for message in messages %}
    {%- if not (loop.first and message.role == 'system') %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
LLAMA = """{{- bos_token }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
    {%- if message['role'] == 'assistant' %}
        {%- generation %}{{ message['content'] | trim }}{{ '<|eot_id|>' }}{%- endgeneration %}
    {%- else %}
        {{- message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
THINKING = """{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.role == 'assistant' and loop.last %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
    {{- message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>",
           "<|end_header_id|>", "<|eot_id|>"]
CORPUS = ["Which keys are needed to sign a bundle, and who keeps them?", "Two of three keys, and no person keeps two.",
          "system user assistant", "你好，世界。", "The answer is 42; the question was lost.", "Antwort: süß"] * 20


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


CHATS = [
    [user("Which keys are needed?"), assistant("Two of three.")],
    [{"role": "system", "content": "Be short."}, user("你好"), assistant("世界 😀🦭"), user("And who?"),
     assistant("süß ")],
    [user("a"), assistant(" b\n\nc"), user("  d"), assistant("<|im_end|> is a token, as in transformers")],
    [user("one"), assistant("x" * 50)],
]


def make_model(folder, template, end="<|im_end|>", vocabulary=None):
    folder.mkdir(parents=True)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.train_from_iterator(CORPUS, tokenizers.trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    # A limit that a folder brings along must not cut what is trained on.
    tokenizer.enable_truncation(5)
    tokenizer.enable_padding(length=9)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end, "bos_token": "<|begin_of_text|>",
              "pad_token": {"__type": "AddedToken", "content": "<|endoftext|>", "lstrip": False, "rstrip": False,
                            "single_word": False, "normalized": False, "special": True}}
    if template:
        (folder / "chat_template.jinja").write_text(template)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if vocabulary:
        (folder / "config.json").write_text(json.dumps({"vocab_size": vocabulary}))
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


class Tokenize(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.qwen = make_model(cls.folder / "qwen", QWEN)
        cls.llama = make_model(cls.folder / "llama", LLAMA, "<|eot_id|>", vocabulary=70000)
        cls.thinking = make_model(cls.folder / "thinking", THINKING)
        cls.bare = make_model(cls.folder / "bare", None, "<|endoftext|>")

    def run_on(self, lines, *options, model="qwen", cwd=None, python=sys.executable):
        data, self.out = self.folder / "data.jsonl", self.folder / "out.tokens"
        self.out.unlink(missing_ok=True)
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        data.write_bytes(text.encode("utf-8", "surrogateescape"))
        command = [PROGRAM, "tokenize", "--python", python, "--model", self.folder / model, "--data", data, "--out",
                   self.out, *options]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=cwd)

    def tokenize(self, lines, *options, **where):
        """(what was printed, what the reader found)"""
        done = self.run_on(lines, *options, **where)
        self.assertEqual(done.returncode, 0, done.stderr)
        dump = subprocess.run([DUMP, self.out], capture_output=True, text=True)
        self.assertEqual(dump.returncode, 0, dump.stderr)
        self.assertEqual(sorted(path.name for path in self.folder.glob("out.*")), ["out.tokens"])
        printed, read = json.loads(done.stdout), json.loads(dump.stdout)
        self.assertEqual(printed["sha256"], read["sha256"])
        self.assertEqual(printed["answer_tokens"], sum(map(sum, read["counts"])))
        return printed, read

    def counted_text(self, tokenizer, read, index=0):
        return tokenizer.decode([token for token, counts in zip(read["ids"][index], read["counts"][index]) if counts],
                                clean_up_tokenization_spaces=False)

    def refused(self, lines, *reasons, options=(), **where):
        done = self.run_on(lines, *options, **where)
        self.assertEqual(done.returncode, 2, done.stderr)
        for reason in reasons:
            self.assertIn(reason, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(list(self.folder.glob("out.*")), [])

    # -- chats

    def test_tokens_are_those_of_transformers(self):
        for name, tokenizer in (("qwen", self.qwen), ("llama", self.llama)):
            _, read = self.tokenize([{"messages": chat} for chat in CHATS], model=name)
            self.assertEqual(read["ids"], [tokenizer.apply_chat_template(chat)["input_ids"] for chat in CHATS])
            self.assertEqual(read["kind"], "chat")

    def test_marks_of_the_template_are_those_of_transformers(self):
        _, read = self.tokenize([{"messages": chat} for chat in CHATS], model="llama")
        masks = [self.llama.apply_chat_template(chat, return_assistant_tokens_mask=True)["assistant_masks"]
                 for chat in CHATS]
        self.assertEqual(read["counts"], masks)
        self.assertEqual(self.counted_text(self.llama, read, 1), "世界 😀🦭<|eot_id|>süß<|eot_id|>")

    def test_without_marks_the_assistants_turns_count(self):
        _, read = self.tokenize([{"messages": chat} for chat in CHATS])
        for index, chat in enumerate(CHATS):
            said = "".join(turn["content"] + "<|im_end|>\n" for turn in chat if turn["role"] == "assistant")
            self.assertEqual(self.counted_text(self.qwen, read, index), said)

    def test_which_turns_count_is_an_option(self):
        for name, tokenizer, said in (("qwen", self.qwen, "süß <|im_end|>\n"), ("llama", self.llama, "süß<|eot_id|>")):
            _, read = self.tokenize([{"messages": CHATS[1]}], "--loss-on", "last", model=name)
            self.assertEqual(self.counted_text(tokenizer, read), said)
            _, read = self.tokenize([{"messages": CHATS[1]}], "--loss-on", "all", model=name)
            self.assertEqual(sum(read["counts"][0]), len(read["ids"][0]))

    def test_earlier_turns_count_as_the_template_writes_them_once_more_follows(self):
        _, read = self.tokenize([{"messages": CHATS[1]}], model="thinking")
        self.assertEqual(read["ids"][0], self.thinking.apply_chat_template(CHATS[1])["input_ids"])
        self.assertEqual(self.counted_text(self.thinking, read),
                         "世界 😀🦭<|im_end|>\n<think>\n\n</think>\n\nsüß <|im_end|>\n")
        _, read = self.tokenize([{"messages": CHATS[1]}], "--loss-on", "last", model="thinking")
        self.assertEqual(self.counted_text(self.thinking, read), "<think>\n\n</think>\n\nsüß <|im_end|>\n")

    def test_a_chat_may_begin_with_an_answer_where_the_template_looks_at_the_first_message(self):
        _, read = self.tokenize([{"messages": [assistant(" hello "), *CHATS[0]]}])
        self.assertEqual(self.counted_text(self.qwen, read), "hello <|im_end|>\nTwo of three.<|im_end|>\n")

    def test_a_template_that_changes_the_words_of_earlier_turns_is_refused_unless_only_the_last_counts(self):
        template = THINKING.replace("message.content +", "(message.content | upper if message.role == 'assistant' "
                                    "and not loop.last else message.content) +")
        path = self.folder / "shouts.jinja"
        path.write_text(template)
        shout = [user("one"), assistant("two"), user("three"), assistant("four")]
        words = ("--chat-template", path)
        self.refused([{"messages": shout}], "line 1 has a turn 2", "--loss-on last", options=words, model="thinking")
        _, read = self.tokenize([{"messages": shout}], "--loss-on", "last", *words, model="thinking")
        self.assertEqual(self.counted_text(self.thinking, read), "<think>\n\n</think>\n\nfour<|im_end|>\n")

    def test_all_forms_of_a_prompt_with_an_answer_are_one(self):
        system = {"role": "system", "content": "Be short."}
        chat = [system, user("Say\nthis"), assistant("This.")]
        forms = [
            {"messages": chat},
            {"prompt": "Say\nthis", "answer": "This.", "system": "Be short."},
            {"prompt": [system, user("Say\nthis")], "completion": [assistant("This.")]},
            {"query": "Say\nthis", "response": "This.", "system": "Be short.", "history": []},
            {"instruction": "Say", "input": "this", "output": "This.", "system": "Be short.", "id": 7},
            {"messages": chat[1:], "system": "Be short."},
        ]
        _, read = self.tokenize(forms)
        self.assertEqual(len(set(map(tuple, read["ids"]))), 1)
        self.assertEqual(len(set(map(tuple, read["counts"]))), 1)
        _, read = self.tokenize([{"query": "c", "response": "d", "history": [["a", "b"]]},
                                 {"messages": [user("a"), assistant("b"), user("c"), assistant("d")]}])
        self.assertEqual(read["ids"][0], read["ids"][1])

    def test_tools_and_variables_reach_the_template(self):
        tools = [{"type": "function", "function": {"name": "look", "description": "<b>"}}]
        _, read = self.tokenize([{"messages": CHATS[0], "tools": given} for given in (tools, json.dumps(tools))])
        self.assertEqual(read["ids"][0], self.qwen.apply_chat_template(CHATS[0], tools=tools)["input_ids"])
        self.assertEqual(read["ids"][0], read["ids"][1])
        variables = '{"bos_token": "<|eot_id|>"}'
        _, read = self.tokenize([{"messages": CHATS[0]}], "--template-args", variables, model="llama")
        self.assertEqual(read["ids"][0][0], self.llama.convert_tokens_to_ids("<|eot_id|>"))

    def test_a_system_prompt_is_for_chats_without_one(self):
        _, read = self.tokenize([{"messages": CHATS[1]}, {"messages": CHATS[0]}], "--system", "Be kind.")
        self.assertEqual(read["ids"][0], self.qwen.apply_chat_template(CHATS[1])["input_ids"])
        self.assertIn("Be kind.", self.qwen.decode(read["ids"][1]))

    # -- preferences and labels

    def test_all_forms_of_a_preference_are_one(self):
        prompt, chosen, rejected = [user("Which?")], "Two of three.", "All."
        forms = [
            {"prompt": "Which?", "chosen": chosen, "rejected": rejected, "margin": 0.25},
            {"prompt": prompt, "chosen": [assistant(chosen)], "rejected": [assistant(rejected)], "margin": 0.25},
            {"chosen": prompt + [assistant(chosen)], "rejected": prompt + [assistant(rejected)], "margin": 0.25},
            {"messages": prompt + [assistant(chosen)], "rejected_response": rejected, "margin": 0.25},
            {"messages": prompt + [assistant(chosen)], "rejected_messages": prompt + [assistant(rejected)],
             "margin": 0.25},
            {"query": "Which?", "response": chosen, "rejected_response": rejected, "margin": 0.25},
        ]
        _, read = self.tokenize(forms)
        self.assertEqual((read["kind"], read["examples"], read["values"]), ("preference", 6, [0.25] * 6))
        self.assertEqual(len(set(map(tuple, read["ids"]))), 2)
        for index, answer in ((0, chosen), (1, rejected)):
            expected = self.qwen.apply_chat_template(prompt + [assistant(answer)])["input_ids"]
            self.assertEqual(read["ids"][index::2], [expected] * 6)
            self.assertEqual(self.counted_text(self.qwen, read, index), answer + "<|im_end|>\n")

    def test_labelled_answers(self):
        _, read = self.tokenize([{"prompt": "Which?", "completion": "All.", "label": False},
                                 {"messages": CHATS[1], "label": True}])
        self.assertEqual((read["kind"], read["values"]), ("labelled", [0.0, 1.0]))
        self.assertEqual(self.counted_text(self.qwen, read, 1), "süß <|im_end|>\n")

    # -- texts

    def test_a_text_ends_with_the_tokenizers_end(self):
        _, read = self.tokenize([{"text": "The answer"}], model="bare")
        self.assertEqual(read["ids"][0], self.bare.encode("The answer") + [self.bare.eos_token_id])
        self.assertEqual((read["kind"], sum(read["counts"][0])), ("text", len(read["ids"][0])))

    def test_a_long_text_is_split_without_loss(self):
        whole = self.bare.encode(CORPUS[0]) + [self.bare.eos_token_id]
        for most in (2, 5, len(whole)):
            _, read = self.tokenize([{"text": CORPUS[0]}], "--max-length", most, "--truncation-strategy", "split",
                                    model="bare")
            joined = sum(read["ids"], [])
            self.assertEqual(joined, whole[: len(joined)])
            self.assertLessEqual(len(whole) - len(joined), 1)  # a last token alone has nothing to predict

    def test_without_a_template_prompt_and_answer_stand_as_they_are(self):
        for model, options in (("bare", ()), ("qwen", ("--chat-template", "none"))):
            tokenizer = self.bare if model == "bare" else self.qwen
            _, read = self.tokenize([{"prompt": "Which keys", "answer": " are needed?"}], *options, model=model)
            self.assertEqual(read["ids"][0], tokenizer.encode("Which keys are needed?") + [tokenizer.eos_token_id])
            self.assertEqual(self.counted_text(tokenizer, read), " are needed?" + tokenizer.eos_token)
        self.refused([{"messages": CHATS[1]}], "line 1 the prompt is a chat", model="bare")

    # -- the file

    def test_the_file_says_what_it_was_made_of_and_is_the_same_every_time(self):
        printed, read = self.tokenize([{"messages": chat} for chat in CHATS])
        first = self.out.read_bytes()
        again, _ = self.tokenize([{"messages": chat} for chat in CHATS])
        self.assertEqual(first, self.out.read_bytes())
        self.assertEqual(printed, again)
        sha256 = lambda data: hashlib.sha256(data).hexdigest()
        self.assertEqual(read["tokenizer"], sha256((self.folder / "qwen/tokenizer.json").read_bytes()))
        self.assertEqual(read["template"], sha256(QWEN.encode()))
        self.assertEqual((read["token_bytes"], read["vocabulary"]), (2, len(self.qwen)))
        _, read = self.tokenize([{"messages": CHATS[0]}], model="llama")
        self.assertEqual((read["token_bytes"], read["vocabulary"]), (4, 70000))

    def test_many_lines_and_several_files_keep_their_order(self):
        other = self.folder / "other.jsonl"
        other.write_text(json.dumps({"messages": CHATS[2]}) + "\n\n")
        chats = [[user(str(number)), assistant(str(number * number))] for number in range(1200)]
        _, read = self.tokenize([{"messages": chat} for chat in chats], "--data", self.folder / "data.jsonl", other)
        self.assertEqual(read["ids"][700], self.qwen.apply_chat_template(chats[700])["input_ids"])
        self.assertEqual(read["ids"][-1], self.qwen.apply_chat_template(CHATS[2])["input_ids"])
        self.assertEqual(read["examples"], 1201)

    # -- lengths

    def test_what_is_too_long_is_refused_left_out_or_cut_as_asked(self):
        lines = [{"messages": CHATS[0]}, {"messages": CHATS[3]}]
        lengths = [len(self.qwen.apply_chat_template(chat)["input_ids"]) for chat in (CHATS[0], CHATS[3])]
        most = lengths[0]
        self.assertGreater(lengths[1], most)
        self.refused(lines, "line 2", f"has {lengths[1]} tokens, more than --max-length {most}",
                     options=("--max-length", most))
        printed, read = self.tokenize(lines, "--max-length", most, "--truncation-strategy", "delete")
        self.assertEqual((printed["too_long"], printed["bad_lines"], read["examples"]), (1, 0, 1))
        whole = self.qwen.apply_chat_template(CHATS[3])["input_ids"]
        for side, kept in (("right", whole[:most]), ("left", whole[-most:])):
            _, read = self.tokenize(lines, "--max-length", most, "--truncation-strategy", side)
            self.assertEqual(read["ids"][1], kept)
        self.refused(lines, "no token of an answer", options=("--max-length", 5, "--truncation-strategy", "right"))

    def test_a_question_and_its_answer_share_the_length_as_in_llama_factory(self):
        # (question, answer, most) -> what LLaMA-Factory 0.9.5's infer_seqlen says of each.
        for case, kept in {(20, 5, 12): (7, 5), (5, 20, 12): (5, 7), (10, 10, 12): (6, 6), (3, 4, 12): (3, 4),
                           (30, 7, 12): (10, 2), (0, 9, 4): (0, 4)}.items():
            self.assertEqual(shares(*case), kept, case)
        lines = [{"messages": CHATS[2]}]
        _, whole = self.tokenize(lines)
        _, cut = self.tokenize(lines, "--max-length", len(whole["ids"][0]) - 4, "--truncation-strategy", "pairs")
        self.assertEqual(len(cut["ids"][0]), len(whole["ids"][0]) - 4)
        first = whole["counts"][0].index(1) if 1 in whole["counts"][0] else None
        self.assertEqual(cut["ids"][0][:first], whole["ids"][0][:first])

    def test_axolotl_does_not_learn_the_newline_behind_an_answer(self):
        lines = [{"messages": CHATS[1]}]
        _, whole = self.tokenize(lines)
        _, bare = self.tokenize(lines, "--data-format", "axolotl")
        self.assertEqual(bare["ids"], whole["ids"])
        self.assertEqual(sum(whole["counts"][0]) - sum(bare["counts"][0]), 2)

    def test_so_many_rows_of_a_file_are_its_first_or_drawn_ones(self):
        lines = [{"messages": [user(str(number)), assistant("x")]} for number in range(9)]
        _, whole = self.tokenize(lines)
        _, first = self.tokenize(lines, "--max-rows", 3)
        self.assertEqual(first["ids"], whole["ids"][:3])

    # -- refusals

    def test_bad_lines_are_refused_by_number_or_left_out_and_counted(self):
        good = {"messages": CHATS[0]}
        bad = {
            "{": "is no JSON",
            "[" * 100000: "is no JSON",
            '"text"': "is not a JSON object",
            "\udcff": "is not UTF-8",
            '{"prompt": "\\ud800", "answer": "b"}': "surrogate",
            '{"riddle": "?"}': "has no messages",
            '{"messages": []}': "not a list of messages",
            '{"messages": [{"role": "nobody", "content": "x"}]}': "role 'nobody'",
            '{"messages": [{"role": "user", "content": "x"}]}': "does not end with the assistant",
            '{"messages": [{"role": "user", "content": 3}, {"role": "assistant", "content": "x"}]}': "content is int",
            '{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "x", "loss": 0.5}]}':
                "true or false",
            '{"prompt": "a", "query": "b", "answer": "c"}': "has both prompt and query",
            '{"prompt": "a", "answer": 3}': "the answer is int",
            '{"prompt": "a", "answer": "b", "images": ["x.png"]}': "has images",
            '{"prompt": "a", "answer": "b", "tools": "{"}': "tools",
            '{"prompt": "a", "answer": "b", "history": [1]}': "history",
        }
        for line, reason in bad.items():
            with self.subTest(line=line[:60]):
                self.refused([good, line], "line 2", reason, "1 bad lines, nothing was written")
        expected = self.tokenize([good, good])[1]
        printed, read = self.tokenize([good, *bad, good], "--skip-bad-lines", "--kind", "chat")
        self.assertEqual(printed["bad_lines"], len(bad))
        self.assertEqual(read, expected)

    def test_bad_preferences_and_labels_are_refused(self):
        for line, reason in (
            ({"prompt": "a", "chosen": "b"}, "needs a chosen and a rejected"),
            ({"chosen": "b", "rejected": "c"}, "needs a prompt"),
            ({"chosen": [user("a"), assistant("b")], "rejected": [user("x"), assistant("c")]}, "with the same prompt"),
            ({"prompt": "a", "chosen": "b", "rejected": "c", "margin": "much"}, "margin is much"),
            ('{"prompt": "a", "chosen": "b", "rejected": "c", "margin": NaN}', "margin is nan"),
            ('{"prompt": "a", "chosen": "b", "rejected": "c", "margin": 1e300}', "too large"),
        ):
            self.refused([line], "line 1", reason)
        self.refused([{"prompt": "a", "answer": "b", "label": "yes"}], "neither true nor false",
                     options=("--kind", "labelled"))

    def test_kinds_are_not_mixed(self):
        self.refused([{"text": "a b"}, {"messages": CHATS[0]}], "line 2", "text", model="bare")

    def test_what_cannot_work_is_said_before_the_data_is_read(self):
        (self.folder / "empty").mkdir(exist_ok=True)
        self.refused([], "no example is left")
        self.refused([], "has no tokenizer.json", model="empty")
        self.refused([], "max-length", options=("--max-length", "1"))
        self.refused([], "invalid choice", options=("--loss-on", "nothing"))
        self.refused([{"messages": CHATS[0]}], "is for texts",
                     options=("--max-length", "9", "--truncation-strategy", "split"))
        template = self.folder / "broken.jinja"
        template.write_text("{% for %}")
        chosen = ("--chat-template", template)
        self.refused([{"messages": CHATS[0]}], "the chat template cannot be read", options=chosen)
        template.write_text("{{ raise_exception('no tools here') }}")
        self.refused([{"messages": CHATS[0]}], "line 1 is refused", "no tools here", options=chosen)
        template.write_text("{{ messages.__class__.__mro__ }}{{ ''.__class__.__base__.__subclasses__() }}")
        self.refused([{"messages": CHATS[0]}], "line 1 is refused", options=chosen)

    def test_a_tokenizer_of_another_model_is_refused(self):
        small = self.folder / "small"
        if not small.exists():
            make_model(small, QWEN, vocabulary=20)
        self.refused([{"messages": CHATS[0]}], "vocab_size is 20", model="small")

    def test_a_python_that_cannot_be_started_is_named(self):
        self.refused([], "/nowhere/python", "--python", python="/nowhere/python")

    def test_modules_of_the_working_directory_are_not_run(self):
        hostile = self.folder / "hostile"
        hostile.mkdir()
        for name in ("json", "argparse", "tokenizers", "chat_template"):
            (hostile / f"{name}.py").write_text("raise SystemExit('run')")
        self.tokenize([{"messages": CHATS[0]}], cwd=hostile)


if __name__ == "__main__":
    os.environ.pop("PYTHONSAFEPATH", None)
    unittest.main(argv=sys.argv[:1], verbosity=1)
