# SPDX-License-Identifier: Apache-2.0
# What of a chat its template leaves out: answers, calls, thoughts, other words.
# Beside answer_spans, for every line: a template says nothing when it skips what it does not expect.
# Found by rendering once more with a mark at the end of each text: a mark that is not there tells that its text is not
# either, whatever else the template does to it (trims, quotes, splits off thoughts).
import re

from line_notes import Bad
from message_forms import THOUGHTS

END_OF_THOUGHT = "</think>"


class Marked:
    """Messages whose texts have a mark, and what each mark stands for."""

    def __init__(self, messages):
        self.marks = []
        self.messages = [self._of(message, number) for number, message in enumerate(messages, 1)]

    def _mark(self, kind, number, role):
        self.marks.append((f"sealiftq{len(self.marks)}q", kind, number, role))
        return self.marks[-1][0]

    def _of(self, message, number):
        result, role, content = dict(message), message["role"], message.get("content")
        if content and role == "assistant" and END_OF_THOUGHT in content:
            thought, end, content = content.rpartition(END_OF_THOUGHT)
            if thought.replace("<think>", "").strip():
                thought += self._mark("thoughts", number, role)
            result["content"] = thought + end + content
        if content and content.strip():
            result["content"] = result["content"].rstrip() + self._mark("words", number, role)
        for name in THOUGHTS:
            if isinstance(message.get(name), str) and message[name].strip():
                result[name] = message[name].rstrip() + self._mark("thoughts", number, role)
                break
        calls = message.get("tool_calls")
        if calls:
            function = calls[-1]["function"]
            name = function["name"] + self._mark("tool calls", number, role)
            result["tool_calls"] = [*calls[:-1], {**calls[-1], "function": {**function, "name": name}}]
        return result


class Rendered:
    """What of a chat is in its text. missing: (kind, message, role) of what is not; owners: the message that each of
    the template's {% generation %} marks belongs to, or None where that cannot be told."""

    def __init__(self, template, messages, tools):
        marked = Marked(messages)
        try:
            text, spans = template.render(marked.messages, tools)
        except Bad:  # a template may look into what it is given; then each text itself is looked for
            text, _ = template.render(messages, tools)
            self.owners = None
            self.missing = [("words", number, message["role"]) for number, message in enumerate(messages, 1)
                            if message["content"].rpartition(END_OF_THOUGHT)[2].strip() not in text]
            return
        found = {match[0].lower(): match.start() for match in re.finditer(r"sealiftq\d+q", text, re.IGNORECASE)}
        self.missing = [(kind, number, role) for mark, kind, number, role in marked.marks if mark not in found]
        self.owners, owner = [], next((number for _, _, number, role in marked.marks if role == "assistant"), None)
        for begin, end in spans:  # one without words, as an end token, belongs to the turn before it
            owner = next((number for mark, _, number, _ in marked.marks if begin <= found.get(mark, -1) < end), owner)
            self.owners.append(owner)


def check_rendered(template, messages, tools, notes, learned, keeps_thoughts=False):
    """Throws where what is learned of an answer is not in the text; counts what else the template leaves out, but for
    thoughts that are put there afterwards."""
    rendered = Rendered(template, messages, tools)
    for kind, number, role in rendered.missing:
        if kind != "thoughts" and role == "assistant" and learned(number - 1):
            raise Bad(f"has an answer, message {number}, of which the chat template leaves out the {kind}; use another "
                      "template by --chat-template, or correct the line")
        if kind == "thoughts" and keeps_thoughts:
            continue
        notes.count("dropped", kind if kind == "thoughts" else f"{kind} of {role}")
    return rendered
