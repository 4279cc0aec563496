# SPDX-License-Identifier: Apache-2.0
# A message as any project writes it -> one as a chat template wants it: role, content as a text, tool calls.
# Below example_lines. Names and roles: OpenAI, ShareGPT, LLaMA-Factory, ms-swift, axolotl. docs/training_data.md.
# Templates skip what they do not expect (Qwen3's writes a list as nothing), so all is made plain before they see it.
import json
import re

from line_notes import Bad

ROLES = {"system": "system", "developer": "developer", "user": "user", "human": "user", "assistant": "assistant",
         "gpt": "assistant", "chatgpt": "assistant", "bot": "assistant", "model": "assistant", "tool": "tool",
         "observation": "tool", "observations": "tool", "tool_response": "tool", "function": "tool",
         "function_call": "call", "tool_call": "call"}
PAIRED = ("system", "user", "human", "assistant", "gpt", "bot")
THOUGHTS = ("reasoning_content", "thinking", "reasoning")
KNOWN = ("role", "content", "tool_calls", "tool_call_id", "name", *THOUGHTS)
MODALITIES = ("image", "images", "image_url", "video", "videos", "audio", "audios", "input_audio", "objects")
MARKER = re.compile(r"<(?:image|video|audio)>|<\|(?:image|video|audio|vision)(?:_pad|_start|_end|_bos|_eos)?\|>"
                    r"|<start_of_image>|<image_soft_token>")


class Message(dict):
    """What the template sees; learned: True, False, or None where the message does not say."""

    learned = None


def one_of(carrier, what, *names):
    """The value under the one of `names` that there is, taken out; None where there is none."""
    present = [name for name in names if carrier.get(name) is not None]
    if any(carrier[name] != carrier[present[0]] for name in present):
        raise Bad(f"{what} both {' and '.join(present)}, of which one says what the other does; leave one out")
    value = carrier[present[0]] if present else None
    for name in names:
        carrier.pop(name, None)
    return value


class MessageForms:
    """Makes messages plain, by a job's rules; template: the text whose names a message's other keys may have."""

    def __init__(self, rules, notes, template="", literal_markers=False):
        self.rules, self.notes, self.template, self.literal = rules, notes, template or "", literal_markers

    def messages_of(self, value, name):
        if not isinstance(value, list) or not value:
            raise Bad(f"{name} is not a list of messages")
        result = []
        for number, given in enumerate(paired(value), 1):
            self._add(result, given, f"{name}: message {number}")
        return result

    def plain_text(self, value, what):
        """A text without the marks of another modality."""
        if not isinstance(value, str):
            raise Bad(f"{what} is {type(value).__name__}, not text")
        if not self.literal and (found := MARKER.search(value)):
            raise Bad(f"{what} has the marker {found[0]}, and only text is trained on here; take it out, or, where it "
                      "is a word like others, say --literal-markers")
        return value

    def _add(self, result, given, what):
        if not isinstance(given, dict):
            raise Bad(f"{what} is {type(given).__name__}; expected an object with role and content")
        given = dict(given)
        role = one_of(given, f"{what} has", "role", "from")
        if not isinstance(role, str) or role not in ROLES:
            raise Bad(f"{what} is of the role {str(role)[:40]!r}; known are {', '.join(ROLES)}")
        role, learned = ROLES[role], self.rules.learned(given, what)
        content = one_of(given, f"{what} has", "content", "value", "text")
        calls = calls_of(content, what) if role == "call" else self._calls(given, what)
        message = Message(role="assistant" if role == "call" else role, content="")
        if role != "call":
            of_parts = self._content(message, content, bool(calls), what)
            learned = of_parts if learned is None else learned
        self._rest(message, given, what)
        if calls:
            message["tool_calls"] = calls
        if learned and message["role"] != "assistant":
            raise Bad(f"{what} asks that the words of {message['role']} are learned; only the assistant's can be, or all "
                      "by --loss-on all")
        message.learned = learned
        before = result[-1] if result else None
        if role == "call" and before is not None and before["role"] == "assistant":
            join(before, message, what)  # a turn that speaks and calls, or calls twice, is one turn
        else:
            result.append(message)

    def _content(self, message, content, has_calls, what):
        """Sets content; what its parts say of being learned."""
        learned = None
        is_parts = isinstance(content, list) and all(isinstance(part, dict) and "type" in part for part in content)
        if isinstance(content, list) and (is_parts or message["role"] != "tool"):
            content, learned = self._joined(message, content, what)
        elif message["role"] == "tool" and content is not None and not isinstance(content, str):
            content = json.dumps(content, ensure_ascii=False)
        if content is None and not has_calls:
            raise Bad(f"{what} of {message['role']} is without content")
        message["content"] = "" if content is None else self.plain_text(content, f"{what}: content")
        return learned

    def _joined(self, message, parts, what):
        texts, thoughts, said = [], [], set()
        for part in parts:
            part = {key: value for key, value in part.items() if value is not None} if isinstance(part, dict) else part
            kind = part.get("type", "text") if isinstance(part, dict) else type(part).__name__
            if kind in ("text", "input_text", "output_text") and isinstance(part, dict):
                said.add(self.rules.learned(part, f"{what}: a part") if self.rules.project in ("any", "axolotl") else None)
                texts.append(self.plain_text(part.pop("text", None), f"{what}: a part"))
            elif kind in THOUGHTS:
                thoughts.append(self.plain_text(part.pop(kind, None) or part.pop("text", None), f"{what}: a part"))
            else:
                raise Bad(f"{what} has a part of the type {str(kind)[:40]!r}; only parts of text are trained on here")
            for key in set(part) - {"type"}:
                if key in MODALITIES:
                    raise Bad(f"{what} has a part with {key}; only parts of text are trained on here")
                self.notes.count("message_keys", f"content[].{key}")
        if len(said) > 1:
            raise Bad(f"{what} has parts that are learned and parts that are not; give the whole message one weight")
        if thoughts:
            message["reasoning_content"] = "".join(thoughts)
        return "".join(texts), next(iter(said), None)

    def _calls(self, given, what):
        calls = given.pop("tool_calls", None) or []
        old = given.pop("function_call", None)
        if isinstance(calls, str):
            calls = json_of(calls, f"{what}: tool_calls")
        if not isinstance(calls, list):
            raise Bad(f"{what}: tool_calls is {type(calls).__name__}; expected a list of calls")
        return [call_of(call, what) for call in [*calls, *([old] if old else [])]]

    def _rest(self, message, given, what):
        for key, value in given.items():
            if value is None or value in ([], {}, ""):
                continue
            if key in MODALITIES:
                raise Bad(f"{what} has {key}; only text is trained on here")
            if key in THOUGHTS and isinstance(value, list):
                value, _ = self._joined({}, value, f"{what}: {key}")
            if key in THOUGHTS:
                value = self.plain_text(value, f"{what}: {key}")
            elif key not in KNOWN and not re.search(rf"\b{re.escape(key)}\b", self.template):
                self.notes.count("message_keys", key)
            message[key] = value


def paired(value):
    """ms-swift's pairs, [{"human": ..., "assistant": ...}], as messages."""
    for given in value:
        roles = [key for key in given if key in PAIRED] if isinstance(given, dict) else []
        if roles and "role" not in given and "from" not in given:
            rest = {key: part for key, part in given.items() if key not in PAIRED}
            yield from ({"role": role, "content": given[role], **rest} for role in roles if given[role] is not None)
        else:
            yield given


def json_of(text, what):
    try:
        return json.loads(text)
    except ValueError:
        raise Bad(f"{what} is text that is no JSON") from None


def call_of(call, what):
    """A call as {"type": "function", "function": {"name", "arguments"}}, arguments an object."""
    if not isinstance(call, dict):
        raise Bad(f"{what}: a tool call is {type(call).__name__}; expected an object with name and arguments")
    function = call.get("function") if isinstance(call.get("function"), dict) else call
    if not isinstance(function.get("name"), str):
        raise Bad(f"{what}: a tool call has no name")
    arguments = function.get("arguments", function.get("parameters"))
    if isinstance(arguments, str):
        arguments = json_of(arguments, f"{what}: arguments of a tool call") if arguments.strip() else {}
    kept = {key: call[key] for key in ("id", "index") if call.get(key) is not None}
    function = {"name": function["name"], "arguments": {} if arguments is None else arguments}
    return {**kept, "type": "function", "function": function}


def calls_of(content, what):
    """The calls that a function_call's content has: an object or a list of them, mostly as text."""
    value = json_of(content, f"{what}: the call") if isinstance(content, str) else content
    return [call_of(call, what) for call in (value if isinstance(value, list) else [value])]


def join(before, message, what):
    if message.learned is not None and before.learned not in (None, message.learned):
        raise Bad(f"{what} belongs to the turn before it, of which one part is learned and another is not")
    before["tool_calls"] = before.get("tool_calls", []) + message["tool_calls"]
    if before.learned is None:
        before.learned = message.learned
