#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# ModelScope's own client, with MODELSCOPE_CACHE on what a bundle carries and no hub: it finds each file of the model and
# the data set of create_models_test.cpp, and writes nothing.
#   scope_cache_client.py REVISION
import os
import pathlib
import sys

from modelscope.hub.file_download import dataset_file_download
from modelscope.hub.snapshot_download import snapshot_download

revision, cache = sys.argv[1], pathlib.Path(os.environ["MODELSCOPE_CACHE"])
before = sorted(cache.rglob("*"))
model = pathlib.Path(snapshot_download("Org/Tiny.v1", revision=revision, local_files_only=True))
data = pathlib.Path(snapshot_download("Org/Rows", revision=revision, repo_type="dataset", local_files_only=True))
assert (model / "config.json").is_file(), model
assert cache in model.parents and cache in data.parents, (model, data)
assert (data / "data/train.jsonl").read_text() == '{"text": "hello"}\n', data
unnamed = pathlib.Path(snapshot_download("Org/Rows", repo_type="dataset", local_files_only=True))  # the only one there
assert unnamed == data, unnamed
file = dataset_file_download("Org/Rows", "README.md", revision=revision, local_files_only=True)
assert pathlib.Path(file).read_text() == "# Rows\n", file
assert sorted(cache.rglob("*")) == before, "it wrote into the cache"
