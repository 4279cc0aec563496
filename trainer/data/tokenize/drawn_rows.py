# SPDX-License-Identifier: Apache-2.0
# So many rows at random, of a file (ms-swift's `data.jsonl#20`) or of a data set (LLaMA-Factory's num_samples).
# Under row_samples and dataset_info. Rows are counted, then read once more, so that no file has to fit into memory.
import collections
import random


def drawn_rows(given, count, seed, name):
    """`count` of what `given()` yields, in its order, the same for a seed; above their number each comes again."""
    total = sum(1 for _ in given())
    if count and not total:
        raise SystemExit(f"{name} has no rows, of which {count} are to be taken")
    repeats, rest = divmod(count, total) if total else (0, 0)
    times = collections.Counter(random.Random(seed).sample(range(total), rest))
    for number, row in enumerate(given()):
        for _ in range(repeats + times[number]):
            yield row
