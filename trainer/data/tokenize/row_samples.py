# SPDX-License-Identifier: Apache-2.0
# Parts of files: ms-swift's `data.jsonl#20`, so many rows at random, and LLaMA-Factory's max_samples, so many first ones.
# Beside data_files; #20 in data of ms-swift alone, where it is no file's name; more than there are: each again, as there.
import itertools
import pathlib
import re

from data_files import files_of, rows_of, rows_of_file
from drawn_rows import drawn_rows
from held_out import side_of


def count_of(path):
    """(the file, how many rows) of a name with #N behind it; None for a file's own name."""
    found = re.fullmatch(r"(.+)#(\d+)", str(path), re.DOTALL)
    return None if found is None or path.exists() else (pathlib.Path(found[1]), int(found[2]))


def sampled(path, count, seed):
    files = list(files_of(path))
    return drawn_rows(lambda: itertools.chain.from_iterable(map(rows_of_file, files)), count, seed, path)


def rows_of_names(options, info):
    """The rows of all that --data names, or of these one side of --held-out."""
    if not options.held_out:
        return all_rows(options, info)
    return side_of(lambda: all_rows(options, info), options.held_out, options.data_seed, options.held_out_only)


def all_rows(options, info):
    for path in options.data:
        found = count_of(path) if options.data_format == "ms-swift" else None
        rows = sampled(*found, options.data_seed) if found else rows_of([path], info)
        yield from itertools.islice(rows, options.max_rows or None)
