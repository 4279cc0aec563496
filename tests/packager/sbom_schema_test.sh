#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The SBOM of a tiny bundle, or of the named one, against the official CycloneDX 1.6 schema, which the package
# cyclonedx-python-lib carries. Needs the package index; by label `network`.
#   sbom_schema_test.sh SEALIFT_PACK MAKE_BUNDLE UV [BUNDLE FINGERPRINT]
set -euo pipefail
pack=$(realpath "$1") make=$(realpath "$2") uv=$(realpath "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=${4:-$work/tiny-1} fingerprint=${5:-}
[ -n "$fingerprint" ] || fingerprint=$("$make" "$bundle")

"$pack" documents "$bundle" --fingerprint "$fingerprint" -o "$work/documents" --json > "$work/list.json"
export UV_SYSTEM_CERTS=1
"$uv" venv -q --python /usr/bin/python3.11 "$work/venv"
"$uv" pip install -q --python "$work/venv/bin/python" 'cyclonedx-python-lib[json-validation]'
cat > "$work/validate.py" <<'END'
import json, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

for path in json.load(open(sys.argv[1]))["documents"]:
    if not path.endswith(".cdx.json"):
        continue
    text = open(path, encoding="utf-8").read()
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    assert fault is None, fault
    sbom = json.loads(text)
    refs = [part["bom-ref"] for part in sbom["components"]] + [sbom["metadata"]["component"]["bom-ref"]]
    assert len(set(refs)) == len(refs)
    assert {item["ref"] for item in sbom["dependencies"]} == set(refs)
    assert all(ref in refs for item in sbom["dependencies"] for ref in item.get("dependsOn", []))
    # The validator itself must be able to say no.
    sbom["components"][0]["type"] = "no such type"
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(sbom)) is not None
    print(len(refs), "components hold")
    break
else:
    sys.exit("no SBOM was written")
END
"$work/venv/bin/python" "$work/validate.py" "$work/list.json"
