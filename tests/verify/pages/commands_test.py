#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What the pages on sealift-verify tell people to type is run here as it stands there: each command of each code block,
# each example of a site.toml or golden.toml, each row of openssl's options. A table fills the placeholders. What a page
# says and the table does not know fails the test, and so does a row whose command no page has any more.
#   commands_test.py SEALIFT_VERIFY SEALIFT_TRAIN VERIFY_TESTS        in a Python with transformers
# The Chinese pages have the same commands: .ci/translations.py compares them.
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib

VERIFY, TRAIN, TESTS = map(os.path.abspath, sys.argv[1:4])
sys.dont_write_bytecode = True  # no folder of caches among the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from page_commands import ROOT, blocks, commands, forms, need  # noqa: E402

PAGES = ["docs/verify.md", "docs/verify_checks_compute.md", "docs/verify_checks_machine.md",
         "docs/verify_checks_training.md", "verify/README.md", "README.md"]
SHORT = " --device cpu --only machine.host"  # of a run, which takes a minute else; that it runs is what is shown here

# By command, without its comment: what stands for each placeholder, what is added, and the exit codes that are right.
# {site} is a folder with a report, its key and a prefix; commands of one page are run there in their order.
RUN = {
    "PREFIX/current/bin/sealift-verify run --level quick --out /srv/verdicts/2026-01-31":
        ({"PREFIX/current": "{site}/prefix", "/srv/verdicts": "{site}"}, SHORT, {0, 1}),
    "sealift-verify sign OUT --public-key SITE.pub": ({}, "", {0}),
    "openssl pkeyutl -sign -rawin -inkey SITE.key -in OUT/report.digests -out OUT/report.digests.sig": ({}, "", {0}),
    "openssl pkeyutl -verify -rawin -pubin -inkey SITE.pub -in OUT/report.digests -sigfile OUT/report.digests.sig":
        ({}, "", {0}),
    "(cd OUT && sha256sum -c report.digests)": ({}, "", {0}),
    "sealift-verify check-signature OUT --public-key SITE.pub": ({}, "", {0}),
    "sealift-verify diff before/ after/ [--threshold 0.05] [--json] [--html FILE] [--lang zh]":
        ({"FILE": "diff.html"}, "", {0}),
    "sealift-verify golden golden.toml --prefix STAGED --out qwen_lora.json":
        ({"STAGED": "prefix"}, " --device cpu", {0}),
    "sealift-verify run --level quick --ranks 2 --out verdict": ({}, SHORT, {0, 1}),
    "sealift-verify diff before/report.json after/report.json": ({}, "", {0}),
}
NOT_RUN_HERE = {}  # command: because ...

# By the first line of an example: the file that it is, and a command that reads it.
FILES = {
    "[arithmetic]": ("site.toml", "sealift-verify run --site site.toml --out compute" + SHORT, {0, 1}),
    "# site.toml": ("site.toml", "sealift-verify run --site site.toml --out training" + SHORT, {0, 1}),
    "# golden.toml": ("golden.toml", "true", {0}),  # which the command below it records
}


def make_site(site):
    """A report with its key, two to compare, and a prefix with a made model and the tokens of chats."""
    (site / "bin").mkdir()
    (site / "bin/sealift-verify").symlink_to(VERIFY)
    (site / "prefix/bin").mkdir(parents=True)
    shutil.copy(VERIFY, site / "prefix/bin")  # it takes the prefix that it lies in
    shutil.copy(TRAIN, site / "prefix/bin")
    (site / "prefix/lib").mkdir()
    for libraries in pathlib.Path(VERIFY).parent.parent.glob("lib/python3*"):  # by which they find LibTorch
        (site / "prefix/lib" / libraries.name).symlink_to(libraries.resolve())
    report = site / "OUT"
    subprocess.run([TESTS, "-tc=a folder holds the report*"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "SEALIFT_KEEP_PAGES": str(report)})
    for name in ("before", "after"):
        shutil.copytree(report, site / name)
    make_keys(site, "-algorithm", "ed25519")
    sys.path.insert(0, str(ROOT / "tests/train/loop"))
    import made_model
    for folder in ("models", "data"):
        (site / "prefix" / folder).mkdir()
    made_model.make_model(site / "prefix/models/tiny")
    made_model.write_lines(site / "chat.jsonl", made_model.chat_lines(64, 3))
    subprocess.run([sys.executable, ROOT / "trainer/data/tokenize", "--model", site / "prefix/models/tiny",
                    "--data", site / "chat.jsonl", "--out", site / "prefix/data/chat.tokens"], check=True,
                   stdout=subprocess.DEVNULL)


def make_keys(site, *kind):
    subprocess.run(["openssl", "genpkey", *kind, "-out", site / "SITE.key"], check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["openssl", "pkey", "-in", site / "SITE.key", "-pubout", "-out", site / "SITE.pub"], check=True)


def execute(site, command, codes, page):
    done = subprocess.run(["bash", "-c", command], cwd=site, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PATH": f"{site / 'bin'}:{os.environ['PATH']}"})
    need(done.returncode in codes, f"{page}: exit code {done.returncode}: {command}\n{done.stdout}{done.stderr}")
    print(f"{page}: {done.returncode}: {command}", flush=True)


def run_page(site, page, seen):
    for kind, text in blocks(page):
        if kind == "toml":
            first = text.splitlines()[0].strip()
            need(first in FILES, f"{page} has an example that this test does not know: {first}")
            name, command, codes = FILES[first]
            tomllib.loads(text)
            (site / name).write_text(text)
            execute(site, command, codes, page)
            seen.add(first)
        for command in commands(text) if kind == "sh" else []:
            if page == "README.md" and "sealift-verify" not in command:
                continue
            seen.add(command)
            if command in NOT_RUN_HERE:
                print(f"{page}: not run here, because {NOT_RUN_HERE[command]}: {command}")
                continue
            need(command in RUN, f"{page} has a command that is neither run nor listed: {command}")
            placeholders, more, codes = RUN[command]
            for form in forms(command):
                for placeholder, value in placeholders.items():
                    need(placeholder in command, f"{command} has no {placeholder}")
                    form = form.replace(placeholder, value.replace("{site}", shlex.quote(str(site))))
                execute(site, form + more, codes, page)


def run_key_options(site):
    """The table of keys: each kind signs and is checked with the options of its row."""
    kinds = {"Ed25519": ["-algorithm", "ed25519"], "SM2": ["-algorithm", "SM2"],
             "ECDSA P-384": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
             "ECDSA P-256": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]}
    table = (ROOT / PAGES[0]).read_text().split("| key | options |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| ([^|]+) \| (none|`[^`]+`) \|$", table, flags=re.M)
    need({key for key, _ in rows} == set(kinds), f"{PAGES[0]} has other keys: {rows}")
    of_page = [command for _, text in blocks(PAGES[0]) for command in commands(text) if "OUT" in command]
    for key, options in rows:
        make_keys(site, *kinds[key])
        for command in of_page:
            execute(site, command + ("" if options == "none" or "openssl" not in command else " " + options.strip("`")),
                    {0}, f"{PAGES[0]}, {key}")


def run_golden_of_page(site):
    """What the page's example records is met by this machine, by one process and by two ranks."""
    golden = site / "prefix/share/sealift/golden"
    golden.mkdir(parents=True)
    shutil.copy(site / "qwen_lora.json", golden)
    for ranks in (1, 2):
        execute(site, "sealift-verify run --device cpu --prefix prefix --only training.golden.qwen_lora "
                f"--ranks {ranks} --out golden{ranks}", {0}, "the golden run of docs/verify_checks_training.md")


with tempfile.TemporaryDirectory() as folder:
    site, seen = pathlib.Path(folder), set()
    make_site(site)
    for page in PAGES:
        run_page(site, page, seen)
    run_golden_of_page(site)
    run_key_options(site)
    gone = [each for each in (*RUN, *NOT_RUN_HERE, *FILES) if each not in seen]
    need(not gone, f"no page has any more: {gone}")
print("commands_test: good")
