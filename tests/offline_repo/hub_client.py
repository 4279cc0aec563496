#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The hubs' own clients, transformers and datasets, against the server at HF_ENDPOINT and MODELSCOPE_ENDPOINT. Each step says what it is and ends the
# program when it is not so. The models are those of hub_client_test.cpp; their files lie in the folder FILES, too.
#   hub_client.py download FILES | again FILES | transformers FILES | datasets FILES | modelscope FILES | msdatasets FILES
#   hub_client.py moved FILES PROGRAM        PROGRAM makes "main" another commit
import pathlib
import sys

COMMIT = "c" * 40
mode, files = sys.argv[1], pathlib.Path(sys.argv[2])
names = sorted(str(path.relative_to(files)) for path in files.rglob("*") if path.is_file())


def equal(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got!r} instead of {wanted!r}")


def fails(what, wanted, action):
    try:
        action()
    except wanted:
        return
    sys.exit(f"{what}: no {wanted}")


def same_files(what, folder):
    for name in names:
        equal(f"{what}: {name}", (pathlib.Path(folder) / name).read_bytes(), (files / name).read_bytes())


if mode in ("download", "again"):
    import subprocess

    import huggingface_hub
    from huggingface_hub import HfApi, hf_hub_download, list_repo_files, snapshot_download
    from huggingface_hub.utils import EntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError

    folder = snapshot_download("org/tiny")
    equal("the snapshot's commit", pathlib.Path(folder).name, COMMIT)
    same_files("a snapshot", folder)
    for revision in ("main", COMMIT):
        path = hf_hub_download("org/tiny", "config.json", revision=revision)
        equal("a file of " + revision, pathlib.Path(path).read_bytes(), (files / "config.json").read_bytes())
if mode == "download":
    api = HfApi()
    equal("the list of files", sorted(list_repo_files("org/tiny")), names)
    equal("the commit", api.model_info("org/tiny").sha, COMMIT)
    equal("a search", [model.id for model in api.list_models(search="tiny")], ["org/tiny"])
    equal("the data sets", [one.id for one in api.list_datasets(author="org")], ["org/rows"])
    equal("the token's name", api.whoami()["name"], "reader")
    if int(huggingface_hub.__version__.split(".")[0]) >= 1:  # `hf models ls` is younger than 0.36
        hf = [sys.executable, "-c", "import sys; from huggingface_hub.cli.hf import main; sys.argv[0] = 'hf'; main()"]
        said = subprocess.run([*hf, "models", "ls", "--search", "tiny", "--format", "json"], capture_output=True,
                              text=True)
        equal("hf models ls", (said.returncode, "org/tiny" in said.stdout, "org/rows" in said.stdout), (0, True, False))
        said = subprocess.run([*hf, "auth", "whoami"], capture_output=True, text=True)
        equal("hf auth whoami", (said.returncode, "reader" in said.stdout), (0, True))
    equal("the branches", [branch.name for branch in api.list_repo_refs("org/tiny").branches], ["main"])
    equal("the commits", [commit.commit_id for commit in api.list_repo_commits("org/tiny")], [COMMIT])
    if not hasattr(api, "list_repo_tree"):  # before 0.21
        HfApi.get_paths_info = HfApi.list_repo_tree = HfApi.list_files_info
    infos = api.get_paths_info("org/tiny", ["config.json", "sub", "absent"])
    equal("paths", sorted(info.path for info in infos), ["config.json", "sub"])
    equal("the root", sorted(item.path for item in api.list_repo_tree("org/tiny")),
          sorted({name.split("/")[0] for name in names}))
    equal("a data set", pathlib.Path(hf_hub_download("org/rows", "rows.jsonl", repo_type="dataset")).read_text(),
          '{"text": "hello"}\n')
    equal("whether a file exists", [api.file_exists("org/tiny", name) for name in ("config.json", "absent")],
          [True, False])
    fails("a missing file", EntryNotFoundError, lambda: hf_hub_download("org/tiny", "absent.json"))
    fails("a missing folder", EntryNotFoundError, lambda: list(api.list_repo_tree("org/tiny", "absent")))
    fails("a missing revision", RevisionNotFoundError,
          lambda: hf_hub_download("org/tiny", "config.json", revision="v9"))
    fails("a missing repository", RepositoryNotFoundError, lambda: hf_hub_download("org/absent", "config.json"))
    fails("a missing repository's information", RepositoryNotFoundError, lambda: api.model_info("org/absent"))
    fails("a missing repository's snapshot", RepositoryNotFoundError, lambda: snapshot_download("org/absent"))
    local = files.parent / "local"
    snapshot_download("org/tiny", local_dir=local, allow_patterns=["*.json"])
    equal("a file that was chosen", (local / "config.json").read_bytes(), (files / "config.json").read_bytes())
    equal("a file that was not", (local / "sub/weights.safetensors").exists(), False)
if mode == "moved":
    import subprocess
    import time
    import urllib.request

    from huggingface_hub import file_download, hf_hub_download, hf_hub_url

    info = hf_hub_url("org/tiny", "w").split("/org/")[0] + "/api/models/org/tiny"

    def moved(*given, really=file_download.http_get, **named):
        subprocess.run([sys.argv[3]], check=True, stdout=subprocess.DEVNULL)
        while b"2" * 40 not in urllib.request.urlopen(info).read():
            time.sleep(0.02)
        return really(*given, **named)

    file_download.http_get = moved
    path = pathlib.Path(hf_hub_download("org/tiny", "w"))
    equal("the commit", path.parent.name, "1" * 40)
    equal("the file of that commit", path.read_bytes() == (files / "first").read_bytes(), True)
    file_download.http_get = moved.__kwdefaults__["really"]
    equal("the branch's commit now", pathlib.Path(hf_hub_download("org/tiny", "w")).parent.name, "2" * 40)
if mode == "transformers":
    from transformers import AutoConfig, AutoTokenizer

    equal("a configuration", AutoConfig.from_pretrained("org/tiny").n_embd, 8)
    equal("tokens", AutoTokenizer.from_pretrained("org/tiny")("hello world")["input_ids"], [1, 2])
if mode == "datasets":
    from datasets import load_dataset

    equal("the rows of a data set", list(load_dataset("org/rows", split="train")), [{"text": "hello"}])
if mode == "modelscope":
    from modelscope import snapshot_download
    from modelscope.hub.errors import NotExistError
    from modelscope.hub.file_download import model_file_download
    from requests.exceptions import HTTPError

    same_files("a snapshot", snapshot_download("Org/Tiny"))
    path = model_file_download("Org/Tiny", "config.json", revision="master")
    equal("a file", pathlib.Path(path).read_bytes(), (files / "config.json").read_bytes())
    missing = (HTTPError, NotExistError)  # 1.40, 1.28
    fails("a missing file", missing, lambda: model_file_download("Org/Tiny", "absent.json"))
    fails("a missing repository", missing, lambda: snapshot_download("Org/Absent"))
    from modelscope.hub.file_download import dataset_file_download
    from modelscope.hub.snapshot_download import dataset_snapshot_download

    rows = pathlib.Path(dataset_snapshot_download("Org/Rows"))  # more than two of its pages
    equal("a data set", [(rows / f"part/{i}.txt").read_text() for i in range(420)], [f"row {i}\n" for i in range(420)])
    path = dataset_file_download("Org/Rows", "part/7.txt", revision="master")
    equal("a file of a data set", pathlib.Path(path).read_text(), "row 7\n")
    fails("a missing file of a data set", missing, lambda: dataset_file_download("Org/Rows", "absent.txt"))
    fails("a missing data set", missing, lambda: dataset_snapshot_download("Org/Absent"))
if mode == "msdatasets":
    from modelscope.msdatasets import MsDataset

    equal("the rows of a data set", list(MsDataset.load("Org/Text", split="train")), [{"text": "hello"}])
print("good")
