# SPDX-License-Identifier: Apache-2.0
# What of the data was read and yet not learned: keys that nobody knows, masked turns, what a template leaves out.
# Filled while `sealift-train tokenize` reads lines, said once at its end: a note a kind, and counts in what is printed.
# Nothing that people wrote is passed over in silence, and a million lines with one odd key make one note.
import collections


class Bad(Exception):
    """A line that cannot be used, with the reason."""


class Notes:
    """Counts by name, each with the first line it was seen in."""

    def __init__(self):
        self.where, self.pending = "", []
        self.first, self.counts = {}, {}

    def begin(self, where):
        self.where, self.pending = where, []

    def count(self, kind, name):
        self.pending.append((kind, name))

    def keep(self):
        """The line was taken: what was noted of it counts."""
        for kind, name in self.pending:
            self.counts.setdefault(kind, collections.Counter())[name] += 1
            self.first.setdefault((kind, name), self.where)

    def of(self, kind):
        return dict(sorted(self.counts.get(kind, {}).items()))

    def texts(self, project):
        """A sentence for each kind of note."""
        ignored = f"are read by nobody here and by {project} neither" if project else "are not read"
        sentences = {
            "line_keys": f"keys of lines that {ignored}",
            "message_keys": f"keys of messages that {ignored}",
            "weights": f"keys that {project} itself ignores, so what they mask is learned",
            "masked": "answers that are not learned, since their line says so",
            "unlearned": "lines left out, since their weight is 0",
            "open_ends": "lines whose template's marks end before the token that ends the answer, so that the model does "
                         "not learn to end there",
            "dropped": "left out by the chat template, so not in the tokens",
        }
        for kind, sentence in sentences.items():
            if kind in self.counts:
                items = [f"{name} ({number}, first {self.first[kind, name]})" for name, number in self.of(kind).items()]
                yield f"{sentence}: {', '.join(items[:20])}{' ...' if len(items) > 20 else ''}"
