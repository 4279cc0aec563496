#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A made kernel of Python alone and of a native file, on a hub on the loopback: packed for three releases of its loader
# (the package kernels), whose offline rules differ, installed, and loaded by each without a network, from a prefix that
# cannot be written. What it is asked for otherwise fails there. Beside sealift-repo as the site's own hub, which has no
# kernels, LOCAL_KERNELS leads to the carried one. Needs the package index; by label `network`.
#   kernels_test.sh BIN UV [VERSION...]
set -euo pipefail
. "$(dirname "$(realpath "$0")")/real_bundle.sh"
shift 2
unshare -rn true 2> /dev/null && command -v cc > /dev/null || { echo "skipped: needs namespaces and cc"; exit 77; }
export UV_SYSTEM_CERTS=1

# Native, with nothing but the C library; and one for another processor, which is not taken.
variant=repository/build/torch-universal
mkdir -p $variant repository/build/torch211-cxx11-cu128-aarch64-linux
echo 'int answer(void) { return 42; }' > answer.c
cc -shared -fPIC -o $variant/_answer.abi3.so answer.c
cat > $variant/__init__.py << END
import ctypes, pathlib
answer = ctypes.CDLL(str(pathlib.Path(__file__).parent / "_answer.abi3.so")).answer()
END
echo '{"id": "_tiny_1", "name": "tiny", "version": 1, "license": "MIT", "python-depends": [], "backend": {"type": "cpu"}}' \
  > $variant/metadata.json
cp $variant/* repository/build/torch211-cxx11-cu128-aarch64-linux/
mkfifo address
python3 "$here/../support/folder_hub.py" repository org/tiny v1 > address & server=$!
read -r HF_ENDPOINT < address
export HF_ENDPOINT

cat > load.py << END
import sys, kernels
loads = {"revision": lambda: kernels.get_kernel("org/tiny", revision="v1"),
         "version": lambda: kernels.get_kernel("org/tiny", version=1)}
for way, load in loads.items():
    assert load().answer == 42, way
try:
    kernels.get_kernel("org/other", revision="v1")
    sys.exit("a kernel that is not carried was loaded")
except Exception as error:
    print(kernels.__version__, "loads by", ", ".join(loads), "and not org/other:", type(error).__name__)
END

# In a network of its own, with the bundle's repository as the hub that is asked.
cat > beside_hub.sh << 'END'
ip link set lo up
"$1/sealift-repo" serve out/tiny-1 --fingerprint "$(cat fingerprint)" --listen 127.0.0.1:8080 --quiet 2> served & repo=$!
until (exec 3<> /dev/tcp/127.0.0.1/8080) 2> /dev/null; do kill -0 $repo || { cat served; exit 1; }; done
HF_HUB_OFFLINE=0 HF_ENDPOINT=http://127.0.0.1:8080 site/current/bin/python3 -W ignore beside_hub.py || { kill $repo; exit 1; }
kill $repo
END
cat > beside_hub.py << 'END'
import glob, os, subprocess, sys, kernels
trusted = {} if kernels.__version__ < "0.14" else {"trust_remote_code": True}
def loads():
    try:
        return kernels.get_kernel("org/tiny", version=1, **trusted).answer == 42
    except Exception as error:
        print(kernels.__version__, "asks the hub:", type(error).__name__, str(error).splitlines()[0][:100])
        return False
if "LOCAL_KERNELS" in os.environ:
    assert loads()
    print(kernels.__version__, "loads by LOCAL_KERNELS beside a hub without kernels")
else:
    assert not loads(), "the hub has kernels: docs/models_and_data.md says that it has none"
    (place,) = glob.glob("site/current/hub/*/snapshots/*")
    sys.exit(subprocess.run([sys.executable, *sys.argv], env={**os.environ, "LOCAL_KERNELS": "org/tiny=" + place}).returncode)
END

for version in "${@:-0.13.0 0.15.2 0.17.2}"; do
  for loader in $version; do
    rm -rf out site keys
    start_job tiny "\"kernels==$loader\"" '"kernels"' > job.toml
    printf '[[kernel]]\nrepo = "org/tiny"\nrevision = "v1"\n' >> job.toml
    pack tiny --no-rehearsal > said 2>&1 || { cat said; exit 1; }
    grep -q "locked the kernel org/tiny at v1: torch-universal, 3 files" said || { cat said; exit 1; }
    install_bundle tiny "$work/site" > said 2>&1 || { cat said; exit 1; }
    chmod -R a-w site/generations
    HF_ENDPOINT='' HOME=$work/home unshare -rn site/current/bin/python3 -W ignore load.py
    HOME=$work/home unshare -rn bash beside_hub.sh "$bin"
    chmod -R u+w site
  done
done

# A native file that needs what nothing brings is refused, as one of a wheel is.
cc -shared -fPIC -o libabsent.so.7 -Wl,-soname,libabsent.so.7 answer.c
cc -shared -fPIC -o $variant/_answer.abi3.so answer.c -Wl,--no-as-needed ./libabsent.so.7
if "$bin/sealift-pack" lock job.toml --uv "$uv" > said 2>&1; then echo "failed: a kernel without its library"; exit 1; fi
grep -q libabsent.so.7 said || { cat said; exit 1; }
echo "a kernel whose library nobody brings is refused"
