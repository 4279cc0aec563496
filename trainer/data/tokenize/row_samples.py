# SPDX-License-Identifier: Apache-2.0
# Parts of files: ms-swift's `data.jsonl#20`, so many rows at random, and LLaMA-Factory's max_samples, so many first ones.
# Beside data_files; #20 in data of ms-swift alone, where it is no file's name; more than there are: each again, as there.
# Rows are counted, then read once more, so that no file has to fit into memory; a seed gives the same rows each time.
import collections
import itertools
import pathlib
import random
import re

from data_files import files_of, rows_of, rows_of_file


def count_of(path):
    """(the file, how many rows) of a name with #N behind it; None for a file's own name."""
    found = re.fullmatch(r"(.+)#(\d+)", str(path), re.DOTALL)
    return None if found is None or path.exists() else (pathlib.Path(found[1]), int(found[2]))


def sampled(path, count, seed):
    files = list(files_of(path))
    total = sum(1 for file in files for _ in rows_of_file(file))
    if count and not total:
        raise SystemExit(f"{path} has no rows, of which {count} are to be taken")
    repeats, rest = divmod(count, total) if total else (0, 0)
    times = collections.Counter(random.Random(seed).sample(range(total), rest))
    number = 0
    for file in files:
        for row in rows_of_file(file):
            for _ in range(repeats + times[number]):
                yield row
            number += 1


def rows_of_names(options, info):
    """The rows of all that --data names."""
    for path in options.data:
        found = count_of(path) if options.data_format == "ms-swift" else None
        rows = sampled(*found, options.data_seed) if found else rows_of([path], info)
        yield from itertools.islice(rows, options.max_rows or None)
