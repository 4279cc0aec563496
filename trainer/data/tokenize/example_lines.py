# SPDX-License-Identifier: Apache-2.0
# A line of JSON -> an Example: a prompt with an answer or two, or a text, whichever of the known forms the line has.
# First step of `sealift-train tokenize`; nothing here knows a model.
# Forms are those of TRL, ms-swift and Alpaca, so that data made for them is taken as it is. docs/training_data.md.
import itertools
import json
import math
import struct

KINDS = ("text", "chat", "preference", "labelled")
ROLES = ("system", "developer", "user", "assistant", "tool")
# What would change an example and is not understood.
REFUSED = ("images", "image", "videos", "video", "audios", "audio", "objects", "channel", "rejected_images")


class Bad(Exception):
    """A line that cannot be used, with the reason."""


class Example:
    """prompt: messages, or a text; answers: lists of messages, two of a preference; value: margin or label."""

    def __init__(self, kind, prompt, answers, value=0.0, tools=None):
        self.kind, self.prompt, self.answers, self.value, self.tools = kind, prompt, answers, value, tools


def one_of(line, *names):
    """The value under the one of `names` that the line has; None where it has none."""
    present = [name for name in names if line.get(name) is not None]
    if len(present) > 1:
        raise Bad(f"has both {present[0]} and {present[1]}, of which one says what the other does")
    return line[present[0]] if present else None


def text_of(value, name):
    if not isinstance(value, str):
        raise Bad(f"{name} is {type(value).__name__}, not text")
    return value


def messages_of(value, name):
    if not isinstance(value, list) or not value:
        raise Bad(f"{name} is not a list of messages")
    result = []
    for message in value:
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            role = message.get("role") if isinstance(message, dict) else message
            raise Bad(f"{name} has a message of the role {str(role)[:40]!r}; known are {', '.join(ROLES)}")
        if "loss" in message:
            raise Bad(f"{name} has a message with `loss`, which is not understood; use --loss-on")
        if not isinstance(message.get("content"), (str, list)) and not message.get("tool_calls"):
            raise Bad(f"{name} has a message of {message['role']} without content")
        result.append({key: part for key, part in message.items() if part is not None})
    return result


def said(content, role="assistant"):
    return [{"role": role, "content": content}]


def answer_of(value, name):
    """A string or a list of messages as messages."""
    return messages_of(value, name) if isinstance(value, list) else said(text_of(value, name))


def prompt_of(line):
    """The messages before the answer, of the forms that name them apart; None where the line has none."""
    prompt = one_of(line, "prompt", "query", "instruction")
    if prompt is None:
        return None
    if isinstance(prompt, list):
        messages = messages_of(prompt, "the prompt")
    else:
        text = text_of(prompt, "the prompt")
        if line.get("instruction") is not None and line.get("input"):
            text += "\n" + text_of(line["input"], "input")
        messages = said(text, "user")
    earlier = []
    for turn in line.get("history") or []:
        if not isinstance(turn, list) or len(turn) != 2:
            raise Bad("history is not a list of [prompt, answer]")
        earlier += said(text_of(turn[0], "history"), "user") + said(text_of(turn[1], "history"))
    return earlier + messages


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


def preference_of(line):
    chosen = one_of(line, "chosen", "messages", "response", "answer", "completion", "output")
    rejected = one_of(line, "rejected", "rejected_response", "rejected_messages")
    if chosen is None or rejected is None:
        raise Bad("a preference needs a chosen and a rejected answer")
    prompt = prompt_of(line)
    if prompt is not None:
        return prompt, [answer_of(chosen, "the chosen answer"), answer_of(rejected, "the rejected answer")]
    if isinstance(chosen, list) and isinstance(rejected, list):
        return split_at_difference(messages_of(chosen, "chosen"), messages_of(rejected, "rejected"))
    if isinstance(chosen, list):
        prompt, answer = split_at_answer(messages_of(chosen, "messages"), "messages")
        return prompt, [answer, answer_of(rejected, "the rejected answer")]
    raise Bad("a preference of two texts needs a prompt")


def prompt_and_answer_of(line):
    if line.get("messages") is not None:
        return split_at_answer(messages_of(line["messages"], "messages"), "messages")
    prompt, answer = prompt_of(line), one_of(line, "answer", "response", "completion", "output")
    if prompt is None or answer is None:
        raise Bad("has no messages, no prompt with an answer, no chosen with rejected, and no text")
    return prompt, answer_of(answer, "the answer")


def number_of(value, name):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise Bad(f"{name} is {str(value)[:40]}, not a number")
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise Bad(f"{name} is {value}, too large") from None


def kind_of(line):
    if any(line.get(name) is not None for name in ("chosen", "rejected", "rejected_response", "rejected_messages")):
        return "preference"
    if isinstance(line.get("label"), bool):
        return "labelled"
    others = ("messages", "prompt", "query", "instruction")
    return "text" if line.get("text") is not None and not any(line.get(name) is not None for name in others) else "chat"


def with_system(messages, line, default):
    system = one_of(line, "system", "system_prompt")
    if system is not None and messages[0]["role"] == "system":
        raise Bad("has a system prompt twice")
    if system is None and messages[0]["role"] != "system":
        system = default
    return messages if system is None else said(text_of(system, "system"), "system") + messages


def tools_of(line):
    tools = line.get("tools")
    if isinstance(tools, str):
        try:
            tools = json.loads(tools)
        except ValueError:
            raise Bad("tools is text that is no JSON") from None
    if tools is not None and not (isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)):
        raise Bad("tools is not a list of JSON schemas")
    return tools or None


def example_of(line, kind, system):
    """An Example of a parsed line; kind: "auto" or one of KINDS."""
    if not isinstance(line, dict):
        raise Bad("is not a JSON object")
    for name in REFUSED:
        if line.get(name):
            raise Bad(f"has {name}, which this does not understand")
    kind = kind_of(line) if kind == "auto" else kind
    if kind == "text":
        text = text_of(line.get("text"), "text")
        if not text:
            raise Bad("text is empty")
        return Example(kind, text, [])
    value = 0.0
    if kind == "preference":
        prompt, answers = preference_of(line)
        value = number_of(line["margin"], "margin") if line.get("margin") is not None else 0.0
    else:
        prompt, answer = prompt_and_answer_of(line)
        answers = [answer]
        if kind == "labelled":
            if not isinstance(line.get("label"), bool):
                raise Bad("label is neither true nor false")
            value = float(line["label"])
    return Example(kind, with_system(prompt, line, system), answers, value, tools_of(line))
