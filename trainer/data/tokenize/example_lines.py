# SPDX-License-Identifier: Apache-2.0
# A line of JSON -> an Example: a prompt with an answer or two, or a text, whichever of the known forms the line has.
# First step of `sealift-train tokenize`; nothing here knows a model.
# Forms are those of TRL, ms-swift, LLaMA-Factory and Alpaca, so that data made for them is taken as it is.
# docs/training_data.md. Keys are taken out of the line as they are read: what is left at the end was not.
import itertools
import json
import math
import struct

from line_notes import Bad
from message_forms import Message, one_of

KINDS = ("text", "chat", "preference", "labelled")
CHATS = ("messages", "conversations", "conversation", "interactions")
QUESTIONS = ("prompt", "query", "instruction", "question", "problem")
ANSWERS = ("answer", "response", "completion", "output")
REJECTED = ("rejected", "rejected_response", "rejected_messages")
# What would change an example and is not understood, with what to do instead.
REFUSED = {
    **dict.fromkeys(("images", "image", "videos", "video", "audios", "audio", "objects", "rejected_images"),
                    "only text is trained on here"),
    "channel": "one kind of loss is taken of all lines; leave it out",
    "chat_template_kwargs": "variables are the same for all lines; set them by --template-args",
    "functions": "rename it to tools, as [{\"type\": \"function\", \"function\": ...}]",
    "input_ids": "it has its tokens; give the texts they were made of",
    "segments": "join them to a prompt and a completion",
}


ALPACA = ("Below is an instruction that describes a task{}. Write a response that appropriately completes the request.\n\n"
          "### Instruction:\n{}\n\n{}### Response:\n")


class Example:
    """prompt: messages, or a text; answers: lists of messages, two of a preference; value: margin or label; bare: without
    the chat template; apart: the line has a prompt and an answer, not a chat."""

    bare = apart = False

    def __init__(self, kind, prompt, answers, value=0.0, tools=None):
        self.kind, self.prompt, self.answers, self.value, self.tools = kind, prompt, answers, value, tools


def said(content, role="assistant"):
    return [Message(role=role, content=content)]


def has(line, *names):
    return any(line.get(name) is not None for name in names)


def begins_with_answer(messages):
    return messages[0]["role"] == "assistant"


def split_at_answer(messages, name):
    if messages[-1]["role"] != "assistant" or len(messages) < 2:
        raise Bad(f"{name} does not end with the assistant's answer to something")
    return messages[:-1], messages[-1:]


def split_at_difference(chosen, rejected):
    """Two chats that begin alike: what they share, and how each goes on."""
    shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(chosen, rejected)))
    if shared == 0 or shared == min(len(chosen), len(rejected)):
        raise Bad("chosen and rejected must be chats that begin with the same prompt and then differ")
    return chosen[:shared], [chosen[shared:], rejected[shared:]]


def number_of(value, name):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise Bad(f"{name} is {str(value)[:40]}, not a number")
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise Bad(f"{name} is {value}, too large") from None


def alpaca_prompt(instruction, beside):
    """Alpaca's own prompt, as axolotl's type alpaca writes it."""
    context = ", paired with an input that provides further context" if beside else ""
    return ALPACA.format(context, instruction, f"### Input:\n{beside}\n\n" if beside else "")


def kind_of(line):
    if has(line, "chosen", *REJECTED):
        return "preference"
    if isinstance(line.get("label"), bool):
        return "labelled"
    return "text" if has(line, "text") and not has(line, *CHATS, *QUESTIONS) else "chat"


def tool_of(tool):
    """A schema as OpenAI has it; LLaMA-Factory's and ms-swift's may be the function alone."""
    return {"type": "function", "function": tool} if "name" in tool and "function" not in tool else tool


def tools_of(line):
    tools = one_of(line, "has", "tools", "available_tools")
    if isinstance(tools, str):
        try:
            tools = json.loads(tools) if tools.strip() else None
        except ValueError:
            raise Bad("tools is text that is no JSON") from None
    if tools is not None and not (isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)):
        raise Bad("tools is not a list of JSON schemas")
    return [tool_of(tool) for tool in tools] if tools else None


class Lines:
    """Makes examples of parsed lines, by what MessageForms says of messages."""

    def __init__(self, forms, system=None, alpaca=False):
        self.forms, self.notes, self.system, self.alpaca = forms, forms.notes, system, alpaca

    def example_of(self, line, kind):
        """An Example, or None for a line whose weight is 0; kind: "auto" or one of KINDS."""
        if not isinstance(line, dict):
            raise Bad("is not a JSON object")
        unread, line = getattr(line, "unread", ()), dict(line)
        for name, reason in REFUSED.items():
            if line.get(name):
                raise Bad(f"has {name}, which this does not understand: {reason}")
        kind = kind_of(line) if kind == "auto" else kind
        if not self.forms.rules.line_is_learned(line):
            self.notes.count("unlearned", "weight 0")
            return None
        example = self._text(line) if kind == "text" else self._chat(line, kind)
        for key in unread:
            self.notes.count("line_keys", key)
        for key in line:
            if line[key] not in (None, [], {}, ""):
                self.notes.count("line_keys", key)
        return example

    def _text(self, line):
        text = line.pop("text", None)
        if not isinstance(text, str):
            raise Bad(f"text is {type(text).__name__}, not text")
        if not text:
            raise Bad("text is empty")
        return Example("text", text, [])

    def _chat(self, line, kind):
        value, bare, apart = 0.0, self.alpaca and kind == "chat" and has(line, "instruction"), not has(line, *CHATS)
        if kind == "preference":
            prompt, answers = self._preference(line)
            margin = line.pop("margin", None)
            value = 0.0 if margin is None else number_of(margin, "margin")
        else:
            prompt, answer = self._prompt_and_answer(line)
            answers = [answer]
            if kind == "labelled":
                label = line.pop("label", None)
                if not isinstance(label, bool):
                    raise Bad("label is neither true nor false")
                value = float(label)
        if kind != "chat" and any(message.learned is False for answer in answers for message in answer):
            raise Bad(f"has an answer that is not to be learned, and of a {kind} line the whole answer counts; leave "
                      "the line out, or the key")
        example = Example(kind, prompt if bare else self._with_system(prompt, line), answers, value, tools_of(line))
        example.bare, example.apart = bare, apart
        return example

    def _text_of(self, value, name):
        return self.forms.plain_text(value, name)

    def _answer(self, value, name):
        """A string, a message or a list of messages as messages."""
        if isinstance(value, (list, dict)):
            return self.forms.messages_of(value if isinstance(value, list) else [value], name)
        return said(self._text_of(value, name))

    def _prompt(self, line):
        """The messages before the answer, of the forms that name them apart; None where the line has none."""
        instruction = line.get("instruction")
        prompt = one_of(line, "has", *QUESTIONS)
        if prompt is None and not has(line, *CHATS, "chosen"):
            prompt = line.pop("input", None)
        if prompt is None:
            return None
        if isinstance(prompt, list):
            messages = self.forms.messages_of(prompt, "the prompt")
        else:
            text = self._text_of(prompt, "the prompt")
            beside = self._text_of(line.pop("input"), "input") if instruction is not None and line.get("input") else ""
            if self.alpaca and instruction is not None:
                return said(alpaca_prompt(text, beside), "user")
            text += "\n" + beside if beside else ""
            messages = said(text, "user")
        earlier = []
        for turn in line.pop("history", None) or []:
            if not isinstance(turn, list) or len(turn) != 2:
                raise Bad("history is not a list of [prompt, answer]")
            earlier += said(self._text_of(turn[0], "history"), "user") + said(self._text_of(turn[1], "history"))
        return earlier + messages

    def _chat_messages(self, line):
        """The messages of a line that has a chat; a question beside it must be its own first one."""
        messages = self.forms.messages_of(one_of(line, "has", *CHATS), "messages")
        self._check_repeated(line, messages)
        return messages

    def _check_repeated(self, line, messages):
        first = next((message["content"] for message in messages if message["role"] == "user"), None)
        for name in QUESTIONS:
            if line.get(name) is not None and line.pop(name) != first:
                raise Bad(f"has a chat and {name}, which is not the chat's first question; leave one out")

    def _preference(self, line):
        chosen = one_of(line, "has", *(("chosen", *ANSWERS) if has(line, "chosen") else (*CHATS, *ANSWERS)))
        rejected = one_of(line, "has", *REJECTED)
        if chosen is None or rejected is None:
            raise Bad("a preference needs a chosen and a rejected answer")
        for name in CHATS:
            if line.get(name) == chosen:  # some data have the chosen chat twice
                del line[name]
        chosen, rejected = (self._answer(side, name) for side, name in ((chosen, "chosen"), (rejected, "rejected")))
        if begins_with_answer(chosen):
            prompt = self._chat_prompt(line) if has(line, *CHATS) else self._prompt(line)
            if prompt is None:
                raise Bad("a preference of two answers needs a prompt")
            if not begins_with_answer(rejected):
                prompt, (_, rejected) = prompt, split_at_difference(prompt + chosen, rejected)[1]
            return prompt, [chosen, rejected]
        self._check_repeated(line, chosen)
        if not begins_with_answer(rejected):
            return split_at_difference(chosen, rejected)
        prompt, answer = split_at_answer(chosen, "the chosen chat")
        return prompt, [answer, rejected]

    def _chat_prompt(self, line):
        """LLaMA-Factory's: the chat that both answers go on from."""
        messages = self._chat_messages(line)
        if messages[-1]["role"] == "assistant":
            raise Bad("has a chat that ends with an answer beside chosen and rejected; leave the chat's last answer out")
        return messages

    def _prompt_and_answer(self, line):
        if has(line, *CHATS):
            return split_at_answer(self._chat_messages(line), "messages")
        prompt, answer = self._prompt(line), one_of(line, "has", *ANSWERS)
        if prompt is None or answer is None:
            raise Bad("has no messages, no prompt with an answer, no chosen with rejected, and no text")
        answer = self._answer(answer, "the answer")
        if not begins_with_answer(answer):
            raise Bad(f"has an answer that begins with the words of {answer[0]['role']}; put those into the prompt")
        return prompt, answer

    def _with_system(self, messages, line):
        system = one_of(line, "has", "system", "system_prompt")
        if system is not None and messages[0]["role"] == "system":
            raise Bad("has a system prompt twice")
        if system is None and messages[0]["role"] != "system":
            system = self.system
        return messages if system is None else said(self._text_of(system, "system"), "system") + messages
