# SPDX-License-Identifier: Apache-2.0
# A part of the rows that is kept for evaluation: LLaMA-Factory's val_size, axolotl's val_set_size, ms-swift's
# split_dataset_ratio. Above row_samples; a job makes one token file of each side.
# Drawn by a seed over all rows, the same for both sides, so that nothing that is evaluated is learned. Rows are counted,
# then read once more, so that no file has to fit into memory.
import math
import random


def side_of(given, part, seed, held_out):
    """Of what `given()` yields the rows that are held out, or the others; part: below 1 of them, else a number."""
    total = sum(1 for _ in given())
    count = int(part) if part > 1 else math.ceil(part * total)
    if count >= total:
        raise SystemExit(f"{count} of {total} rows are to be kept for evaluation; leave some to train on")
    drawn = set(random.Random(seed).sample(range(total), count))
    for number, row in enumerate(given()):
        if (number in drawn) == held_out:
            yield row
