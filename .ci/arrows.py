#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Compares every #include with the arrows that the design allows. Prints each that points the wrong way; exit status 1.
#   tools -> bundle; never tool <-> tool, never bundle <-> train, nothing -> tests or samples;
#   inside a half, a header only includes headers that stand before it in the umbrella's list;
#   strict_json.hpp and safetensors.hpp are leaves: both halves may include them, they include neither half; toml.hpp is
#   one for packager and samples only;
#   each third-party library is included by its one door.
#   arrows.py [ROOT]
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
PARTS = ("packager", "installer", "offline_repo", "samples", "tests", "bench")

# What both halves may include, and which include neither; each only those that stand before it.
LEAVES = ("include/sealift/strict_json.hpp", "include/sealift/safetensors.hpp")
# For the programs of either half, not for its headers.
TOML = "include/sealift/toml.hpp"

# part -> prefixes of the includes (as written, or resolved to the repository) that it may use
ALLOWED = {
    "bundle": ("include/sealift/bundle", *LEAVES),
    "train": ("include/sealift/train", *LEAVES),
    LEAVES[0]: (),
    LEAVES[1]: LEAVES[:1],
    TOML: (),
    "packager": ("include/sealift/bundle", LEAVES[1], TOML, "packager/"),
    "installer": ("include/sealift/bundle", "installer/"),
    "offline_repo": ("include/sealift/bundle", "offline_repo/"),
    "samples": ("include/sealift/train", TOML, "samples/"),
    "bench": ("include/sealift/", "bench/", "samples/"),
    "tests": ("",),
}

# pattern of an include -> the files that may have it (tests may include anything)
DOORS = {
    r"^zstd\.h$": {"include/sealift/bundle/archive/zstd.hpp"},
    r"^utf8proc\.h$": {"include/sealift/bundle/core/unicode.hpp"},
    r"^isa-l": {"include/sealift/bundle/archive/zip.hpp"},
    r"^zlib\.h$": set(),  # what we ship inflates with ISA-L; only tests deflate
    r"^openssl/": {"include/sealift/bundle/core/openssl.hpp", "include/sealift/train/checkpoint/digest.hpp"},
    r"^nlohmann/": {"include/sealift/bundle/core/json.hpp", *LEAVES, "samples/trainer/"},
    r"^curl/": {"packager/files/http_request.cpp"},
    r"^tomlplusplus/": {TOML},
    r"^boost/": {"offline_repo/server/server.cpp", "packager/host/url.cpp"},
    r"^torch/csrc/distributed/": {
        f"include/sealift/train/{name}.hpp" for name in ("rank_watch", "channel", "groups")
    },
}


def part_of(path):
    if path.startswith("include/sealift/bundle"):
        return "bundle"
    if path.startswith("include/sealift/train"):
        return "train"
    if path in (*LEAVES, TOML):
        return path
    return path.split("/")[0] if path.split("/")[0] in PARTS else None


def resolve(path, name):
    """The repository path of a quoted include, or None when it is not one of ours."""
    for candidate in (ROOT / "include" / name, ROOT / name, (ROOT / path).parent / name):
        if candidate.is_file():
            return str(candidate.resolve().relative_to(ROOT.resolve()))
    return None


def umbrella_order(half):
    umbrella = ROOT / f"include/sealift/{half}.hpp"
    names = [name for _, name in INCLUDE.findall(umbrella.read_text())] if umbrella.exists() else []
    return {f"include/{name}": position for position, name in enumerate(names)}


def main():
    faults = []
    order = {half: umbrella_order(half) for half in ("bundle", "train")}
    files = [p for part in ("include", *PARTS) for p in (ROOT / part).rglob("*") if p.suffix in (".hpp", ".cpp", ".h", ".cu")]
    for file in sorted(files):
        path = str(file.relative_to(ROOT))
        part = part_of(path)
        if part in order and path not in order[part] and path != f"include/sealift/{part}.hpp":
            faults.append(f"{path}: is not listed in include/sealift/{part}.hpp")
        for _, name in INCLUDE.findall(file.read_text()):
            for pattern, doors in DOORS.items():
                if re.search(pattern, name) and part != "tests" and not any(path.startswith(door) for door in doors):
                    faults.append(f"{path}: includes <{name}>, whose door is {' or '.join(sorted(doors))}")
            target = resolve(path, name)
            if target is None:
                continue
            if not target.startswith(ALLOWED[part]):
                faults.append(f"{path}: {'a leaf' if part == path else part} must not include {target}")
            if part in order and target in order[part] and path in order[part] and order[part][target] >= order[part][path]:
                faults.append(f"{path}: includes {target}, which stands later in the umbrella")
    print("\n".join(faults) if faults else f"arrows: {len(files)} files, all includes point the right way")
    return 1 if faults else 0


sys.exit(main())
