# SPDX-License-Identifier: Apache-2.0
# An Example -> its texts, each with the characters that a model is to learn.
# Fourth step of `sealift-train tokenize`, between the template and the tokenizer.
# The template's own marks count; without them the assistant's turns are found by what each adds to the text.
import os

from left_out import check_rendered
from line_notes import Bad

MARK = "sealiftendq"  # letters alone: no template quotes or splits them


def bare_text(messages, name):
    """The text of one message, for a model without a chat template."""
    if len(messages) != 1 or not isinstance(messages[0].get("content"), str):
        raise Bad(f"{name} is a chat, and the model has no chat template; give one by --chat-template")
    return messages[0]["content"]


class Part:
    """A text of an example. spans: the characters that count; special: whether the tokenizer adds its own tokens; pieces:
    what is tokenized by itself."""

    def __init__(self, text, spans, special, answer_at=None):
        self.text, self.spans, self.special = text, spans, special
        self.pieces = [text] if answer_at is None else [text[:answer_at], text[answer_at:]]


def turns_to_learn(messages, loss_on, notes):
    """The numbers of the assistant's messages that count; what a message says of itself is stronger than loss_on."""
    turns = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
    counted = turns[-1:] if loss_on == "last" else turns
    result = [at for at in turns if messages[at].learned or (at in counted and messages[at].learned is None)]
    masked = len([at for at in counted if at not in result])
    if masked and loss_on == "all":
        raise Bad("has an answer that is not to be learned, and --loss-on all learns every token; leave one out")
    if not result:
        raise Bad("has no answer to learn: its keys mask each; leave the line out, or correct the keys")
    for _ in range(masked):
        notes.count("masked", "answers")
    return result


def marks_of_turns(rendered, marked, turns):
    """Of the template's marks those of `turns`."""
    if rendered.owners is None or len(rendered.owners) != len(marked):
        raise Bad("has turns whose {% generation %} marks cannot be told apart, so one turn cannot be left out; use "
                  "another template by --chat-template")
    return [span for span, owner in zip(marked, rendered.owners) if owner is not None and owner - 1 in turns]


def with_mark(message):
    """The message with MARK before the last letter of what it says; None where it says nothing."""
    if calls := message.get("tool_calls"):
        function = {**calls[-1]["function"], "name": MARK + calls[-1]["function"]["name"]}
        return {**message, "tool_calls": [*calls[:-1], {**calls[-1], "function": function}]}
    said = (message.get("content") or "").rstrip()
    return {**message, "content": said[:-1] + MARK + message["content"][len(said) - 1:]} if said else None


def through_turn(template, messages, turn, tools, text):
    """`text`, the whole chat, to the end of a turn; None where that cannot be told. A template may write a turn
    differently once more follows, as Qwen3's takes its thoughts out: then it ends by what closes it when it is the last,
    after the same words."""
    after, _ = template.render(messages[: turn + 1], tools)
    if text.startswith(after):
        return after
    marked = with_mark(messages[turn])
    if marked is None:
        return None
    whole, _ = template.render([*messages[:turn], marked, *messages[turn + 1:]], tools)
    alone, _ = template.render([*messages[:turn], marked], tools)
    at, closing = whole.find(MARK), alone.rpartition(MARK)[2]
    is_told = MARK in alone and at >= 0 and whole.replace(MARK, "") == text and text.startswith(closing, at)
    return text[: at + len(closing)] if is_told else None


def begin_of_turn(template, messages, turn, tools, text):
    """begin_of_answer; of an answer that comes first its words, where the template fails without a message before."""
    try:
        return begin_of_answer(template, messages[:turn], tools, text)
    except Bad:
        if turn > 0:
            raise
    said = messages[0].get("content") or ""
    at = len(said) - len(said.lstrip())
    whole, _ = template.render([{**messages[0], "content": said[:at] + MARK + said[at:]}, *messages[1:]], tools)
    return whole.find(MARK) if said.strip() and whole.replace(MARK, "") == text else None


def begin_of_answer(template, prompt, tools, text):
    """Where in `text` the answer to `prompt` begins; None where the template writes the prompt differently in it.
    A generation prompt that goes on to what the answer is not (DeepSeek's <think>) counts as far as both agree, as in
    TRL."""
    before, _ = template.render(prompt, tools, add_generation_prompt=True)
    if text.startswith(before):
        return len(before)
    bare, _ = template.render(prompt, tools)
    return len(os.path.commonprefix([before, text])) if before.startswith(bare) and text.startswith(bare) else None


def without_newline(text, begin, end, message):
    """Where a turn ends whose end token counts and the newline behind that does not, as axolotl has it."""
    bare, content = text[begin:end].rstrip("\n"), (message.get("content") or "").rstrip()
    return end if not bare or (content and bare.endswith(content)) else begin + len(bare)


def spans_of_turns(template, messages, tools, loss_on, notes, newline, keeps_thoughts):
    """(text of the whole chat as the template writes it, the characters of the turns that count)"""
    text, marked = template.render(messages, tools)
    turns = turns_to_learn(messages, loss_on, notes)
    rendered = check_rendered(template, messages, tools, notes, lambda number: number in turns, keeps_thoughts)
    if loss_on == "all":
        return text, [(0, len(text))]
    if template.marks:
        if any(text.startswith(template.ends, end) and not text[:end].rstrip().endswith(template.ends) for _, end in marked):
            notes.count("open_ends", "{% generation %}")
        if loss_on != "last" and all(message.learned is None for message in messages):
            return text, marked
        return text, marks_of_turns(rendered, marked, turns)
    spans = []
    for turn in turns:
        begin = begin_of_turn(template, messages, turn, tools, text)
        after = through_turn(template, messages, turn, tools, text)
        if begin is None or after is None:
            raise Bad(f"has a turn {turn + 1} that the chat template writes differently once more follows, so its "
                      "tokens cannot be told; use --loss-on last, or a template with {% generation %}")
        spans.append((begin, len(after) if newline else without_newline(text, begin, len(after), messages[turn])))
    return text, spans


def assistant_spans(template, messages, tools, loss_on, notes, newline, thoughts):
    """(text of the whole chat, the characters of the turns that count)"""
    everywhere = thoughts.everywhere(loss_on)
    text, spans = spans_of_turns(template, messages, tools, loss_on, notes, newline, everywhere)
    if everywhere:
        text, spans = thoughts.written(
            text, spans, messages, lambda turn, plain=text: begin_of_turn(template, messages, turn, tools, plain))
    return text, [(thoughts.after_empty(text, begin), end) for begin, end in spans]


def after_prompt(template, prompt, answer, tools, notes, thoughts):
    """Prompt and answer as text, of which all after the prompt counts, as TRL has it."""
    text, _ = template.render(prompt + answer, tools)
    begin = begin_of_answer(template, prompt, tools, text)
    if begin is None:
        raise Bad("has a prompt that the chat template writes differently once an answer follows; use another template")
    check_rendered(template, prompt + answer, tools, notes, lambda number: number >= len(prompt))
    return Part(text, [(thoughts.after_empty(text, begin), len(text))], False)


def parts_of(example, template, loss_on, notes, newline, thoughts):
    if example.kind == "text":
        return [Part(example.prompt, [(0, len(example.prompt))], True)]
    if template is None or example.bare:
        prompt = bare_text(example.prompt, "the prompt")
        answers = [bare_text(answer, "the answer") for answer in example.answers]
        return [Part(prompt + answer, [(0 if loss_on == "all" else len(prompt), len(prompt + answer))], True,
                     len(prompt) if example.bare else None) for answer in answers]
    if example.kind == "chat":
        messages = example.prompt + example.answers[0]
        text, spans = assistant_spans(template, messages, example.tools, loss_on, notes, newline, thoughts)
        return [Part(text, spans, False)]
    return [after_prompt(template, example.prompt, answer, example.tools, notes, thoughts)
            for answer in example.answers]
