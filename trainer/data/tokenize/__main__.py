# SPDX-License-Identifier: Apache-2.0
# JSON lines -> a token file: each line an example, rendered by the model's chat template, tokenized by its tokenizer.
# `sealift-train tokenize` carries these files and runs them with the prefix's Python; `python3 FOLDER` does it too.
# Needs `tokenizers` and jinja2 alone, not transformers. Data: docs/training_data.md; the result: docs/token_files.md.
import argparse
import itertools
import json
import pathlib
import sys

try:
    import jinja2  # noqa: F401
    import tokenizers  # noqa: F401
except ImportError as error:
    print(f"sealift-train: {sys.executable} has no {error.name}; tokenizing needs a Python that has tokenizers and "
          "jinja2, by --python", file=sys.stderr)
    sys.exit(2)

from answer_spans import parts_of
from chat_template import Template
from data_files import Broken
from dataset_info import DatasetInfo
from empty_thoughts import Thoughts
from example_lines import KINDS, Lines
from learned_keys import PROJECTS, Rules
from line_notes import Bad, Notes
from message_forms import MessageForms
from model_folder import Model
from row_samples import rows_of_names
from sample_texts import add_texts
from token_pieces import TooLong, sequences_of
from token_writer import Writer

CHUNK = 512  # examples that are tokenized together
SHOWN = 10  # bad lines that are named


class Report:
    """Bad lines: refused at the end, or left out and counted."""

    def __init__(self, skip):
        self.skip, self.bad, self.too_long = skip, 0, 0

    def line(self, where, reason):
        self.bad += 1
        if self.bad <= SHOWN:
            print(f"sealift-train: {where} {reason}", file=sys.stderr)

    def hopeless(self):
        return not self.skip and self.bad >= SHOWN


class Conversion:
    def __init__(self, options):
        self.options, self.model = options, Model(options.model)
        self.kind, self.writer, self.report = options.kind, None, Report(options.skip_bad_lines)
        texts = self.model.templates
        if options.chat_template:
            texts = {} if options.chat_template == "none" else {
                "default": pathlib.Path(options.chat_template).read_text(encoding="utf-8")}
        self.templates = {name: Template(text, {**self.model.special, **options.template_args}, self.model.ends)
                          for name, text in texts.items() if name in ("default", "tool_use")}
        self.others = "" if "default" in texts else ", ".join(sorted(texts))
        text = "\n".join(template.text for template in self.templates.values())
        self.thoughts = Thoughts(options.data_format, text, not options.no_empty_thoughts)
        self.info = DatasetInfo(options.dataset_dir) if options.dataset_dir else None
        self.notes = Notes()
        rules = Rules(options.data_format, options.training_key, self.notes)
        self.lines = Lines(MessageForms(rules, self.notes, text, options.literal_markers), options.system,
                           options.alpaca_prompts)

    def examine(self, where, row):
        """(where, example, parts) of a row, or None and a report."""
        if isinstance(row, Broken):
            return self.report.line(where, row.reason)
        try:
            self.notes.begin(where)
            example = self.lines.example_of(row, self.kind)
            if example is None:
                return self.notes.keep()
            parts = parts_of(example, self.template_of(example), self.loss_on(example), self.notes,
                             self.options.data_format != "axolotl", self.thoughts)
            for part in parts:
                part.text.encode("utf-8")  # JSON can spell invalid text
        except Bad as reason:
            return self.report.line(where, reason)
        except UnicodeEncodeError:
            return self.report.line(where, "has half of a surrogate pair, which is no text")
        self.notes.keep()
        if self.writer is None:
            self.begin(example.kind)
        return where, example, parts

    def loss_on(self, example):
        """Of a prompt with a completion TRL learns the completion."""
        is_trls = self.options.data_format == "trl" and self.options.loss_on == "assistant" and example.apart
        return "last" if is_trls else self.options.loss_on

    def template_of(self, example):
        """As in transformers a line with tools takes the template of that name, where there is one."""
        template = (self.templates.get("tool_use") if example.tools else None) or self.templates.get("default")
        if template is None and self.others and example.kind != "text" and not example.bare:
            raise SystemExit(f"the model has the chat templates {self.others} and none is the default; give one by "
                             "--chat-template")
        return template

    def begin(self, kind):
        if self.options.truncation_strategy == "split" and kind != "text":
            raise SystemExit(f"--truncation-strategy split is for texts; the data is of the kind {kind}")
        self.kind = kind
        used = "\n".join(template.text for template in self.templates.values()) if kind != "text" else ""
        self.writer = Writer(self.options.out, kind, self.model, used or None)

    def encode(self, texts, special):
        return iter(self.model.tokenizer.encode_batch(texts, add_special_tokens=special))

    def write(self, examined):
        texts = {special: [piece for _, _, parts in examined for part in parts if part.special is special
                           for piece in part.pieces] for special in (False, True)}
        encodings = {special: self.encode(texts[special], special) for special in texts}
        for where, example, parts in examined:
            of_parts = [[next(encodings[part.special]) for _ in part.pieces] for part in parts]
            try:
                for sequences in sequences_of(example, parts, of_parts, self.model, self.options):
                    self.writer.add(sequences, example.value)
            except Bad as reason:
                self.report.line(where, reason)
            except TooLong:
                self.report.too_long += 1

    def run(self):
        lines = rows_of_names(self.options, self.info)
        while not self.report.hopeless() and (chunk := list(itertools.islice(lines, CHUNK))):
            self.write([found for where, row in chunk if (found := self.examine(where, row))])
        return self.end()

    def end(self):
        if self.report.bad and not self.report.skip:
            more = " (and maybe more)" if self.report.hopeless() else ""
            raise SystemExit(f"{self.report.bad} bad lines{more}, nothing was written; correct them, or leave them out "
                             "with --skip-bad-lines")
        if self.writer is None or not self.writer.examples:
            raise SystemExit("no example is left of the data, nothing was written")
        digest = self.writer.finish()
        writer, notes = self.writer, self.notes
        for note in self.model.notes:
            print(f"sealift-train: note: {note}", file=sys.stderr)
        for note in notes.texts(self.options.data_format if self.options.data_format != "any" else ""):
            print(f"sealift-train: note: {note}", file=sys.stderr)
        return {"out": str(self.options.out), "kind": self.kind, "examples": writer.examples,
                "sequences": len(writer.begins) - 1, "tokens": writer.begins[-1], "answer_tokens": writer.answer_tokens,
                "vocabulary": self.model.vocabulary, "bad_lines": self.report.bad, "too_long": self.report.too_long,
                "weight_zero": sum(notes.of("unlearned").values()), "masked_answers": notes.of("masked").get("answers", 0),
                "ignored_line_keys": notes.of("line_keys"), "ignored_message_keys": notes.of("message_keys"),
                "ignored_weights": notes.of("weights"), "left_out_by_template": notes.of("dropped"), "sha256": digest}


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="sealift-train tokenize", description="JSON lines -> a token file")
    parser.add_argument("--model", type=pathlib.Path, required=True, metavar="DIR", help="tokenizer, chat template")
    parser.add_argument("--data", type=pathlib.Path, required=True, nargs="+", metavar="FILE",
                        help="JSON lines or arrays, csv, parquet, arrow, packed or not, or folders of these")
    parser.add_argument("--dataset-dir", type=pathlib.Path, metavar="DIR",
                        help="with LLaMA-Factory's dataset_info.json; --data has its names")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="FILE")
    parser.add_argument("--kind", choices=("auto", *KINDS), default="auto", help="auto: that of the first line")
    parser.add_argument("--max-length", type=int, default=0, help="most tokens of a sequence; 0: any")
    parser.add_argument("--truncation-strategy", default="raise",
                        choices=("raise", "delete", "left", "right", "pairs", "split"))
    parser.add_argument("--loss-on", choices=("assistant", "last", "all"), default="assistant")
    parser.add_argument("--system", help="a system prompt for chats without one")
    parser.add_argument("--chat-template", metavar="FILE", help="instead of the model's; none: no chat")
    parser.add_argument("--template-args", type=json.loads, default={}, metavar="JSON", help="for the template")
    parser.add_argument("--data-format", choices=tuple(PROJECTS), default="any",
                        help="whose meaning keys such as weight, train and loss_scale of a message have")
    parser.add_argument("--training-key", default="", metavar="KEY", help="of a message: true or false, whether it is "
                        "learned; axolotl's message_field_training")
    parser.add_argument("--max-rows", type=int, default=0, metavar="N", help="the first N rows of each of --data; 0: all")
    parser.add_argument("--data-seed", type=int, default=42, help="of the rows of FILE#N, in data of ms-swift")
    parser.add_argument("--held-out", type=float, default=0, metavar="PART", help="of the rows, below 1, or so many, are "
                        "for evaluation, drawn by --data-seed: they are left out, with --held-out-only alone taken")
    parser.add_argument("--held-out-only", action="store_true", help="the rows that are for evaluation")
    parser.add_argument("--alpaca-prompts", action="store_true", help="lines with an instruction get Alpaca's own prompt "
                        "(### Instruction:) and no chat template, as axolotl's type alpaca")
    parser.add_argument("--no-empty-thoughts", action="store_true", help="in data of ms-swift, llama-factory and trl too "
                        "the model's template alone says which answers have thoughts")
    parser.add_argument("--literal-markers", action="store_true", help="<image>, <video>, <audio> are words like others")
    parser.add_argument("--skip-bad-lines", action="store_true", help="leave bad lines out and count them")
    options = parser.parse_args(arguments)
    if options.max_length < 0 or options.max_length == 1:
        parser.error("--max-length must be 2 at least, or 0")
    if not 0 <= options.held_out < 1 and not (options.held_out > 1 and options.held_out.is_integer()):
        parser.error("--held-out must be a part below 1, or a whole number of rows above 1")
    if options.held_out_only and not options.held_out:
        parser.error("--held-out-only needs --held-out")
    if not isinstance(options.template_args, dict):
        parser.error("--template-args must be a JSON object")
    if options.truncation_strategy == "split" and not options.max_length:
        parser.error("--truncation-strategy split needs --max-length")
    return options


def main(arguments):
    conversion = None
    try:
        if arguments[:1] == ["--decode"]:
            add_texts(arguments)
            return 0
        conversion = Conversion(options_of(arguments))
        print(json.dumps(conversion.run()))
        return 0
    except SystemExit as reason:
        if not isinstance(reason.code, str):
            raise
        problem = reason.code
    except (OSError, ValueError) as error:
        problem = str(error)
    finally:
        if conversion and conversion.writer:
            conversion.writer.close()
    print(f"sealift-train: {problem}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
