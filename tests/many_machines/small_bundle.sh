# SPDX-License-Identifier: Apache-2.0
# A small real bundle for the examples of samples/many_machines: this machine's Python with its C library (14 MB), and a
# module that says where it runs. Made by the real packager, without a network. Sourced, in the test's own folder.
#   small_bundle BIN UV VERSION [MORE]     makes out/small-VERSION; its root's fingerprint stands in keys/root.fingerprint.
#   MORE stands at the end of the job file.

small_bundle() {
  [ -x /usr/bin/python3.11 ] && [ -x "$2" ] || { echo "SKIPPED: needs /usr/bin/python3.11 and uv" >&2; exit 77; }
  SEALIFT_CACHE=$PWD/cache
  export SEALIFT_CACHE
  mkdir -p where
  cat >where/where.py <<'END'
import os, sys
rank, ranks = os.environ.get("SLURM_PROCID", "0"), os.environ.get("SLURM_NTASKS", "1")
print(f"rank {rank} of {ranks} on {os.uname().nodename} in {sys.prefix}", flush=True)
END
  cat >where/pyproject.toml <<'END'
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "where"
version = "1"
END
  # A build backend of its own: any other would have to come from an index.
  cat >where/backend.py <<'END'
import base64, hashlib, zipfile

def build_wheel(folder, *_):
    info = "where-1.dist-info"
    files = {
        "where.py": open("where.py").read(),
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: where\nVersion: 1\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: backend\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digest = lambda text: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    rows = "".join(f"{path},sha256={digest(text)},{len(text)}\n" for path, text in files.items())
    files[f"{info}/RECORD"] = rows + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(f"{folder}/where-1-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(zipfile.ZipInfo(path), text)
    return "where-1-py3-none-any.whl"
END
  cat >small.toml <<END
name = "small"
version = $3
[target]
arch = "x86_64"
glibc = "2.17"
runtime = "carried"
[python]
version = "3.11"
interpreter = "/usr/bin/python3.11"
requirements = ["./where"]
imports = ["ssl"]
${4:-}
END
  [ -d keys ] || "$1/sealift-pack" keygen keys >/dev/null
  "$1/sealift-pack" lock small.toml --uv "$2" >pack.txt 2>&1 &&
    "$1/sealift-pack" create small.lock.toml --root keys/root.1.json --key keys/release.key -o out --volume-size 8M \
      --no-rehearsal >pack.txt 2>&1 || { cat pack.txt >&2; echo "FAILED: packing" >&2; exit 1; }
}
