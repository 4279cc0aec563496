# SPDX-License-Identifier: Apache-2.0
# A chat template -> text, and the characters of it that its {% generation %} encloses.
# Third step of `sealift-train tokenize`; a template is code from elsewhere and runs in jinja2's sandbox.
# Does what transformers' render_jinja_template does, to which a test holds it.
import contextlib
import datetime
import json
import re

import jinja2
import jinja2.ext
import jinja2.sandbox

from line_notes import Bad


class Template:
    """Renders messages, and says which characters are the assistant's where the template marks them."""

    def __init__(self, text, variables, ends=()):
        """ends: the special tokens, one of which ends a turn."""
        self.text, self.variables, self.ends = text, variables, ends
        self.marks = re.search(r"\{%-?\s*generation\s*-?%\}", text) is not None
        self.template = compiled(text)

    def render(self, messages, tools, add_generation_prompt=False):
        """(text, spans of characters that {% generation %} encloses)"""
        messages = [with_reasoning(message) for message in messages]
        try:
            try:
                return self._rendered(messages, tools, add_generation_prompt)
            except TypeError:  # DeepSeek's templates want arguments as text
                if not any(message.get("tool_calls") for message in messages):
                    raise
                return self._rendered(list(map(with_text_arguments, messages)), tools, add_generation_prompt)
        except (jinja2.exceptions.TemplateError, TypeError, ValueError, KeyError) as error:
            raise Bad(f"is refused by the chat template: {error}") from None

    def _rendered(self, messages, tools, add_generation_prompt):
        blocks, spans = [], []
        with self.template.environment.track(blocks, spans):
            for block in self.template.generate(messages=messages, tools=tools, documents=None,
                                                add_generation_prompt=add_generation_prompt, **self.variables):
                blocks.append(block)
        return "".join(blocks), spans


def with_text_arguments(message):
    def of(call):
        function = call["function"]
        return {**call, "function": {**function, "arguments": json.dumps(function["arguments"], ensure_ascii=False)}}
    return {**message, "tool_calls": list(map(of, message["tool_calls"]))} if message.get("tool_calls") else message


def with_reasoning(message):
    names = ("reasoning_content", "thinking", "reasoning")
    reasoning = next((message[name] for name in names if message.get(name) is not None), None)
    return message if reasoning is None else {"thinking": reasoning, **message, "reasoning_content": reasoning}


def compiled(text):
    if tuple(int(part) for part in re.findall(r"\d+", jinja2.__version__)[:3]) < (3, 1, 6):
        raise SystemExit(f"jinja2 {jinja2.__version__} has known ways out of its sandbox, and chat templates are code "
                         "from elsewhere; 3.1.6 or newer is needed")

    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def __init__(self, environment):
            super().__init__(environment)
            environment.extend(track=self.track)
            self.blocks = self.spans = None

        def parse(self, parser):
            number = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("_mark"), [], [], body).set_lineno(number)

        @jinja2.pass_eval_context
        def _mark(self, context, caller):
            text = caller()
            begin = sum(map(len, self.blocks))
            self.spans.append((begin, begin + len(text)))
            return text

        @contextlib.contextmanager
        def track(self, blocks, spans):
            self.blocks, self.spans = blocks, spans
            try:
                yield
            finally:
                self.blocks = self.spans = None

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    try:
        return environment.from_string(text)
    except jinja2.exceptions.TemplateError as error:
        raise SystemExit(f"the chat template cannot be read: {error}") from None
