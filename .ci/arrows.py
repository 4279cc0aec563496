#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Compares every #include with the arrows that the design allows. Prints each that points the wrong way; exit status 1.
#   spelling        a quoted include, and <sealift/...>, leads to a file from the include root or the repository root
#   between parts   tools -> bundle; trainer, verify, launch -> train, and bundle's core and host; verify -> trainer's rooms
#                   below its verbs; never tool <-> tool, never bundle <-> train, nothing -> tests or samples
#   inside a part   a room uses its own floor and those below it (FLOORS); neither rooms nor files use each other in a circle
#   building        no CMakeLists.txt compiles a source of another part
#   umbrellas       each public header is listed in its half's umbrella, after the headers that it includes (but BY_PROGRAMS)
#   makers          the core's code names no maker of devices, but in the one file that brings a maker's collectives
#   third parties   each library is included by its one door, and none by a public header of the bundle half
#   arrows.py [ROOT]
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
FOLDERS = ("include", "bundle", "packager", "installer", "offline_repo", "trainer", "verify", "launch", "samples", "tests",
           "bench")

# What both halves may include, and which include neither; each only the ones before it in this list.
LEAVES = ("include/sealift/strict_json.hpp", "include/sealift/safetensors_values.hpp", "include/sealift/safetensors.hpp")
# For the programs of either half, not for its headers.
TOML, NEAREST = "include/sealift/toml.hpp", "include/sealift/nearest.hpp"
WRAPPER = "include/sealift/saved_wrapper.hpp"
# What a program includes or compiles beside the umbrella, since it changes the whole program.
BY_PROGRAMS = {"include/sealift/train/comm/gloo_turns.hpp", "include/sealift/train_compiled.cpp"}

# part -> its rooms, bottom to top. A file that stands in the part's own folder is on the floor that names it, else on "".
FLOORS = {
    "bundle": "core host manifest trust payload archive native wheel image".split() + [""],
    "packager": "host files network tables toolchain lock job content keys libraries native models kernels images debian rpm resolve interpreter builds python owners pack delta documents compare".split()
    + ["lock_job create", "verbs", "main"],
    "installer": "start host disk prefix store layout trial generations activation upkeep preflight doctor export mend apply image mount print verbs".split() + ["", "main"],
    "offline_repo": "catalogue protocols holdings requests views routes chunks records server verbs main".split(),
    "trainer": ["failure json_numbers shown_number kept_memory own_bundle version", "command_line"]
    + "settings monitor kernels ranks models data objectives tuning simulate plan loop fine_tune verification rehearse compare verbs main".split(),
    "verify": "verdict wording conduct machine arithmetic communication training egress installation pictures pages report verbs main".split(),
    "launch": "standalone place ranks main".split(),
}

# part -> prefixes of the repository's files that it may include
BUNDLE = ("include/sealift/bundle", "bundle/")
# What both halves stand on: errors, files, strict JSON, child processes, the command line.
GROUND = tuple(f"{root}/{room}/" for root in ("include/sealift/bundle", "bundle") for room in ("core", "host"))
TRAIN = ("include/sealift/train",)
# What verify, samples and comparisons may use of the trainer: its libraries, not its program.
TRAINER = tuple(f"trainer/{room}" for floor in FLOORS["trainer"][:-2] for room in floor.split())
ALLOWED = {
    "bundle": (*BUNDLE, *LEAVES, NEAREST),
    "train": (*TRAIN, *LEAVES),
    LEAVES[0]: (),
    LEAVES[1]: (),
    LEAVES[2]: LEAVES[:2],
    TOML: ("third_party/",),
    NEAREST: (),
    WRAPPER: (),
    "packager": (*BUNDLE, LEAVES[2], TOML, NEAREST, WRAPPER, "packager/"),
    "installer": (*BUNDLE, "installer/"),
    "offline_repo": (*BUNDLE, "offline_repo/"),
    "trainer": (*TRAIN, *GROUND, *LEAVES, TOML, NEAREST, WRAPPER, "trainer/"),
    "verify": (*TRAIN, *GROUND, *LEAVES, TOML, NEAREST, *TRAINER, "verify/"),
    "launch": (*TRAIN, *GROUND, *LEAVES, NEAREST, "launch/"),
    "samples": (*TRAIN, *LEAVES, "trainer/models/", "trainer/tuning/", "samples/"),  # 03_lora: a model and its adapters
    "bench": ("include/sealift/", "bundle/", *TRAINER, "bench/"),
    "tests": ("",),
}

# pattern of an include -> the files that may have it (tests may include anything)
DOORS = {
    r"^zstd(_errors)?\.h$": {"bundle/archive/", "bundle/image/squashfs."},
    r"^isa-l/(igzip|crc)": {"bundle/archive/"},
    r"^isa-l/(?!igzip|crc)": {"bundle/payload/reed_solomon."},
    r"^zlib\.h$": {"installer/export/deflate."},  # what we ship inflates with ISA-L
    r"^fuse3/": {"installer/mount/fuse_server."},
    r"^sqfs/": {"bundle/image/"},
    r"^utf8proc\.h$": {"bundle/core/unicode."},
    r"^yaml-cpp/": {"bundle/core/yaml."},
    r"^openssl/(ssl|x509v3)\.h$": {"offline_repo/server/tls.cpp"},
    r"^openssl/(?!ssl\.h|x509v3\.h)": {"bundle/core/openssl.hpp", "include/sealift/train/checkpoint/digest_inl.hpp"},
    r"^nlohmann/": {"bundle/core/json.hpp", "bundle/core/json_object.hpp", *LEAVES, "trainer/", "verify/"},
    r"^curl/": {"packager/network/http_request.cpp"},
    r"^tomlplusplus/": {TOML},
    r"^boost/url": {"packager/host/url."},
    r"^boost/(?!url)": {"offline_repo/server/"},
    r"^CLI/": {"bundle/host/command_line."},
    r"^torch/csrc/distributed/": {"include/sealift/train/comm/", "trainer/", "verify/"},
}

# Of the core: what names a maker of devices, and who may. All else asks c10, so that any device does.
MAKERS = re.compile(r"\bis_(?:cuda|hip|xpu|mps|privateuseone)\b|\bk(?:CUDA|HIP|XPU|MPS)\b|\b(?:at|c10|torch)::(?:cuda|hip|xpu)::|\bProcessGroupNCCL\b")
MAKERS_DOOR = "include/sealift/train/comm/nccl_backend.hpp"


def part_of(path):
    if path.startswith("include/sealift/bundle"):
        return "bundle"
    if path.startswith("include/sealift/train"):
        return "train"
    if path in (*LEAVES, TOML, NEAREST, WRAPPER):
        return path
    top = path.split("/")[0]
    return top if top in FOLDERS and top != "include" else None


def header_of(path):
    """The core's x_inl.hpp has the bodies of x.hpp, and what holds for the header holds for it."""
    return re.sub(r"^(include/sealift/train/.*)_inl\.hpp$", r"\1.hpp", path)


def inside(path):
    """The path below its part's folder: include/sealift/bundle/core/x.hpp and bundle/core/x.cpp are both core/x.*"""
    return re.sub(r"^(include/sealift/\w+|\w+)/", "", header_of(path))


def room_of(path):
    """The folder that a file stands in; of a file in the part's own folder the name."""
    below = inside(path).split("/")
    return below[0] if len(below) > 1 else pathlib.Path(below[0]).stem


def floor_of(path):
    floors = FLOORS[part_of(path)]
    room = room_of(path)
    for position, names in enumerate(floors):
        if room in names.split():
            return position
    below = inside(path).split("/")
    return floors.index("") if len(below) == 1 and "" in floors else None


def concept_of(path):
    """A header, its body and its declarations elsewhere are one concept."""
    return f"{part_of(path)}/{inside(path).rsplit('.', 1)[0]}"


def resolve(name):
    """The repository path of an include, of what CMake makes its template; None where it leads to no file of ours."""
    for candidate in (f"include/{name}", name, f"{name}.in"):
        if ".." not in name.split("/") and (ROOT / candidate).is_file():
            return candidate
    return None


def umbrella_order(half):
    umbrella = ROOT / f"include/sealift/{half}.hpp"
    names = [name for _, name in INCLUDE.findall(umbrella.read_text())] if umbrella.exists() else []
    return {f"include/{name}": position for position, name in enumerate(names)}


def circles(graph):
    """Circles of a graph {node: nodes}, each once, as a path that ends where it began."""
    found, done = [], set()

    def walk(node, trail):
        if node in trail:
            found.append(trail[trail.index(node):] + [node])
        elif node not in done:
            for other in sorted(graph.get(node, ())):
                walk(other, trail + [node])
            done.add(node)

    for node in sorted(graph):
        walk(node, [])
    return found


def main():
    faults, concepts, rooms = [], {}, {}
    order = {half: umbrella_order(half) for half in ("bundle", "train")}
    files = [p for top in FOLDERS for p in (ROOT / top).rglob("*") if p.suffix in (".hpp", ".cpp", ".h", ".cu")]
    for file in sorted(files):
        path = str(file.relative_to(ROOT))
        part = part_of(path)
        public = path.startswith("include/sealift/")
        umbrella = path == f"include/sealift/{part}.hpp"
        if part not in ("bundle", "tests") and "bundle::detail" in file.read_text():
            faults.append(f"{path}: uses bundle::detail, which is for the bodies of bundle alone")
        code = re.sub(r"//.*", "", file.read_text()) if part == "train" and path != MAKERS_DOOR else ""
        for name in dict.fromkeys(MAKERS.findall(code)):
            faults.append(f"{path}: names {name}, a maker's; ask c10, or write it in {MAKERS_DOOR}")
        if part in FLOORS and not umbrella and floor_of(path) is None:
            faults.append(f"{path}: stands in a room that FLOORS does not name")
        header = header_of(path)
        if part in order and public and header not in order[part] and not umbrella and path not in BY_PROGRAMS:
            faults.append(f"{path}: is not listed in include/sealift/{part}.hpp")
        elif header != path and f"<{path.removeprefix('include/')}>" not in (ROOT / header).read_text():
            faults.append(f"{path}: its header does not include it")
        for quote, name in INCLUDE.findall(file.read_text()):
            for pattern, doors in DOORS.items():
                if re.search(pattern, name) and part != "tests" and not any(path.startswith(door) for door in doors):
                    faults.append(f"{path}: includes <{name}>, whose door is {' or '.join(sorted(doors))}")
            target = resolve(name)
            if target is None:
                if quote == '"' or name.startswith("sealift/"):
                    faults.append(f"{path}: includes {name}, which leads to no file from the include root or the repository's")
                continue
            if not target.startswith(ALLOWED[part]):
                faults.append(f"{path}: {'a leaf' if part == path else part} must not include {target}")
            if umbrella or part_of(target) != part:
                continue
            if part == "bundle" and public and target.startswith("bundle/"):
                faults.append(f"{path}: a public header must not include {target}, which is not installed")
            if part in FLOORS and None not in (floor_of(path), floor_of(target)) and floor_of(target) > floor_of(path):
                faults.append(f"{path}: includes {target}, which stands on a higher floor")
            ours, theirs = (order.get(part, {}).get(header_of(each)) for each in (path, target))
            if None not in (ours, theirs) and (theirs > ours or theirs == ours and header == path and "_inl." not in target):
                faults.append(f"{path}: includes {target}, which stands later in the umbrella")
            if part != "tests" and concept_of(target) != concept_of(path):
                concepts.setdefault(concept_of(path), set()).add(concept_of(target))
            if (part in FLOORS or part == "train") and room_of(target) != room_of(path):
                rooms.setdefault(part, {}).setdefault(room_of(path), set()).add(room_of(target))
    for circle in circles(concepts):
        faults.append("a circle of files: " + " -> ".join(circle))
    for part, graph in sorted(rooms.items()):
        faults += [f"a circle of rooms in {part}: " + " -> ".join(circle) for circle in circles(graph)]
    for lists in sorted(p for top in FOLDERS for p in (ROOT / top).rglob("CMakeLists.txt")):
        for source in re.findall(r"\.\./\S+\.(?:cpp|cu)\b", lists.read_text()):
            faults.append(f"{lists.relative_to(ROOT)}: compiles {source} of another part; link its library")
    print("\n".join(faults) if faults else f"arrows: {len(files)} files, all includes point the right way")
    return 1 if faults else 0


sys.exit(main())
