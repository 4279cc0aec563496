# SPDX-License-Identifier: Apache-2.0
# Files and folders as people have them -> (where, object) of every line, row or item.
# Before everything else of `sealift-train tokenize`. JSON lines, JSON arrays, csv and tsv, each also in .gz, .zst, .xz
# or .bz2; parquet and arrow where this Python has pyarrow; folders of these. A file is read as a stream, but for arrays.
# What a file is, its first bytes say; its ending where they do not. Any other file is refused with what converts it.
import bz2
import csv
import gzip
import io
import json
import lzma
import pathlib
import shutil
import subprocess
import zlib

from line_notes import Bad

ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".txt")
PACKED = (".gz", ".zst", ".xz", ".bz2")
HIDDEN = ("dataset_info.json", "dataset_infos.json", "state.json", "dataset_dict.json")  # of folders, not data
CONVERT = "python3 -c 'import sys, pandas; pandas.read_{0}(sys.argv[1]).to_json(sys.argv[2], orient=\"records\", " \
          "lines=True, force_ascii=False)' {1} {2}"


class Broken:
    """A line that cannot be read, with the reason."""

    def __init__(self, reason):
        self.reason = reason


def kind_of_name(path):
    """(ending, ending of the packing) of a file's name."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in PACKED else ""
    return (suffixes[-1] if suffixes else ""), packed


def files_of(path):
    """The files of a path: itself, or those of a folder and its folders, by name."""
    if not path.is_dir():
        return [path]
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and kind_of_name(file)[0] in ENDINGS
             and not file.name.startswith((".", "_")) and file.name not in HIDDEN]
    if not files:
        raise SystemExit(f"{path} has no data; expected files that end in {', '.join(ENDINGS)}, packed by "
                         f"{', '.join(PACKED)} or not")
    names = {str(file.relative_to(path)).split(".")[0] for file in files}
    if len(names & {"train", "test", "validation", "valid", "eval", "dev"}) > 1:
        raise SystemExit(f"{path} has {', '.join(sorted(names))}; give the files of one split, so that what is evaluated "
                         "is not learned")
    return files


def unpacked(path, packed):
    """The bytes of a file as a stream."""
    if packed == ".zst":
        return zstandard_stream(path)
    return {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}.get(packed, open)(path, "rb")


def zstandard_stream(path):
    try:
        from compression import zstd  # Python 3.14
        return zstd.open(path, "rb")
    except ImportError:
        pass
    try:
        import zstandard
        return io.BufferedReader(zstandard.open(path, "rb"))
    except ImportError:
        pass
    if not (program := shutil.which("zstd")):
        raise SystemExit(f"{path} is packed by zstd, and this Python has no zstandard, nor PATH a zstd; unpack it: "
                         f"zstd -d {path}")
    return Child([program, "-dcq", "--", str(path)], path)


class Child(io.RawIOBase):
    """What a program prints, as a stream that ends well only if the program did."""

    def __init__(self, command, path):
        self.path, self.child = path, subprocess.Popen(command, stdout=subprocess.PIPE)

    def readable(self):
        return True

    def readinto(self, buffer):
        count = self.child.stdout.readinto(buffer)
        if not count and self.child.wait() != 0:
            raise OSError(f"{self.path} is damaged: {self.child.args[0]} ended with {self.child.returncode}")
        return count

    def close(self):
        if not self.closed:
            self.child.stdout.close()
            self.child.kill()
            self.child.wait()
        super().close()


def decoded(line):
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        raise Bad("is not UTF-8") from None


def parsed(text):
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Bad(f"is no JSON: {error}") from None


def json_lines(stream, path):
    for number, line in enumerate(stream, 1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line.strip():
            continue
        if number == 1 and b"\0" in line:
            raise SystemExit(f"{path} is no text; expected JSON lines, or one of {', '.join(ENDINGS)}")
        try:
            yield f"{path} line {number}", parsed(decoded(line))
        except Bad as reason:
            yield f"{path} line {number}", Broken(str(reason))


def json_array(stream, path):
    """The items of an array; an object is one row that was written over several lines, or columns of rows."""
    try:
        value = parsed(decoded(stream.read().removeprefix(b"\xef\xbb\xbf")))
    except Bad as reason:
        raise SystemExit(f"{path} {reason}") from None
    if isinstance(value, dict):
        lists = [name for name, part in value.items() if isinstance(part, list) and part and isinstance(part[0], dict)]
        if len(lists) != 1 or "role" in value[lists[0]][0] or "from" in value[lists[0]][0]:
            raise SystemExit(f"{path} is one JSON object; expected an array of examples, or one example a line: "
                             f"jq -c . {path} writes it on one line")
        value = value[lists[0]]
    for number, item in enumerate(value, 1):
        yield f"{path} item {number}", item


def begins_as_array(stream):
    """Whether JSON is one value over lines, not a value a line; and a stream that begins anew."""
    stream = stream if isinstance(stream, io.BufferedIOBase) else io.BufferedReader(stream)
    begin = stream.peek(1 << 16).removeprefix(b"\xef\xbb\xbf").lstrip()
    if begin[:1] == b"[":
        return True, stream
    first, newline, _ = begin.partition(b"\n")
    # An object that goes on in the next line is one that was laid out for reading.
    return bool(newline) and begin[:1] == b"{" and first.strip().endswith((b"{", b"[", b",")), stream


def table_rows(stream, path, separator):
    csv.field_size_limit(1 << 30)
    reader = csv.DictReader(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""), delimiter=separator, strict=True)
    try:
        for number, row in enumerate(reader, 1):
            extra = row.pop(None, None)
            short = [name for name, cell in row.items() if cell is None]
            if extra or short:
                yield f"{path} row {number}", Broken(f"has not the header's {len(reader.fieldnames)} cells")
            else:
                yield f"{path} row {number}", {name: cell_of(name, cell) for name, cell in row.items() if cell != ""}
    except UnicodeDecodeError:
        raise SystemExit(f"{path} is not UTF-8 beyond row {reader.line_num}; write it as UTF-8: iconv -t utf-8") from None
    except csv.Error as error:
        raise SystemExit(f"{path} line {reader.line_num} is no csv: {error}") from None


def cell_of(name, cell):
    """A cell; a label is true or false, and a list of messages or turns that was written as JSON is that list."""
    if name in ("label", "kto_tag") and cell in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return cell.lower() == "true"
    if cell.startswith(('[{"role"', '[{"from"', '[["')):
        try:
            return json.loads(cell)
        except ValueError:
            pass
    return cell


def arrow_rows(path, ending):
    try:
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        name = "parquet" if ending == ".parquet" else "feather"
        raise SystemExit(f"{path} is {ending[1:]}, and this Python has no pyarrow; give one that has by --python, or "
                         f"convert it where there is pandas: {CONVERT.format(name, path, path.with_suffix('.jsonl'))}") \
            from None
    try:
        number = 0
        for batch in arrow_batches(pyarrow, path, ending):
            for row in batch.to_pylist():
                number += 1
                yield f"{path} row {number}", row
    except pyarrow.ArrowInvalid as error:
        raise SystemExit(f"{path} cannot be read: {error}") from None


def arrow_batches(pyarrow, path, ending):
    if ending == ".parquet":
        yield from pyarrow.parquet.ParquetFile(path).iter_batches(1024)
        return
    with open(path, "rb") as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        if not is_file:  # the stream that `datasets` keeps
            yield from pyarrow.ipc.open_stream(file)
            return
        reader = pyarrow.ipc.open_file(file)
        yield from map(reader.get_batch, range(reader.num_record_batches))


def rows_of_file(path):
    ending, packed = kind_of_name(path)
    if ending in (".parquet", ".arrow"):
        if packed:
            raise SystemExit(f"{path} is packed, and so is what is in it; unpack it once")
        yield from arrow_rows(path, ending)
        return
    try:
        yield from rows_of_stream(path, ending, packed)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise SystemExit(f"{path} is damaged: {error}") from None


def rows_of_stream(path, ending, packed):
    with unpacked(path, packed) as stream:
        if ending in (".csv", ".tsv"):
            yield from table_rows(stream, path, "," if ending == ".csv" else "\t")
            return
        if ending == ".txt":
            yield from text_lines(stream, path)
            return
        is_array, stream = begins_as_array(stream)
        yield from (json_array if is_array else json_lines)(stream, path)


def text_lines(stream, path):
    """Every line that is not blank is a text, as `datasets` has it."""
    for number, line in enumerate(stream, 1):
        try:
            text = decoded(line.rstrip(b"\r\n"))
            if text.strip():
                yield f"{path} line {number}", {"text": text}
        except Bad as reason:
            yield f"{path} line {number}", Broken(str(reason))


def rows_of(paths, info=None):
    """(where, object or Broken) of everything that `paths` name; info: a DatasetInfo, which knows names too."""
    for path in paths:
        entry = info.entry(path) if info is not None else None
        files = files_of(entry.path if entry else pathlib.Path(path))

        def rows():
            for file in files:
                yield from rows_of_file(file)

        if not entry:
            yield from rows()
            continue
        for where, row in entry.rows(rows):
            yield where, entry.line_of(row) if isinstance(row, dict) else row
