#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What README and the pages on packing, installing and serving tell people to type, run as it stands there
# (tests/support/page_commands.py), on tiny bundles: three versions of a program, and discs with recovery data of which one
# is scratched. pages_test.sh and security_drill_test.sh run the pages whose commands are a story.
#   commands_test.py BIN
import os
import pathlib
import subprocess
import sys
import tempfile

BIN = pathlib.Path(sys.argv[1]).resolve()
sys.dont_write_bytecode = True  # no folder of caches among the sources
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from page_commands import ROOT, Pages, Way, free_port  # noqa: E402

PAGES = ["README.md", "docs/packing.md", "docs/deltas.md", "docs/operating.md", "docs/image.md", "docs/releasing.md",
         "docs/serving.md", "docs/job_file.md", "docs/targets.md", "docs/many_machines.md", "samples/README.md"]
PORT, ADMIN = free_port(), free_port()
LISTEN = f" --listen 127.0.0.1:{PORT}"
DISCS = {"BUNDLE": "{site}/media/disc-1", "DISC2": "{site}/disc2", "DISC3": "{site}/disc3"}
BASE = " && rm -r out/env-2"  # both ways to make the delta write it

RUN = {
    # README.md
    "sealift-pack keygen keys": Way({"keygen keys": "keygen made"}),
    "sealift-pack create job.lock.toml --root root.1.json --unsigned -o out --volume-size 4G":
        Way({"-o out": "-o unsigned"}),
    "sealift-pack sign out/NAME-VERSION --fingerprint sha256:... --key keys/release.key":
        Way({"out/NAME-VERSION": "unsigned/env-2"}),
    "./sealift-install apply . --prefix /opt/env --fingerprint sha256:...":
        Way({"./sealift-install": "cd unsigned/env-2 && ./sealift-install", "/opt/env": "{site}/first"}),
    # docs/packing.md
    "sealift-pack create job.lock.toml --root root.1.json --unsigned -o out --volume-size bd": Way(),
    "sealift-pack sign out/env-1 --fingerprint sha256:… --key release.key":
        Way({"out/env-1": "out/env-2", "release.key": "keys/release.key"}, " && rm -r out/env-2"),
    "sealift-pack recut out/env-1 --volume-size dvd --fingerprint sha256:… --key keys/release.key -o recut": Way(),
    # docs/deltas.md
    "sealift-install inventory --prefix /opt/env > site.inventory": Way(),
    "sealift-pack create job.lock.toml --base site.inventory --onto out/env-1 --root keys/root.1.json "
    "--key keys/release.key -o out": Way(),
    "sealift-install apply env-2 --prefix /opt/env": Way({"apply env-2": "apply out/env-2"}, BASE),
    "sealift-pack create job.lock.toml --base out/env-1 --patches --onto out/env-1 --root keys/root.1.json "
    "--key keys/release.key -o out": Way(),
    # docs/operating.md: generations 1 and 2 are there
    "cd /media/disc/env-7": Way(),
    "./sealift-install verify . --prefix /opt/env": Way(),
    "./sealift-install preflight . --prefix /opt/env": Way(),
    "./sealift-install plan . --prefix /opt/env": Way(),
    "./sealift-install apply . --prefix /opt/env": Way(),
    "./sealift-install status --prefix /opt/env": Way(),
    "./sealift-install switch 6 --prefix /opt/env": Way({"switch 6": "switch 2"}),
    "sealift-install verify env-7 --volume /media/disc/env-7.vol003 --fingerprint sha256:…":
        Way({"/media/disc/env-7.vol003": "media/env-7/env-7.vol001", "verify env-7": "verify media/env-7"}),
    "sh audit.sh FINGERPRINT env-7 /media/disc/env-7.vol003":
        Way({"audit.sh": "media/env-7/audit.sh", " env-7 ": " media/env-7 ",
             "/media/disc/env-7.vol003": "media/env-7/env-7.vol001"}),
    "sealift-install verify BUNDLE --volumes DISC2 DISC3 --fingerprint sha256:…": Way(DISCS, "", (5,)),
    "sealift-install mend BUNDLE --volumes DISC2 DISC3 --into /data/mended --fingerprint sha256:…": Way(DISCS),
    "sealift-install apply /data/mended/env-7 --volumes BUNDLE DISC2 DISC3 --prefix /opt/env":
        Way({**DISCS, "/data/mended/env-7": "{site}/data/mended/disc-1"},
            " --allow-other-name"),
    "sealift-install site repository https://packages.site:8443/env --certificates ca.pem --prefix /opt/env": Way(),
    "sealift-install site repository --prefix /opt/env": Way(),
    "openssl pkeyutl -sign -rawin -inkey receipts.key -in receipts/0003-env-7.json -out 0003-env-7.json.sig":
        Way({" receipts/": " prefix/receipts/"}),
    "openssl pkeyutl -verify -rawin -pubin -inkey receipts.pub -in receipts/0003-env-7.json -sigfile 0003-env-7.json.sig":
        Way({" receipts/": " prefix/receipts/"}),
    "sealift-install pin 5 --prefix /opt/env": Way({"pin 5": "pin 1"}),
    "sealift-install gc --dry-run --prefix /opt/env": Way(),
    "sealift-install gc --keep 2 --prefix /opt/env": Way(),
    "sealift-install doctor --prefix /opt/env": Way(),
    "sealift-install doctor --prefix /opt/env --repair /media/disc/env-7": Way(),
    "cp -a /opt/env/trust /backup/env-trust": Way(),
    "sealift-install export /media/disc/env-7 --prefix /opt/env --wheels out/wheels --models out/models --debs out/debs "
    "--rpms out/rpms --programs out/programs --images out/images": Way({"out/": "exported/"}),
    # docs/image.md
    "sealift-install mount /media/disc/env-7 ~/env-7 --prefix /opt/env":
        Way({"sealift-install mount": "mkdir -p ~/env-7 && sealift-install mount"}),
    "sealift-install image /media/disc/env-7 --prefix /opt/env -o /shared/env-7.sqfs":
        Way(more=" && rm {site}/shared/env-7.sqfs*"),
    "sealift-install image /opt/env -o /shared/env-7.sqfs": Way(),
    "sealift-install mount /shared/env-7.sqfs ~/env-7 --digest sha256:… --log ~/env-7.log":
        Way({"sha256:…": "sha256:$(sha256sum {site}/shared/env-7.sqfs.chunks | cut -d' ' -f1)",
             "sealift-install mount": "mkdir -p ~/env-7 && sealift-install mount"}, " && sealift-install unmount ~/env-7"),
    "sealift-install unmount ~/env-7": Way(),
    # docs/releasing.md
    "sealift-pack keygen keys --name packages": Way(more=" && cp keys/packages.pub ."),
    "openssl pkeyutl -sign -rawin -inkey keys/packages.key -in SHA256SUMS -out SHA256SUMS.sig": Way(),
    "openssl pkey -pubin -in packages.pub -outform DER | sha256sum": Way(),
    "openssl pkeyutl -verify -rawin -pubin -inkey packages.pub -in SHA256SUMS -sigfile SHA256SUMS.sig": Way(),
    "sha256sum -c --ignore-missing SHA256SUMS": Way(),
    # docs/serving.md
    "sealift-repo serve /media/disc/env-7 --trust /opt/env/trust --listen 127.0.0.1:8080": Way(),
    "sealift-repo serve --watch /srv/bundles --trust /opt/env/trust --admin-listen 127.0.0.1:9090":
        Way({"sealift-repo serve": "sealift-repo serve --poll 1" + LISTEN}),
    "sealift-repo add /srv/bundles /media/disc/env-8": Way({"env-8": "env-7"}),
    "sealift-repo status 127.0.0.1:9090":
        Way({"sealift-repo status": "until sealift-repo status"}, "; do sleep 0.1; done"),  # it looks once a second
    "sealift-repo switch /srv/bundles env-7": Way(),
    "sealift-repo remove /srv/bundles env-6": Way({"env-6": "env-7"}),
    "touch tokens && chmod 600 tokens": Way(),
    "token=$(openssl rand -hex 24); echo \"alice $(printf %s \"$token\" | sha256sum | cut -d' ' -f1) bundle:env\" >> tokens":
        Way(),
    "sealift-repo serve /media/disc/env-7 --trust /opt/env/trust --tokens tokens":
        Way({"sealift-repo serve": "sealift-repo serve" + LISTEN}),
    "sealift-repo serve /media/disc/env-7 --trust /opt/env/trust --listen 0.0.0.0:8443 --tls-certificate chain.pem "
    "--tls-key key.pem": Way({"0.0.0.0:8443": f"127.0.0.1:{PORT}"}),
}
SYSTEM = "writes to the system: packager_apt_tests and packager_rpm_tests install by the real apt and dnf"
CLIENTS = "wants the real client: offline_repo_tests start pip, uv, hf, skopeo, podman, docker and ctr"
MANY = "wants the real program: many_machines.slurm, .ansible and .image run the page's files"
NOT_HERE = {
    "apt-get ": SYSTEM, "install -m 644": SYSTEM, "echo 'deb ": SYSTEM, 'echo "deb ': SYSTEM, "dnf ": SYSTEM, "gpg ": SYSTEM,
    "tar xf sealift-*": "wants a package: release.packages",
    "share/doc/sealift/samples/first_bundle.sh": "wants PyPI: samples.first_bundle",
    "samples/air_gap.sh": "wants gigabytes and a bare system: end_to_end.air_gap",
    "env/share/doc/sealift/samples/air_gap.sh": "wants gigabytes and a bare system: end_to_end.air_gap",
    "python3 -m venv env && env/bin/pip install sealift-": "wants wheels: release.wheels",
    "tests/run.sh": "runs this",
    "sealift-pack lock job.toml": "asks an index: packager_network_tests lock with the real uv",
    "sealift-pack create env.lock.toml --installer build/aarch64": "wants the cross build: the aarch64 tests",
    "uv python install": "downloads a Python: the aarch64 tests",
    "cmake": "builds: .ci/run",
    "/opt/env/current/bin/sealift-train": "wants torch: train.pages runs the trainer's commands",
    "sealift-install apply /media/disc --prefix /opt/env --waive": "wants the wheel of ray: installer_tests waive a made one",
    "sealift-install venv": "wants a whole Python: installer_program_tests",
    ". ~/venv/bin/activate": "wants a whole Python: installer_program_tests",
    "~/env-7/bin/python3": "wants torch: bench/compare_image.py",
    "pip ": CLIENTS, "uv pip ": CLIENTS, "hf ": CLIENTS, "HF_ENDPOINT=": CLIENTS, "export HF_ENDPOINT=": CLIENTS, "python ": CLIENTS,
    "skopeo ": CLIENTS, "docker ": CLIENTS, "ctr ": CLIENTS, "podman ": CLIENTS, "oras ": CLIENTS, "curl ": CLIENTS,
    "sealift-repo serve …": CLIENTS,
    "cp slurm/*": MANY, "sbatch ": MANY, "ansible": MANY, "image/make_image.sh": MANY, "umoci ": MANY,
    "sealift-install apply /media/disc/env-7 --prefix /srv/env": MANY,
}
if not os.access("/dev/fuse", os.R_OK | os.W_OK):
    for command in [command for command in RUN if "mount " in command]:
        NOT_HERE[command] = "wants /dev/fuse"
        del RUN[command]


def make_site(site):
    """Keys, bundles env-1 (also on media, as env-6 and env-7 are), discs of disc-1, a prefix with env-1 and env-6."""
    script = f"""
set -e
. {ROOT}/tests/support/hello_lock.sh
hello_interpreter
mkdir -p home media backup shared data srv/bundles disc2 disc3
sealift-pack keygen keys > /dev/null
cp keys/root.1.json .
for version in 1 2 6 7; do
  printf '#!/bin/sh\\necho hello from version %s\\n' $version > hello-$version
  hello_lock env $version prod hello-$version=bin/hello
done
mv env-2.lock.toml job.lock.toml
printf '\\n[squashfs]\\n' >> env-7.lock.toml
make() {{ sealift-pack create "$1.lock.toml" --root keys/root.1.json --key keys/release.key --no-rehearsal "${{@:2}}" > log 2>&1 ||
  {{ cat log; exit 1; }}; }}
make env-1 -o out
for version in 6 7; do make env-$version -o media; done
head -c 11000000 /dev/urandom > blob
hello_lock disc 1 prod hello-1=bin/hello blob=share/blob
make disc-1 -o media --volume-size 5M --recovery 50%
mv media/disc-1/disc-1.vol002 disc2
mv media/disc-1/disc-1.vol003 disc3
printf x | dd of=disc2/disc-1.vol002 bs=1 seek=1000 conv=notrunc status=none
sealift-install apply out/env-1 --prefix prefix --fingerprint "$(cat keys/root.fingerprint)" > log 2>&1
openssl genpkey -algorithm ed25519 -out receipts.key
openssl pkey -in receipts.key -pubout -out receipts.pub
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out chain.pem -days 9 \\
  -subj /CN=localhost 2> /dev/null
cp chain.pem ca.pem
sha256sum blob > SHA256SUMS
"""
    subprocess.run(["bash", "-c", script], cwd=site, check=True, env={
        **os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "SEALIFT_CACHE": str(site / "cache")})


with tempfile.TemporaryDirectory() as folder:
    site = pathlib.Path(folder)
    make_site(site)
    fingerprint = (site / "keys/root.fingerprint").read_text().strip()
    places = {"/opt/env": "prefix", "/media/disc": "media", "/shared": "shared", "/srv": "srv", "/backup": "backup",
              "/data": "data"}
    instead = {**{place: f"{site}/{name}" for place, name in places.items()}, "FINGERPRINT": fingerprint,
               "sha256:…": fingerprint, "sha256:...": fingerprint, "127.0.0.1:8080": f"127.0.0.1:{PORT}",
               "127.0.0.1:9090": f"127.0.0.1:{ADMIN}"}
    pages = Pages(site, RUN, NOT_HERE, instead, [BIN], SEALIFT_CACHE=str(site / "cache"))
    for page in PAGES:
        pages.run_page(page, lambda command: page != "README.md" or not command.startswith("sealift-train"))
    pages.finish()
