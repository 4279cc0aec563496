#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Which compiled kernels the code of transformers, diffusers and vLLM asks a hub for, and which releases of the loader
# (kernels) it takes: read in their wheels, or source archives, without running anything. Writes the packager's table
# anew, or compares it. By hand, when a new release is out, with at least the newest of each minor release:
#   pip download --no-deps transformers==5.24.0 … && asked_by_wheels.py *.whl *.tar.gz > packager/kernels/asked.tsv
#   asked_by_wheels.py --check *.whl    # exit code 1 where the table says something else of these releases
# Lines: package TAB first minor release TAB the one after the last, or "-" TAB repository TAB revisions TAB when:
# "itself" (code that runs without being told to), "layers" (use_kernels=True), "backend" (set_attention_backend),
# "window" (the releases of kernels; beside others it acts as if there were none). Left out: what is for other devices
# than CUDA's.
import ast
import pathlib
import re
import sys
import tarfile
import zipfile

CALLS = {"get_kernel": "itself", "LayerRepository": "layers", "FuncRepository": "layers", "_HubKernelConfig": "backend"}
OTHER_DEVICES = {"xpu", "npu", "mps", "rocm", "neuron", "cpu", "hpu"}
OTHER_NAMES = re.compile(r"aiter|mlx|metal")


def sources(path):
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            for name in wheel.namelist():
                if name.endswith(".py"):
                    yield name, wheel.read(name).decode("utf-8", "replace")
        return
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".py"):
                yield member.name, archive.extractfile(member).read().decode("utf-8", "replace")


def texts(node, names):
    """The strings that an expression can be: both ways of a condition, a name of the module."""
    if isinstance(node, ast.Constant):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return texts(node.body, names) + texts(node.orelse, names)
    if isinstance(node, ast.Name):
        return names.get(node.id, [])
    return []


def revision_of(keys):
    for value in keys.get("revision", []):
        if isinstance(value, str):
            return value
    found = [f"v{value}" for value in keys.get("version", []) if isinstance(value, int)]
    return " or ".join(sorted(set(found))) or "main"


class Reader(ast.NodeVisitor):
    def __init__(self, tree):
        self.names = {}
        self.asked = set()
        self.fallbacks, self.versions, self.device = [], {}, []
        self.by_attention, self.default = {}, ["main"]
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.names[node.targets[0].id] = texts(node.value, {})
        self.visit(tree)

    def ask(self, repos, revision, how):
        if self.device and self.device[-1] in OTHER_DEVICES:
            return
        for repo in repos:
            if isinstance(repo, str) and re.fullmatch(r"[\w.-]+/[\w.-]+", repo) and not OTHER_NAMES.search(repo):
                self.asked.add((repo, revision, how))

    def visit_Call(self, node):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in CALLS:
            keys = {word.arg: texts(word.value, self.names) for word in node.keywords}
            repos = keys.get("repo_id") or (texts(node.args[0], self.names) if node.args else [])
            self.ask(repos, revision_of(keys), CALLS[name])
        self.generic_visit(node)

    def visit_Dict(self, node):
        keys = {key.value: texts(value, self.names) for key, value in zip(node.keys, node.values)
                if isinstance(key, ast.Constant)}
        if "repo_id" in keys:
            self.ask(keys["repo_id"], revision_of(keys), "itself")
        for key, value in zip(node.keys, node.values):
            device = key.value if isinstance(key, ast.Constant) else None
            if isinstance(key, ast.Call):  # Device(type="rocm", …)
                device = next((word.value.value for word in key.keywords if word.arg == "type"), None)
            self.device.append(device if device in OTHER_DEVICES | {"cuda"} else (self.device or [None])[-1])
            self.visit(value)
            self.device.pop()

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(ast.Assign(targets=[node.target], value=node.value))

    def visit_Assign(self, node):
        name = getattr(node.targets[0], "id", "")
        if name == "FLASH_ATTN_KERNEL_FALLBACK":
            for value in node.value.values:
                self.fallbacks += texts(value, self.names)
        elif name == "FLASH_ATTN_KERNEL_VERSIONS":
            for key, value in zip(node.value.keys, node.value.values):
                self.versions[key.value] = " or ".join(f"v{one}" for one in sorted(set(texts(value, {}))))
        elif name == "applicable_attn_implementation":  # transformers 4: in modeling_utils.py
            self.fallbacks += [one for one in texts(node.value, self.names) if isinstance(one, str) and "/" in one]
        elif name == "_FLASH_ATTN_KERNEL_VERSION_MAPPING":  # of flash attention's own version
            for key, value in zip(node.value.keys, node.value.values):
                self.by_attention[str(key.value)] = f"v{value.value}"
        elif name == "_DEFAULT_ATTN_KERNEL_VERSION":
            self.default = [f"v{node.value.value}"]
        elif name == "version" and isinstance(node.value, ast.IfExp) and "is_fa4" in ast.dump(node.value.test):
            self.default = ["v1", "v0"]  # for others, for flash-attn4
        self.generic_visit(node)


def is_of_interest(name, text, package):
    words = r"get_kernel|repo_id|KERNELS_MIN|FLASH_ATTN_KERNEL|DEFAULT_ATTN_KERNEL|applicable_attn_implementation"
    return package in name and "test" not in name and re.search(words, text)


def window_of(text):
    found = [re.search(rf'^KERNELS_{key}_VERSION = "(.*)"', text, re.M) for key in ("MIN", "MAX")]
    return ",".join(sign + one[1] for sign, one in zip((">=", "<"), found) if one)


def read(path):
    """A release's package, version and {(repository, revisions, when)}."""
    package, version = path.name.removesuffix(".tar.gz").split("-")[:2]
    asked, fallbacks, versions, by_attention, default = set(), set(), {}, {}, ["main"]
    for name, text in sources(path):
        if not is_of_interest(name, text, package):
            continue
        if window := window_of(text):
            asked.add(("kernels", window, "window"))
        found = Reader(ast.parse(text))
        asked |= found.asked
        fallbacks |= {repo for repo in found.fallbacks if not OTHER_NAMES.search(repo)}
        versions |= found.versions
        by_attention |= found.by_attention
        default = found.default if found.default != ["main"] else default
    for repo in fallbacks:
        usual = by_attention.get(repo[-1], default[-1 if "attn4" in repo else 0])
        asked.add((repo, versions.get(repo, usual), "itself"))
    return package, version, asked


def minor(version):
    return tuple(int(part) for part in version.split(".")[:2])


def ranges(releases):
    """{minor release: what it asks for} of one package -> lines."""
    lines, open_since, before = [], {}, sorted(releases)
    for release in before:
        for gone in set(open_since) - releases[release]:
            lines.append((open_since.pop(gone), release, gone))
        for new in releases[release] - set(open_since):
            open_since[new] = release
    lines += [(first, None, asked) for asked, first in open_since.items()]
    text = lambda release: ".".join(map(str, release)) if release else "-"
    return [(text(first), text(last), *asked) for first, last, asked in sorted(lines, key=lambda line: line[2] + line[0])]


def table_says(table, package, version):
    rows = [line.split("\t") for line in table.splitlines() if not line.startswith("#")]
    return {(row[3], row[4], row[5]) for row in rows if row[0] == package and minor(row[1]) <= minor(version) and
            (row[2] == "-" or minor(version) < minor(row[2]))}


def write(found):
    by_package = {}
    for package, version, asked in found:
        by_package.setdefault(package, {})[minor(version)] = asked
    print("# Made by tests/packager/kernels/asked_by_wheels.py, which says what the columns are; do not edit. Read:")
    for package in sorted(by_package):
        print("#", package, *sorted((version for name, version, _ in found if name == package), key=minor))
    for package in sorted(by_package):
        for line in ranges(by_package[package]):
            print(package, *line, sep="\t")


def compare(found):
    table = (pathlib.Path(__file__).parents[3] / "packager" / "kernels" / "asked.tsv").read_text()
    wrong = 0
    for package, version, asked in found:
        for one in sorted(asked ^ table_says(table, package, version)):
            wrong += 1
            print(package, version, "in the wheel alone:" if one in asked else "in the table alone:", *one)
    print(f"{len(found)} releases, {sum(len(asked) for _, _, asked in found)} rows, {wrong} differ")
    return int(wrong > 0)


def main():
    check = sys.argv[1:2] == ["--check"]
    found = [read(pathlib.Path(path)) for path in sys.argv[1 + check:]]
    if check:
        return compare(found)
    write(found)
    return 0


sys.exit(main())
