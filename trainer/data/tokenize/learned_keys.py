# SPDX-License-Identifier: Apache-2.0
# The keys by which people say that a message, or a line, is learned or masked: what each means, by project.
# Read with each message, between message_forms and the spans. docs/training_data.md has the table.
# Without a project every known key is heeded; in the data of one project a key means what it means there, and one that
# the project itself ignores is counted and said. A weight that token files have no place for is refused.
from line_notes import Bad


def switch(value, key):
    """true or 1: learned; false or 0: not."""
    if isinstance(value, (bool, int, float)) and value in (0, 1):
        return bool(value)
    raise Bad(f"{key} is {str(value)[:40]!r}; expected true or false, or the numbers 1 or 0: token files have no place "
              "for other weights")


def reverse_switch(value, key):
    return not switch(value, key)


def positive(value, key):
    """ms-swift's loss_scale, which is a yes or no by default: what is above 0 counts as 1."""
    if isinstance(value, (bool, int, float)) and value >= 0:
        return value > 0
    raise Bad(f"{key} is {str(value)[:40]!r}; expected a number, 0 or more")


KEYS = {"weight": switch, "loss_weight": switch, "loss_scale": switch, "loss": switch, "loss_mask": switch,
        "train": switch, "training": switch, "trainable": switch, "masked": reverse_switch}
# Of a line: `loss` is a number that people noted of another run.
LINE_KEYS = {**{key: rule for key, rule in KEYS.items() if key != "loss"}, "sample_weight": switch}
PROJECTS = {
    "any": KEYS,
    "ms-swift": {"loss": switch, "loss_scale": positive},
    "llama-factory": {},
    "axolotl": {},  # but for the key that a data set's message_field_training names
    "trl": {},
    "mistral-finetune": {"weight": switch},
}


class Rules:
    """What the keys of one job's data mean."""

    def __init__(self, project="any", key="", notes=None):
        self.project, self.notes = project, notes
        self.heeded = {**PROJECTS[project], **({key: switch} if key else {})}
        self.heeded_of_lines = LINE_KEYS if project == "any" else {}
        self.known = {**LINE_KEYS, **KEYS, **self.heeded}

    def learned(self, carrier, what, heeded=None):
        """True, False, or None where `carrier` does not say; the keys that say it are taken out of it."""
        heeded, said = self.heeded if heeded is None else heeded, {}
        for key in [key for key in carrier if key in self.known]:
            value = carrier.pop(key)
            if key in heeded:
                if value is not None:
                    said[key] = heeded[key](value, f"{what}: {key}")
            elif value is not None:
                self.notes.count("weights" if self.project != "any" else "line_keys", key)
        if len(set(said.values())) > 1:
            raise Bad(f"{what} is learned by one of its keys and not by another: {', '.join(sorted(said))}")
        return next(iter(said.values()), None)

    def line_is_learned(self, line):
        return self.learned(line, "the line", self.heeded_of_lines) is not False
