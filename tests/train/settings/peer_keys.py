# SPDX-License-Identifier: Apache-2.0
# Every key of a job file of LLaMA-Factory, axolotl, TRL and ms-swift with its default -> peer_keys.txt, a line each.
# By hand, where a project has a new version: `peer_keys.py FOLDER` downloads the wheels into FOLDER and prints the list;
# with --check it fails where the list beside it is another one. foreign_jobs_test.cpp holds our tables to that list.
# The sources are read and not run: nothing of what they import has to be there.
import ast
import json
import pathlib
import subprocess
import sys
import zipfile

# project -> its wheel, the files of its arguments' classes, and the classes whose fields are keys.
PROJECTS = {
    "LLaMA-Factory": ("llamafactory", ["llamafactory/hparams/*.py"],
                      ["ModelArguments", "DataArguments", "TrainingArguments", "FinetuningArguments",
                       "GeneratingArguments"]),
    "axolotl": ("axolotl", ["axolotl/utils/schemas/*.py"], ["AxolotlInputConfig"]),
    "axolotl datasets": ("axolotl", ["axolotl/utils/schemas/*.py"], ["SFTDataset", "DPODataset", "KTODataset"]),
    "TRL": ("trl", ["trl/trainer/*_config.py", "trl/scripts/utils.py"],
            ["SFTConfig", "DPOConfig", "KTOConfig", "RewardConfig", "ModelConfig", "ScriptArguments",
             "DatasetMixtureConfig"]),
    "ms-swift": ("ms-swift", ["swift/arguments/*.py", "swift/arguments/base_args/*.py", "swift/trainers/arguments.py",
                               "swift/rlhf_trainers/args_mixin.py"], ["SftArguments", "RLHFArguments"]),
}

OF_TRANSFORMERS = "transformers.TrainingArguments"


def wheel_of(folder, package):
    name = package.replace("-", "_")
    if not list(folder.glob(f"{name}-*.whl")):
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d",
                        str(folder), package], check=True)
    return sorted(folder.glob(f"{name}-*.whl"))[-1]


def classes_of(wheel, patterns):
    """name -> the classes' bodies, of all of that name."""
    found = {}
    with zipfile.ZipFile(wheel) as archive:
        for path in sorted(archive.namelist()):
            if any(pathlib.PurePath(path).match(pattern) for pattern in patterns) and path.endswith(".py"):
                for node in ast.walk(ast.parse(archive.read(path))):
                    if isinstance(node, ast.ClassDef):
                        found.setdefault(node.name, []).append(node)
    return found


def default_of(value):
    """A default that is written as it is; None for one that is made, or for none."""
    if isinstance(value, ast.Call):
        value = next((word.value for word in value.keywords if word.arg == "default"),
                     value.args[0] if value.args else None)
    try:
        return ast.literal_eval(value) if value is not None else None
    except ValueError:
        return None


def name_of(line):
    """A field's key in a file: pydantic's alias, where it has one."""
    words = {word.arg: word.value for word in line.value.keywords} if isinstance(line.value, ast.Call) else {}
    alias = words.get("validation_alias", words.get("alias"))
    return alias.value if isinstance(alias, ast.Constant) else line.target.id


def keys_of(name, classes, seen):
    """Fields by name; a class's own are stronger than those of its bases. transformers' come by its own wheel."""
    fields = {}
    for node in classes.get(name, []):
        if id(node) in seen:
            continue
        for base in reversed(node.bases):
            base = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
            base = base if base in classes else OF_TRANSFORMERS if base.endswith("TrainingArguments") else base
            fields.update(keys_of(base, classes, {*seen, id(node)}))
        for line in node.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and not line.target.id.startswith("_") \
                    and "ClassVar" not in ast.dump(line.annotation):
                fields[name_of(line)] = default_of(line.value)
    return fields


def listed(folder):
    folder.mkdir(parents=True, exist_ok=True)
    hf_wheel = wheel_of(folder, "transformers")
    hf = classes_of(hf_wheel, ["transformers/training_args.py", "transformers/training_args_seq2seq.py"])
    lines = []
    for project, (package, patterns, names) in PROJECTS.items():
        wheel = wheel_of(folder, package)
        classes = classes_of(wheel, patterns)
        classes[OF_TRANSFORMERS] = [*hf["TrainingArguments"], *hf.get("Seq2SeqTrainingArguments", [])]
        fields = {}
        for name in names:
            for key, default in keys_of(name, classes, frozenset()).items():
                fields[key] = default if default is not None else fields.get(key)
        lines.append(f"# {project}: {wheel.name.rsplit('-py3', 1)[0]}, {hf_wheel.name.rsplit('-py3', 1)[0]}")
        for key in sorted(fields):
            default = fields[key]
            usable = isinstance(default, (bool, int, float, str))
            lines.append(f"{project}\t{key}\t" + (json.dumps(default) if usable else ""))
    return lines


def main(arguments):
    lines = listed(pathlib.Path([word for word in arguments if word != "--check"][0]))
    if "--check" not in arguments:
        print("\n".join(lines))
        return 0
    kept = (pathlib.Path(__file__).parent / "peer_keys.txt").read_text().splitlines()
    kept = [line for line in kept if line]
    new, gone = sorted(set(lines) - set(kept)), sorted(set(kept) - set(lines))
    for mark, changed in (("+", new), ("-", gone)):
        for line in changed:
            print(mark, line)
    return 1 if new or gone else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
