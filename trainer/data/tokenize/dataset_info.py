# SPDX-License-Identifier: Apache-2.0
# LLaMA-Factory's dataset_info.json: a data set's name -> its file, and its rows as lines that example_lines knows.
# Beside data_files, where --dataset-dir is given; a job of LLaMA-Factory names data sets, not files.
# Columns and tags have its defaults (its data/parser.py). Where it drops rows for a tag that was left out, that tag has
# its default here; a column that is not named is not read there, nor here, and listed.
import json

from data_files import Broken
from drawn_rows import drawn_rows

COLUMNS = {"prompt": "instruction", "query": "input", "response": "output", "messages": "conversations"}
TAGS = {"role_tag": "from", "content_tag": "value", "user_tag": "human", "assistant_tag": "gpt",
        "observation_tag": "observation", "function_tag": "function_call", "system_tag": "system"}
ROLES = {"user_tag": "user", "assistant_tag": "assistant", "observation_tag": "tool", "function_tag": "function_call",
         "system_tag": "system"}
KNOWN = ("file_name", "formatting", "columns", "tags", "ranking", "split", "subset", "folder", "num_samples")
HUBS = ("hf_hub_url", "ms_hub_url", "om_hub_url", "script_url", "cloud_file_name")
BESIDE = ("system", "tools", "images", "videos", "audios")


class Line(dict):
    """A row under the names that example_lines knows; unread: the columns that it does not name."""

    unread = ()


class Entry:
    """A data set of dataset_info.json."""

    def __init__(self, folder, name, given):
        where = f"{folder / 'dataset_info.json'}: {name}"
        if not isinstance(given, dict) or not isinstance(given.get("file_name"), str):
            hub = next((key for key in HUBS if isinstance(given, dict) and given.get(key)), None)
            raise SystemExit(f"{where} has no file_name" + (f" but {hub}, and nothing is downloaded here; carry the data, "
                                                            "and name its file" if hub else ""))
        for key in given:
            if key not in KNOWN + HUBS:
                raise SystemExit(f"{where} has {key}, which this does not understand")
        self.name, self.samples = name, given.get("num_samples")
        if self.samples is not None and (type(self.samples) is not int or self.samples < 1):
            raise SystemExit(f"{where} has num_samples {self.samples!r}; expected a number of rows, 1 or more")
        self.path = folder / given["file_name"]
        self.formatting, self.ranking = given.get("formatting", "alpaca"), given.get("ranking", False)
        if self.formatting not in ("alpaca", "sharegpt", "openai"):
            raise SystemExit(f"{where} has the formatting {self.formatting!r}; known are alpaca, sharegpt and openai")
        self.columns, self.tags = given.get("columns") or COLUMNS, {**TAGS, **(given.get("tags") or {})}
        known = {*COLUMNS, *BESIDE, "history", "chosen", "rejected", "kto_tag"}
        for kind, names, some in (("column", self.columns, known), ("tag", self.tags, TAGS)):
            for key in names:
                if key not in some:
                    raise SystemExit(f"{where} has the {kind} {key}; known are {', '.join(sorted(some))}")
        self.roles = {self.tags[tag]: role for tag, role in ROLES.items()}
        if self.formatting != "alpaca" and "messages" not in self.columns:
            self.columns = {**self.columns, "messages": "conversations"}

    def rows(self, given):
        """Of what `given()` yields as many as num_samples says, the same in each run; above the size rows come again."""
        if self.samples is None:
            yield from given()
            return
        yield from drawn_rows(given, self.samples, 42, self.name)

    def line_of(self, row):
        """A Line of a row, or what is wrong with it."""
        read = set()

        def column(name):
            key = self.columns.get(name)
            read.add(key)
            return row.get(key) if key else None

        line = Line({name: column(name) for name in BESIDE})
        if self.formatting == "alpaca":
            self._alpaca(line, column)
        else:
            line["messages"] = self._messages(column("messages"))
            if self.ranking:
                line["chosen"], line["rejected"] = ([self._message(column(side))] for side in ("chosen", "rejected"))
        if "kto_tag" in self.columns:
            line["label"] = column("kto_tag")
            if not isinstance(line["label"], bool):
                return Broken(f"{self.columns['kto_tag']}, the kto_tag, is neither true nor false")
        line.unread = [key for key, value in row.items() if key not in read and value not in (None, "", [], {})]
        return line

    def _alpaca(self, line, column):
        line["history"] = column("history")
        if "response" not in self.columns and not self.ranking:  # pre-training: prompt is the text
            line["text"] = column("prompt")
            return
        line["instruction"], line["input"] = column("prompt"), column("query")
        if self.ranking:
            line["chosen"], line["rejected"] = column("chosen"), column("rejected")
            return
        line["output"] = column("response")

    def _messages(self, value):
        return list(map(self._message, value)) if isinstance(value, list) else value

    def _message(self, given):
        if not isinstance(given, dict):
            return given
        message, role, content = dict(given), self.tags["role_tag"], self.tags["content_tag"]
        said = message.pop(role, None)
        return {**{key: value for key, value in message.items() if key != content},
                "role": self.roles.get(said, said), "content": given.get(content)}


class DatasetInfo:
    """dataset_info.json of a folder."""

    def __init__(self, folder):
        self.folder = folder
        path = folder / "dataset_info.json"
        if not path.is_file():
            raise SystemExit(f"{folder} has no dataset_info.json; give LLaMA-Factory's folder of data, or files by --data")
        try:
            self.given = json.loads(path.read_text(encoding="utf-8-sig"))
        except ValueError as error:
            raise SystemExit(f"{path} is no JSON: {error}") from None
        if not isinstance(self.given, dict):
            raise SystemExit(f"{path} is no JSON object")

    def entry(self, path):
        """The Entry of that name; None for the path of a file."""
        name = str(path)
        if name not in self.given and not path.exists():
            raise SystemExit(f"{name} is neither a file nor in {self.folder / 'dataset_info.json'}; known are "
                             f"{', '.join(sorted(self.given))}")
        return Entry(self.folder, name, self.given[name]) if name in self.given else None
