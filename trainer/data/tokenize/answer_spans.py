# SPDX-License-Identifier: Apache-2.0
# An Example -> its texts, each with the characters that a model is to learn.
# Fourth step of `sealift-train tokenize`, between the template and the tokenizer.
# The template's own marks count; without them the assistant's turns are found by what each adds to the text.
from example_lines import Bad


def bare_text(messages, name):
    """The text of one message, for a model without a chat template."""
    if len(messages) != 1 or not isinstance(messages[0].get("content"), str):
        raise Bad(f"{name} is a chat, and the model has no chat template; give one by --chat-template")
    return messages[0]["content"]


class Part:
    """A text of an example. spans: the characters that count; special: whether the tokenizer adds its own tokens."""

    def __init__(self, text, spans, special):
        self.text, self.spans, self.special = text, spans, special


def assistant_spans(template, messages, tools, loss_on):
    """(text of the whole chat, the characters of the assistant's turns)"""
    text, marked = template.render(messages, tools)
    if loss_on == "all":
        return text, [(0, len(text))]
    if template.marks:
        return text, marked[-1:] if loss_on == "last" else marked
    turns = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
    spans = []
    for turn in turns[-1:] if loss_on == "last" else turns:
        before, _ = template.render(messages[:turn], tools, add_generation_prompt=True)
        after, _ = template.render(messages[: turn + 1], tools)
        if not text.startswith(before) or not text.startswith(after):
            raise Bad(f"has a turn {turn + 1} that the chat template writes differently once more follows, so its "
                      "tokens cannot be told; use --loss-on last, or a template with {% generation %}")
        spans.append((len(before), len(after)))
    return text, spans


def after_prompt(template, prompt, answer, tools):
    """Prompt and answer as text, of which all after the prompt counts, as TRL has it."""
    before, _ = template.render(prompt, tools, add_generation_prompt=True)
    text, _ = template.render(prompt + answer, tools)
    if not text.startswith(before):
        raise Bad("has a prompt that the chat template writes differently once an answer follows; use another template")
    return Part(text, [(len(before), len(text))], False)


def parts_of(example, template, loss_on):
    if example.kind == "text":
        return [Part(example.prompt, [(0, len(example.prompt))], True)]
    if template is None:
        prompt = bare_text(example.prompt, "the prompt")
        answers = [bare_text(answer, "the answer") for answer in example.answers]
        return [Part(prompt + answer, [(0 if loss_on == "all" else len(prompt), len(prompt + answer))], True)
                for answer in answers]
    if example.kind == "chat":
        text, spans = assistant_spans(template, example.prompt + example.answers[0], example.tools, loss_on)
        return [Part(text, spans, False)]
    return [after_prompt(template, example.prompt, answer, example.tools) for answer in example.answers]
