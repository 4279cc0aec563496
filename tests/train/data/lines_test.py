# SPDX-License-Identifier: Apache-2.0
# What becomes of a line of training data: nothing is dropped or learned by mistake, and nothing without a word.
# Public reports were rebuilt: parts that render as nothing, masks that nobody heeds, keys that nobody reads.
#   lines_test.py SCRIPTS TOKEN_FILE_DUMP    with the Python of torch; PYTHONPATH: the peers
import json
import sys
import unittest

from made_data import SKIPS, DataTest, assistant, text, user


class Content(DataTest):
    def test_parts_of_text_are_joined_before_the_template_sees_them(self):
        self.same([{"messages": [user([text("hello")]), assistant([text("wor"), text("ld")])]},
                   {"messages": [user([{"text": "hello"}]), assistant([{"type": "output_text", "text": "world"}])]},
                   {"messages": [user([text("hello", image=None)]), assistant("world")]},
                   {"prompt": [user([text("hello")])], "completion": [assistant([text("world")])]}],
                  {"messages": [user("hello"), assistant("world")]})

    def test_other_parts_are_refused_by_name_and_line(self):
        for part, name in (({"type": "image", "image": "a.jpg"}, "'image'"), ({"type": "image_url"}, "'image_url'"),
                           ({"type": "video"}, "'video'"), ({"type": "input_audio"}, "'input_audio'"),
                           (text("a", image="a.jpg"), "image"), ("bare", "'str'"), ({"type": "tool_use"}, "'tool_use'")):
            self.refused({"messages": [user([part, text("what?")]), assistant("a cat")]}, name, "message 1")
            self.refused({"prompt": "a", "chosen": [assistant([part])], "rejected": [assistant("b")]}, name)
        self.refused({"messages": [user("what?", images=["a.jpg"]), assistant("a cat")]}, "images")

    def test_markers_of_other_modalities_are_refused_and_can_be_words(self):
        for marker in ("<image>", "<video>", "<audio>", "<|image_pad|>", "<|vision_start|>", "<start_of_image>"):
            self.refused({"messages": [user(f"what? {marker}"), assistant("a cat")]}, marker, "--literal-markers")
            self.refused({"query": "a", "response": f"b {marker}"}, marker)
        learned = self.learned({"query": "a", "response": "<image>"}, options=("--literal-markers",))
        self.assertEqual(learned, ["<image><|im_end|>\n"])
        self.assertEqual(self.learned({"text": "<video> of a page"}), ["<video> of a page<|im_end|>"])

    def test_an_answer_that_the_template_leaves_out_is_a_bad_line(self):
        call = {"type": "function", "function": {"name": "look", "arguments": {"at": "cat"}}}
        chat = {"messages": [user("hello"), assistant("", tool_calls=[call])]}
        self.refused(chat, "leaves out the tool calls", "message 2", model="no_tools")
        self.assertIn('<call>{"name": "look", "arguments": {"at": "cat"}}</call>', self.learned(chat)[0])
        only_users = self.folder / "only_users.jinja"
        only_users.write_text("{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}x\n{% endfor %}")
        # the words are in the text, since the question has them: the answer's own are not
        self.refused({"messages": [user("say hello"), assistant("hello")]}, "leaves out the words", "message 2",
                     options=("--chat-template", only_users))
        self.refused({"prompt": "say hello", "chosen": "hello", "rejected": "world"}, "leaves out the words",
                     options=("--chat-template", only_users))

    def test_what_else_a_template_leaves_out_is_counted_and_said(self):
        chat = [{"role": "system", "content": "be short"}, user("hello"), assistant("world")]
        _, printed, said = self.taken(self.lines({"messages": chat}, {"messages": chat}), model="no_system")
        self.assertEqual(printed["left_out_by_template"], {"words of system": 2})
        self.assertIn("words of system (2, first", said)

    def test_thoughts_that_a_template_drops_are_counted_and_said(self):
        chat = [user("a"), assistant("b", reasoning_content="since"), user("c"), assistant("<think>hm</think>d")]
        learned, printed, said = self.taken(self.lines({"messages": chat}), "--loss-on", "last", model="last_thoughts")
        self.assertEqual((learned, printed["left_out_by_template"]), (["d<|im_end|>\n"], {"thoughts": 2}))
        self.assertIn("left out by the chat template", said)
        kept = [user("a"), assistant("b", reasoning_content="since")]
        learned, printed, _ = self.taken(self.lines({"messages": kept}), model="last_thoughts")
        self.assertEqual((learned, printed["left_out_by_template"]), (["<think>since</think>b<|im_end|>\n"], {}))

    def test_a_tools_result_that_is_an_object_is_its_json(self):
        call = {"type": "function", "function": {"name": "look", "arguments": "{\"at\": \"cat\"}"}}
        for result, written in (({"is": "süß"}, '{"is": "süß"}'), ([1, 2], "[1, 2]"), (3, "3"), ("cat", "cat"),
                                ([text("ca"), text("t")], "cat")):
            self.learned({"messages": [user("a"), assistant(None, tool_calls=[call]),
                                       {"role": "tool", "content": result}, assistant("b")]})
            self.assertIn(f"<|im_start|>tool\n{written}<|im_end|>", self.whole[0])
            self.assertIn('"arguments": {"at": "cat"}', self.whole[0])  # text of JSON is not quoted once more


class Thoughts(DataTest):
    EMPTY = "<think>\n\n</think>\n\n"
    CHAT = {"messages": [user("a"), assistant("b"), user("c"), assistant("d")]}

    def test_each_answer_has_thoughts_in_the_data_of_a_project_that_writes_them(self):
        empty, end = self.EMPTY, "<|im_end|>\n"
        for project, learned, blocks in (
                ("any", f"b{end}{empty}d{end}", 1), ("axolotl", "b<|im_end|>d<|im_end|>", 1),
                ("llama-factory", f"{empty}b{end}{empty}d{end}", 2), ("trl", f"{empty}b{end}{empty}d{end}", 2),
                ("ms-swift", f"b{end}d{end}", 2)):
            with self.subTest(project=project):
                self.assertEqual(self.learned(self.CHAT, options=("--data-format", project), model="thinks"), [learned])
                self.assertEqual(self.whole[0].count(empty), blocks)

    def test_of_the_last_answer_alone_and_where_it_is_switched_off_the_template_says_it(self):
        for project in ("llama-factory", "trl", "ms-swift"):
            for options in (("--loss-on", "last"), ("--no-empty-thoughts",)):
                self.learned(self.CHAT, options=("--data-format", project, *options), model="thinks")
                self.assertEqual(self.whole[0].count("<think>"), 1, project)
        self.learned(self.CHAT, options=("--data-format", "ms-swift"))  # a model that does not think
        self.assertNotIn("<think>", self.whole[0])

    def test_thoughts_of_earlier_answers_stay_where_each_has_them(self):
        for first in (assistant("b", reasoning_content="since"), assistant("<think>\nsince\n</think>\n\nb")):
            chat = {"messages": [user("a"), first, *self.CHAT["messages"][2:]]}
            for project, learned in (("llama-factory", self.EMPTY), ("ms-swift", "")):
                taken, printed, _ = self.taken(self.lines(chat), "--data-format", project, model="thinks")
                self.assertEqual(taken, [f"<think>\nsince\n</think>\n\nb<|im_end|>\n{learned}d<|im_end|>\n"])
                self.assertEqual(printed["left_out_by_template"], {})
            _, printed, _ = self.taken(self.lines(chat), model="thinks")
            self.assertEqual(printed["left_out_by_template"], {"thoughts": 1})

    def test_of_a_prompt_with_a_completion_trl_learns_the_completion_alone(self):
        line = {"prompt": self.CHAT["messages"][:3], "completion": self.CHAT["messages"][3:]}
        self.assertEqual(self.learned(line, options=("--data-format", "trl"), model="thinks"), [f"{self.EMPTY}d<|im_end|>\n"])
        self.assertEqual(self.whole[0].count(self.EMPTY), 1)

    def test_of_preferences_an_empty_thought_counts_as_the_project_has_it(self):
        pair = {"prompt": "a", "chosen": "b", "rejected": "c"}
        for project, block in (("ms-swift", ""), ("llama-factory", self.EMPTY)):
            self.assertEqual(self.learned(pair, options=("--data-format", project), model="thinks"),
                             [f"{block}b<|im_end|>\n", f"{block}c<|im_end|>\n"])


class AlpacaPrompts(DataTest):
    def test_a_line_with_an_instruction_has_alpacas_prompt_and_no_template(self):
        learned = self.learned({"instruction": "hello", "input": "", "output": "world"},
                               {"instruction": "hello {}", "input": "a cat", "output": "world"},
                               {"messages": [user("hello"), assistant("world")]}, options=("--alpaca-prompts",))
        self.assertEqual(learned, ["world<|im_end|>", "world<|im_end|>", "world<|im_end|>\n"])
        self.assertEqual(self.whole[0], "Below is an instruction that describes a task. Write a response that appropriately "
                         "completes the request.\n\n### Instruction:\nhello\n\n### Response:\nworld<|im_end|>")
        self.assertEqual(self.whole[1], "Below is an instruction that describes a task, paired with an input that provides "
                         "further context. Write a response that appropriately completes the request.\n\n### Instruction:\n"
                         "hello {}\n\n### Input:\na cat\n\n### Response:\nworld<|im_end|>")
        self.assertIn("<|im_start|>user", self.whole[2])

    def test_prompt_and_answer_are_tokenized_apart(self):
        self.learned({"instruction": "hello", "output": "\nworld"}, options=("--alpaca-prompts",))
        self.assertIn("### Response:\n\nworld", self.whole[0])
        learned = self.learned({"instruction": "hello", "output": "\nworld"}, options=("--alpaca-prompts", "--loss-on", "all"))
        self.assertEqual(learned, self.whole)


class Masks(DataTest):
    def chat(self, first, second):
        return {"messages": [user("a"), {**assistant("b"), **first}, user("c"), {**assistant("d"), **second}]}

    def test_without_a_project_each_known_key_is_heeded(self):
        for key in ("weight", "loss_weight", "loss_scale", "train", "training", "trainable", "loss", "loss_mask"):
            for model in ("skips", "marks"):
                end = "<|im_end|>\n" if model == "skips" else "<|im_end|>"
                with self.subTest(key=key, model=model):
                    learned = self.learned(self.chat({key: 0}, {key: 1}), self.chat({key: False}, {key: True}),
                                           self.chat({}, {key: False}), self.chat({key: None}, {}), model=model)
                    self.assertEqual(learned, [f"d{end}", f"d{end}", f"b{end}", f"b{end}d{end}"])
        self.assertEqual(self.learned(self.chat({"masked": True}, {"masked": False})), ["d<|im_end|>\n"])

    def test_other_weights_are_refused_by_name(self):
        for value in (0.5, 2, -1, "1", [1], {}):
            self.refused(self.chat({"weight": value}, {}), "message 2: weight", "1 or 0")
        self.refused(self.chat({"weight": 0, "train": True}, {}), "train, weight")
        self.refused({"messages": [user("a", train=True), assistant("b")]}, "the words of user", "--loss-on all")
        self.refused(self.chat({"weight": 0}, {"weight": 0}), "no answer to learn")
        self.refused(self.chat({"weight": 0}, {}), "--loss-on all", options=("--loss-on", "all"))
        self.refused({"prompt": "a", "chosen": [assistant("b", weight=0)], "rejected": [assistant("c")]}, "whole answer")

    def test_a_message_that_says_it_is_learned_is_learned_beside_the_last(self):
        self.assertEqual(self.learned(self.chat({"loss": True}, {}), self.chat({}, {}), options=("--loss-on", "last")),
                         ["b<|im_end|>\nd<|im_end|>\n", "d<|im_end|>\n"])

    def test_masked_answers_are_counted_and_said(self):
        _, printed, said = self.taken(self.lines(self.chat({"weight": 0}, {})))
        self.assertEqual(printed["masked_answers"], 1)
        self.assertIn("answers that are not learned", said)

    def test_a_line_of_weight_0_is_left_out_and_counted(self):
        good = {"query": "a", "response": "b"}
        learned, printed, said = self.taken(self.lines(good, {**good, "weight": 0}, {**good, "weight": 1}))
        self.assertEqual((len(learned), printed["weight_zero"], printed["bad_lines"]), (2, 1, 0))
        self.assertIn("weight is 0", said)
        self.refused({**good, "weight": 0.3}, "the line: weight is '0.3'")

    def test_parts_with_weights_make_the_message_one(self):
        self.assertEqual(self.learned(self.chat({"content": [text("b", weight=0)]}, {})), ["d<|im_end|>\n"])
        self.refused(self.chat({"content": [text("b", train=False), text("c", train=True)]}, {}), "parts that are learned")

    def test_in_the_data_of_a_project_a_key_means_what_it_means_there(self):
        learns = {  # project -> for each key, what is learned of two answers, the first with 0 and the second with 1
            "any": dict.fromkeys(("weight", "loss", "loss_scale", "train"), "d"),
            "ms-swift": {"loss": "d", "loss_scale": "d", "weight": "bd", "train": "bd"},
            "llama-factory": dict.fromkeys(("weight", "loss", "loss_scale", "train"), "bd"),
            "axolotl": dict.fromkeys(("weight", "loss", "train"), "bd"),
            "trl": dict.fromkeys(("weight", "loss", "train"), "bd"),
            "mistral-finetune": {"weight": "d", "loss": "bd", "train": "bd"},
        }
        for project, keys in learns.items():
            for key, expected in keys.items():
                with self.subTest(project=project, key=key):
                    learned, printed, said = self.taken(self.lines(self.chat({key: 0}, {key: 1})), "--data-format", project)
                    end = "<|im_end|>" if project == "axolotl" else "<|im_end|>\n"
                    self.assertEqual(learned, ["".join(letter + end for letter in expected)])
                    if expected == "bd":
                        self.assertEqual(printed["ignored_weights"], {key: 2})
                        self.assertIn(f"keys that {project} itself ignores", said)

    def test_ms_swifts_loss_scale_is_a_yes_or_no_and_axolotls_key_is_the_one_that_its_job_names(self):
        self.assertEqual(self.learned(self.chat({"loss_scale": 0.5}, {"loss_scale": 0}),
                                      options=("--data-format", "ms-swift")), ["b<|im_end|>\n"])
        self.assertEqual(self.learned(self.chat({"train": False, "weight": 1}, {"train": True}),
                                      options=("--data-format", "axolotl", "--training-key", "train")), ["d<|im_end|>"])
        self.refused(self.chat({"weight": 0.5}, {}), "weight", options=("--data-format", "mistral-finetune"))

    def test_keys_that_nobody_reads_are_listed_once(self):
        chat = {"messages": [user("a", speaker="x"), assistant("b", speaker="y")], "id": 3, "score": None}
        _, printed, said = self.taken(self.lines(chat, chat))
        self.assertEqual((printed["ignored_line_keys"], printed["ignored_message_keys"]), ({"id": 2}, {"speaker": 4}))
        self.assertIn("keys of lines that are not read: id (2, first", said)
        self.assertIn("keys of messages that are not read: speaker (4, first", said)
        template = self.folder / "speaker.jinja"
        template.write_text(SKIPS.replace("{% endfor %}<|im_end|>", "{% endfor %}{{ m.speaker }}<|im_end|>"))
        _, printed, _ = self.taken(self.lines(chat), "--chat-template", template)
        self.assertEqual(printed["ignored_message_keys"], {})

    def test_a_bad_line_that_is_left_out_leaves_no_note(self):
        bad = {"messages": [user("a", speaker="x"), {"role": "nobody", "content": "b"}]}
        _, printed, _ = self.taken(self.lines(bad, {"query": "a", "response": "b"}), "--skip-bad-lines")
        self.assertEqual((printed["ignored_message_keys"], printed["bad_lines"]), ({}, 1))


class Forms(DataTest):
    def test_chats_of_other_projects_are_the_same_chats(self):
        chat = [{"role": "system", "content": "s"}, user("a"), assistant("b"), user("c"), assistant("d")]
        turns = [("human", "a"), ("gpt", "b"), ("human", "c"), ("gpt", "d")]
        sharegpt = [{"from": role, "value": value} for role, value in turns]
        self.same([
            {"conversations": [{"from": "system", "value": "s"}, *sharegpt]},
            {"conversations": sharegpt, "system": "s"},
            {"conversation": [{"human": "a", "assistant": "b"}, {"human": "c", "assistant": "d"}], "system": "s"},
            {"messages": [{"role": role, "content": value} for role, value in turns], "system": "s"},
            {"interactions": [{"role": message["role"], "text": message["content"]} for message in chat]},
            {"instruction": "c", "input": "", "output": "d", "history": [["a", "b"]], "system": "s"},
            {"question": "c", "answer": "d", "history": [["a", "b"]], "system": "s"},
            {"messages": chat, "prompt": "a", "conversations": None},
        ], {"messages": chat})

    def test_calls_and_results_of_other_projects_are_the_same(self):
        function = {"name": "look", "arguments": {"at": "cat"}}
        call = {"type": "function", "function": function}
        chat = [user("a"), assistant("", tool_calls=[call]), {"role": "tool", "content": "3"}, assistant("d")]
        self.same([
            {"conversations": [{"from": "human", "value": "a"}, {"from": "function_call", "value": json.dumps(function)},
                               {"from": "observation", "value": "3"}, {"from": "gpt", "value": "d"}]},
            {"messages": [user("a"), {"role": "tool_call", "content": json.dumps(function)},
                          {"role": "tool_response", "content": "3"}, assistant("d")]},
            {"messages": [user("a"), assistant(None, function_call={"name": "look", "arguments": "{\"at\": \"cat\"}"}),
                          {"role": "function", "content": "3"}, assistant("d")]},
        ], {"messages": chat})
        self.learned({"messages": [user("a"), assistant("b"), {"role": "tool_call", "content": json.dumps(function)},
                                   {"role": "tool_call", "content": json.dumps(function)}]})
        self.assertEqual(self.whole[0].count("<|im_start|>"), 2)  # one turn speaks and calls twice
        self.refused({"conversations": [{"from": "human", "value": "a"}, {"from": "function_call", "value": "look()"}]},
                     "the call is text that is no JSON")

    def test_two_ways_to_say_one_thing_are_refused(self):
        self.refused({"messages": [user("a"), assistant("b")], "conversations": [user("z"), assistant("b")]},
                     "both messages and conversations")
        self.refused({"messages": [user("a"), assistant("b")], "prompt": "z"}, "not the chat's first question")
        self.refused({"prompt": "a", "completion": [user("a"), assistant("b")]}, "begins with the words of user")
        self.refused({"messages": [{"role": "user", "from": "human", "content": "a"}, assistant("b")]}, "both role and from")

    def test_a_prompt_that_is_in_both_answers_is_not_said_twice(self):
        whole = {"prompt": "a", "chosen": [user("a"), assistant("b")], "rejected": [user("a"), assistant("c")]}
        expected = {"prompt": "a", "chosen": "b", "rejected": "c"}
        parts = {"chosen": {"from": "gpt", "value": "b"}, "rejected": {"from": "gpt", "value": "c"}}
        forms = [whole, {**whole, "messages": whole["chosen"]},
                 {"conversations": [{"from": "human", "value": "a"}], **parts},
                 {"instruction": "a", "input": "", "chosen": "b", "rejected": "c"}]
        learned = self.learned(*forms, expected)
        self.assertEqual(self.whole, self.whole[-2:] * (len(forms) + 1))
        self.assertEqual(learned, ["b<|im_end|>\n", "c<|im_end|>\n"] * (len(forms) + 1))
        self.refused({**whole, "prompt": "z"}, "not the chat's first question")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
