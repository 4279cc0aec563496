# SPDX-License-Identifier: Apache-2.0
# The files that people have: arrays, packed files, csv, parquet, arrow, folders, LLaMA-Factory's dataset_info.json.
# Each must become what the same rows as JSON lines become, or be refused with what converts it.
#   files_test.py SCRIPTS TOKEN_FILE_DUMP    with the Python of torch; PYTHONPATH: the peers
import bz2
import gzip
import json
import lzma
import os
import shutil
import subprocess
import sys
import unittest
from unittest import mock

import pyarrow
import pyarrow.ipc
import pyarrow.parquet

from made_data import DataTest, assistant, user

ROWS = [{"messages": [user("a"), assistant("b")]}, {"messages": [user("c"), assistant("ü", weight=None)]}]
LEARNED = ["b<|im_end|>\n", "ü<|im_end|>\n"]


class Files(DataTest):
    def file(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def are_the_rows(self, *paths, options=(), learned=LEARNED):
        with self.subTest(paths=paths):
            self.assertEqual(self.taken(paths, *options)[0], learned)

    def is_refused(self, path, *reasons, options=()):
        with self.subTest(path=path):
            code, _, said = self.run_on([path], *options)
            self.assertEqual(code, 2, said)
            for reason in reasons:
                self.assertIn(reason, said)

    def test_arrays_and_lines_are_told_by_their_first_bytes(self):
        lines, array = "\n".join(map(json.dumps, ROWS)), json.dumps(ROWS)
        for name, content in (("a.json", array), ("b.json", json.dumps(ROWS, indent=2)), ("c.jsonl", array),
                              ("d.json", lines), ("e.ndjson", lines.replace("\n", "\r\n")), ("f", lines),
                              ("g.json", "\ufeff" + array), ("h.jsonl", "\ufeff" + lines), ("i.json", "\n " + array),
                              ("j.json", json.dumps({"version": 1, "data": ROWS}, indent=1))):
            self.are_the_rows(self.file(name, content))
        self.is_refused(self.file("k.json", json.dumps([ROWS[0], 3])), "k.json item 2 is not a JSON object")
        self.is_refused(self.file("l.json", "[" + lines), "l.json is no JSON")
        self.is_refused(self.file("m.json", json.dumps(ROWS[0], indent=2)), "one JSON object", "jq -c")

    def test_rows_that_are_held_out_are_the_others_ones_rest(self):
        lines = [json.dumps({"query": "a", "response": str(number)}) for number in range(10)]
        path = self.file("ten.jsonl", "\n".join(lines))
        every = [f"{number}<|im_end|>\n" for number in range(10)]
        for part, count in (("0.3", 3), ("0.31", 4), ("4", 4), ("0.01", 1)):
            kept, _, _ = self.taken([path], "--held-out", part)
            held, _, _ = self.taken([path], "--held-out", part, "--held-out-only")
            self.assertEqual((len(held), sorted(kept + held)), (count, every))
            self.assertEqual(kept, [each for each in every if each in kept])
            self.assertEqual(self.taken([path], "--held-out", part, "--held-out-only")[0], held)
            other = self.taken([path, path], "--held-out", part, "--held-out-only", "--data-seed", "1")[0]
            self.assertNotEqual(other, held)
        self.assertEqual(len(self.taken([path], "--held-out", "2", "--max-rows", "5")[0]), 3)
        self.is_refused(path, "10 of 10 rows", options=("--held-out", "10"))
        for wrong in ("1", "-0.1", "2.5", "nan"):
            with self.assertRaises(SystemExit), mock.patch("sys.stderr"):
                self.run_on([path], "--held-out", wrong)

    def test_packed_files_are_unpacked(self):
        lines = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
        for ending, pack in ((".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)):
            self.are_the_rows(self.file("p.jsonl" + ending, pack(lines)))
            self.are_the_rows(self.file("p.json" + ending, pack(json.dumps(ROWS).encode())))
            self.is_refused(self.file("half.jsonl" + ending, pack(lines)[:-9]), "is damaged")
        self.is_refused(self.file("p.parquet.gz", b""), "unpack it")
        if shutil.which("zstd"):
            packed = subprocess.run(["zstd", "-qc"], input=lines, capture_output=True, check=True).stdout
            self.are_the_rows(self.file("p.jsonl.zst", packed))
            self.is_refused(self.file("half.jsonl.zst", packed[:-9]), "half.jsonl.zst is damaged")
        with mock.patch.dict(os.environ, {"PATH": ""}):
            self.is_refused(self.file("q.jsonl.zst", b""), "packed by zstd", "zstd -d")

    def test_tables_of_cells(self):
        table = 'instruction,input,output,label\n"a, ""b""",,"x\ny",true\nc,d,z,\n'
        self.are_the_rows(self.file("t.csv", table), options=("--kind", "chat"),
                          learned=["x\ny<|im_end|>\n", "z<|im_end|>\n"])
        self.are_the_rows(self.file("t.tsv", "prompt\tcompletion\na\tTrue\n"), learned=["True<|im_end|>\n"])
        self.are_the_rows(self.file("u.csv", "\ufeffprompt,completion,label\na,b,True\na,c,false\n"),
                          learned=["b<|im_end|>\n", "c<|im_end|>\n"])
        cell = json.dumps(ROWS[0]["messages"]).replace('"', '""')
        self.are_the_rows(self.file("v.csv", f'messages\n"{cell}"\n'), learned=LEARNED[:1])
        self.are_the_rows(self.file("w.txt", "hello\n\nworld\n"), learned=["hello<|im_end|>", "world<|im_end|>"])
        self.is_refused(self.file("x.csv", "prompt,completion\na\n"), "x.csv row 1 has not the header's 2 cells")
        self.is_refused(self.file("y.csv", b"prompt,completion\na,\xff\n"), "is not UTF-8", "iconv")

    def test_parquet_and_arrow_by_pyarrow(self):
        table = pyarrow.Table.from_pylist(ROWS)
        pyarrow.parquet.write_table(table, self.folder / "p.parquet")
        with pyarrow.ipc.new_file(self.folder / "f.arrow", table.schema) as writer:
            writer.write_table(table)
        with pyarrow.ipc.new_stream(self.folder / "s.arrow", table.schema) as writer:
            writer.write_table(table)
        for name in ("p.parquet", "f.arrow", "s.arrow"):
            self.are_the_rows(self.folder / name)
        for name in ("dataset_info.json", "state.json"):  # as `datasets` saves one
            self.file(f"saved/{name}", "{}")
        shutil.copy(self.folder / "s.arrow", self.folder / "saved/data-00000-of-00001.arrow")
        self.are_the_rows(self.folder / "saved")
        self.is_refused(self.file("bad.parquet", b"PAR1 and no more"), "bad.parquet cannot be read")
        with mock.patch.dict(sys.modules, {"pyarrow": None, "pyarrow.ipc": None, "pyarrow.parquet": None}):
            self.is_refused(self.folder / "p.parquet", "no pyarrow", "--python", "read_parquet")

    def test_folders_hold_files_of_one_split(self):
        for name, row in zip(("set/a.jsonl", "set/more/b.json"), ROWS):
            self.file(name, json.dumps([row]) if name.endswith("json") else json.dumps(row))
        self.file("set/README.md", "not data")
        self.are_the_rows(self.folder / "set")
        self.file("splits/train.jsonl", json.dumps(ROWS[0]))
        self.file("splits/test.jsonl", json.dumps(ROWS[1]))
        self.is_refused(self.folder / "splits", "test, train", "one split")
        (self.folder / "none").mkdir()
        self.is_refused(self.folder / "none", "has no data")
        self.is_refused(self.file("picture.png", b"\x89PNG\0\0"), "is no text")

    # -- LLaMA-Factory

    def info(self, **entries):
        (self.folder / "lf").mkdir(exist_ok=True)
        (self.folder / "lf/dataset_info.json").write_text(json.dumps(entries))
        return ("--dataset-dir", self.folder / "lf")

    def test_names_of_llama_factorys_dataset_info_are_data(self):
        alpaca = [{"instruction": "a", "input": "", "output": "b"}]
        turns = [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]
        other = [{"speaker": "USER", "said": "a"}, {"speaker": "BOT", "said": "b"}]
        cases = {
            "alpaca": (alpaca, {}),
            "columns": ([{"q": "a", "r": "b", "system": "not read"}], {"columns": {"prompt": "q", "response": "r"}}),
            "sharegpt": ([{"conversations": turns}], {"formatting": "sharegpt"}),
            "tags": ([{"chat": other}], {"formatting": "sharegpt", "columns": {"messages": "chat"},
                                         "tags": {"role_tag": "speaker", "content_tag": "said", "user_tag": "USER",
                                                  "assistant_tag": "BOT"}}),
            "some_tags": ([{"conversations": [{"role": "human", "content": "a"}, {"role": "gpt", "content": "b"}]}],
                          {"formatting": "sharegpt", "tags": {"role_tag": "role", "content_tag": "content"}}),
            "openai": ([{"messages": [user("a"), assistant("b")]}],
                       {"formatting": "openai", "columns": {"messages": "messages"},
                        "tags": {"role_tag": "role", "content_tag": "content", "user_tag": "user",
                                 "assistant_tag": "assistant", "system_tag": "system"}}),
        }
        infos = {}
        for name, (rows, keys) in cases.items():
            self.file(f"lf/{name}.json", json.dumps(rows))
            infos[name] = {"file_name": f"{name}.json", **keys}
        options = self.info(**infos)
        for name in cases:
            self.are_the_rows(name, options=options, learned=LEARNED[:1])
            self.assertEqual(self.whole, ["<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"])
        _, printed, _ = self.taken(["columns", "alpaca"], *options)
        self.assertEqual((printed["examples"], printed["ignored_line_keys"]), (2, {"system": 1}))

    def test_llama_factorys_preferences_labels_and_texts(self):
        turns = [{"from": "human", "value": "a"}]
        sides = {"chosen": {"from": "gpt", "value": "b"}, "rejected": {"from": "gpt", "value": "c"}}
        columns = {"messages": "conversations", "chosen": "chosen", "rejected": "rejected"}
        self.file("lf/pairs.json", json.dumps([{"conversations": turns, **sides}]))
        self.file("lf/texts.json", json.dumps([{"instruction": "a", "good": "b", "bad": "c"}]))
        self.file("lf/kto.json", json.dumps([{"instruction": "a", "output": "b", "tag": True}]))
        self.file("lf/pt.json", json.dumps([{"text": "hello"}]))
        options = self.info(
            pairs={"file_name": "pairs.json", "formatting": "sharegpt", "ranking": True, "columns": columns},
            texts={"file_name": "texts.json", "ranking": True,
                   "columns": {"prompt": "instruction", "chosen": "good", "rejected": "bad"}},
            kto={"file_name": "kto.json", "columns": {"prompt": "instruction", "response": "output", "kto_tag": "tag"}},
            bad_kto={"file_name": "kto.json",
                     "columns": {"prompt": "instruction", "response": "output", "kto_tag": "output"}},
            pt={"file_name": "pt.json", "columns": {"prompt": "text"}})
        for name in ("pairs", "texts"):
            self.are_the_rows(name, options=options, learned=["b<|im_end|>\n", "c<|im_end|>\n"])
        self.are_the_rows("kto", options=options, learned=["b<|im_end|>\n"])
        self.are_the_rows("pt", options=options, learned=["hello<|im_end|>"])
        self.is_refused("bad_kto", "kto_tag, is neither true nor false", options=options)

    def test_num_samples_draws_the_same_rows_everywhere(self):
        self.file("lf/ten.json", json.dumps([{"instruction": "a", "output": f"b{at}"} for at in range(10)]))
        options = self.info(three={"file_name": "ten.json", "num_samples": 3},
                            more={"file_name": "ten.json", "num_samples": 23})
        learned = self.taken(["three"], *options)[0]
        self.assertEqual((len(learned), learned), (3, self.taken(["three"], *options)[0]))
        self.assertEqual(learned, sorted(set(learned)))
        learned = self.taken(["more"], *options)[0]
        self.assertEqual(sorted(learned.count(f"b{at}<|im_end|>\n") for at in range(10)), [2] * 7 + [3] * 3)

    def test_what_dataset_info_cannot_say_here_is_refused(self):
        self.file("lf/a.json", "[]")
        options = self.info(hub={"hf_hub_url": "a/b"}, num={"file_name": "a.json", "num_samples": "3"},
                            tag={"file_name": "a.json", "formatting": "sharegpt", "tags": {"user": "x"}},
                            form={"file_name": "a.json", "formatting": "other"})
        for name, reason in (("hub", "nothing is downloaded here"), ("num", "num_samples '3'; expected a number"), ("tag", "the tag user"),
                             ("form", "known are alpaca"), ("nobody", "known are form, hub, num, tag")):
            self.is_refused(name, reason, options=options)
        self.is_refused("a", "has no dataset_info.json", options=("--dataset-dir", self.folder))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
