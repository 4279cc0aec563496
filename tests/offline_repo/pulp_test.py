#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A site's Pulp pulls from sealift-repo by both of its policies, and pip installs from Pulp. Beside mirrors_test.py,
# which does it with devpi: Pulp needs PostgreSQL, here one of its own, and a network once for its packages.
# lists_test.cpp starts it (slow). Where there is no PostgreSQL it prints why and ends with 77.
#   pulp_test.py REPOSITORY-URL PACKAGE FOLDER
import base64
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

repository, package, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
POSTGRES = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), default=None, key=lambda bin: int(bin.parent.name))
if POSTGRES is None:
    print("no PostgreSQL here; Debian's package postgresql has it")
    sys.exit(77)
# It does not run as root; a signal reaches it, and not one in between.
AS_OWNER = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{words}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@contextlib.contextmanager
def running(name, *words, **more):
    with open(folder / f"{name}.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log, **more)
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT if name == "postgres" else signal.SIGTERM)  # SIGINT: without waiting
            process.wait()


def until(what, done):
    for _ in range(600):
        with contextlib.suppress(OSError):
            if done():
                return
        time.sleep(0.2)
    sys.exit(f"{what} is not there:\n" + "".join(log.read_text()[-2000:] for log in folder.glob("*.log")))


def listens(port):
    with socket.create_connection(("127.0.0.1", port)):
        return True


db_port, api_port, content_port = free_port(), free_port(), free_port()
API = f"http://127.0.0.1:{api_port}"
TOKEN = base64.b64encode(b"admin:secret").decode()


def ask(path, body=None):
    headers = {"Authorization": "Basic " + TOKEN, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(API + path, headers=headers, data=data)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        sys.exit(f"{path}: {error.code} {error.read().decode()[-2000:]}")


def finished(task):
    """What the task made."""
    state = {}

    def is_done():
        state.update(ask(task["task"]))
        return state["state"] in ("completed", "failed", "canceled")
    until("the end of a task", is_done)
    if state["state"] != "completed":
        sys.exit(json.dumps(state, indent=1))
    return state["created_resources"]


def pull(policy):
    """Pulp pulls by `policy`, and pip installs from it."""
    base = "/pulp/api/v3/"
    remote = ask(base + "remotes/python/python/",
                 {"name": policy, "url": repository, "includes": [package], "policy": policy,
                  "package_types": ["bdist_wheel"]})["pulp_href"]
    mirror = ask(base + "repositories/python/python/", {"name": policy, "remote": remote})["pulp_href"]
    finished(ask(mirror + "sync/", {"remote": remote}))
    finished(ask(base + "distributions/python/pypi/", {"name": policy, "base_path": policy, "repository": mirror}))
    site = folder / f"site-{policy}"
    run(sys.executable, "-m", "pip", "--isolated", "install", "-q", "--no-cache-dir", "--target", site, "--index-url",
        f"{API}/pypi/{policy}/simple/", package)
    if not list(site.glob(f"{package}-*.dist-info")):
        sys.exit(f"{policy}: nothing was installed")


python = folder / "pulp/bin"
run(sys.executable, "-m", "venv", folder / "pulp")
run(python / "pip", "install", "-q", "pulpcore", "pulp-python")
for name in ("db", "media", "work"):
    (folder / name).mkdir()
folder.chmod(0o755)
if AS_OWNER:
    run("chown", "postgres", folder / "db")
run(*AS_OWNER, POSTGRES / "initdb", "-A", "trust", "-U", "pulp", "-E", "UTF8", "-D", folder / "db", cwd="/")
(folder / "key").write_text(base64.urlsafe_b64encode(os.urandom(32)).decode())
(folder / "settings.py").write_text(f"""
SECRET_KEY = "of this test"
DATABASES = {{"default": {{"ENGINE": "django.db.backends.postgresql", "NAME": "pulp", "USER": "pulp",
                          "HOST": "127.0.0.1", "PORT": "{db_port}"}}}}
DB_ENCRYPTION_KEY = "{folder}/key"
CONTENT_ORIGIN = "http://127.0.0.1:{content_port}"
PYPI_API_HOSTNAME = "{API}"
DEPLOY_ROOT = "{folder}"
MEDIA_ROOT = "{folder}/media"
WORKING_DIRECTORY = "{folder}/work"
CACHE_ENABLED = False
ANALYTICS = False
""")
pulp = {"cwd": folder, "env": {**os.environ, "PULP_SETTINGS": str(folder / "settings.py"), "HOME": str(folder),
                               "DJANGO_SETTINGS_MODULE": "pulpcore.app.settings", "PATH": f"{python}:/usr/bin:/bin"}}
with contextlib.ExitStack() as parts:
    parts.enter_context(running("postgres", *AS_OWNER, POSTGRES / "postgres", "-D", folder / "db", "-p", db_port, "-h",
                                "127.0.0.1", "-k", "", cwd="/"))
    until("PostgreSQL", lambda: listens(db_port))
    run("psql", "-h", "127.0.0.1", "-p", db_port, "-U", "pulp", "-d", "postgres", "-c", "CREATE DATABASE pulp")
    run(python / "pulpcore-manager", "migrate", "--noinput", **pulp)
    run(python / "pulpcore-manager", "reset-admin-password", "--password", "secret", **pulp)
    parts.enter_context(running("worker", python / "pulpcore-worker", **pulp))
    parts.enter_context(running("content", python / "pulpcore-content", "-b", f"127.0.0.1:{content_port}", **pulp))
    parts.enter_context(running("api", python / "pulpcore-api", "-b", f"127.0.0.1:{api_port}", **pulp))
    until("Pulp's API", lambda: listens(api_port))
    until("Pulp's content", lambda: listens(content_port))
    until("a worker of Pulp's", lambda: ask("/pulp/api/v3/status/")["online_workers"])
    pull("immediate")
    pull("on_demand")
print("good")
