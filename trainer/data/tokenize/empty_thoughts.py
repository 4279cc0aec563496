# SPDX-License-Identifier: Apache-2.0
# The thoughts of answers in the data of ms-swift, LLaMA-Factory and TRL: each answer has some, empty where it had none.
# Beside answer_spans, for templates that write empty thoughts (Qwen3's): these take the thoughts of earlier answers out.
# The three projects have templates of their own that do not, so the block is put where the model's own has none. Without
# a project the model's template alone says it, and so in axolotl's data, where an empty block is not learned.
import re

from line_notes import Bad

EMPTY = "<think>\n\n</think>\n\n"
ANY_EMPTY = re.compile(r"<think>\s*</think>\s*")
LEARNED = {"ms-swift": False, "llama-factory": True, "trl": True, "axolotl": False}


class Thoughts:
    """What a project does; text: the chat template's."""

    def __init__(self, project, text, wanted=True):
        writes_empty = EMPTY in text or EMPTY.replace("\n", "\\n") in text
        self.is_on = wanted and project in LEARNED and writes_empty and not re.search(r"\{%-?\s*generation\b", text)
        self.project, self.learned = project, LEARNED.get(project, True)

    def everywhere(self, loss_on):
        """Of the last answer alone nothing has to be put anywhere; TRL has its own template where it learns each answer."""
        if not self.is_on or self.project == "axolotl":
            return False
        return loss_on == "assistant" if self.project == "trl" else loss_on != "last"

    def after_empty(self, text, begin):
        """Where what is learned of an answer begins."""
        if self.learned or not self.is_on:
            return begin
        if self.project == "axolotl":  # there the words of the answer are found, blanks before them too
            return begin + len(EMPTY) if text.startswith(EMPTY, begin) else begin
        empty = ANY_EMPTY.match(text, begin)
        return empty.end() if empty else begin

    def written(self, text, spans, messages, begin_of_turn):
        """(text, spans) with thoughts in each answer; begin_of_turn(number): where in `text` that answer begins."""
        for turn in reversed([at for at, message in enumerate(messages) if message["role"] == "assistant"]):
            begin = begin_of_turn(turn)
            if begin is None:
                raise Bad(f"has a turn {turn + 1} that the chat template writes differently once more follows, so thoughts "
                          "cannot be put before it; use --loss-on last")
            if text.startswith("<think>", begin):
                continue
            block = thoughts_of(messages[turn])
            text = text[:begin] + block + text[begin:]
            spans = [(first + len(block) * (first > begin), end + len(block) * (end > begin)) for first, end in spans]
        return text, spans


def thoughts_of(message):
    """What stands before the words of an answer, as the projects have it."""
    reasoning = next((message[name] for name in ("reasoning_content", "thinking", "reasoning")
                      if isinstance(message.get(name), str)), "")
    if reasoning.strip():
        return "<think>\n" + reasoning.strip("\n") + "\n</think>\n\n"
    content = message.get("content") or ""
    words = content.rpartition("</think>")[2].lstrip("\n")
    return content[:len(content) - len(words)] if "</think>" in content else EMPTY
