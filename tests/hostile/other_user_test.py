#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Root and another user of the same machine: each program is given a path that the other user could change, and must
# refuse it, or leave alone what is theirs, by name. Needs root, since it gives files away; else skipped (77).
#   other_user_test.py BIN
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

BIN = pathlib.Path(sys.argv[1]).resolve()
MALLORY = 4711
if os.geteuid() != 0:
    print("skipped: only root gives files away")
    sys.exit(77)

failures = []
tries = 0


def check(what, holds, said=""):
    global tries
    tries += 1
    if not holds:
        failures.append(what)
        print("FAILED:", what, "\n", said)


def run(*words, user=0, **more):
    words = [str(word) for word in words]
    if user:
        words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *words]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, **more)
    return done.returncode, done.stdout


def give(path, user=MALLORY):
    os.lchown(path, user, user)
    if path.is_dir() and not path.is_symlink():
        for inside in path.iterdir():
            give(inside, user)


def refused(what, result, *words, code=2):
    check(what, result[0] == code and all(word in result[1] for word in words), result)


def served_and_stopped(*words):
    """How the server ended: refused at once, or alive until it is stopped."""
    server = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said, _ = server.communicate(timeout=3)
    except subprocess.TimeoutExpired:
        server.send_signal(signal.SIGTERM)
        said, _ = server.communicate()
        return "served", said
    return server.returncode, said


work = pathlib.Path(tempfile.mkdtemp(prefix="sealift-other-user-"))
try:
    os.chmod(work, 0o755)
    pack, install, repo = BIN / "sealift-pack", BIN / "sealift-install", BIN / "sealift-repo"

    # The signer's own key and root; mallory's, whose bundle root is to sign or serve.
    own, theirs = work / "keys", work / "mallory"
    fingerprint = run(pack, "keygen", own)[1].strip()
    theirs.mkdir()
    bundle = theirs / "bundle"
    foreign = run(BIN / "make_bundle", bundle)[1].strip()
    prefix = theirs / "prefix"
    code, said = run(install, "trust", "add", bundle, "--fingerprint", foreign, "--prefix", prefix)
    assert code == 0, said
    own_prefix = work / "prefix"
    shutil.copytree(prefix, own_prefix, symlinks=True)
    give(theirs)

    # A trust folder of another user: of the folder, a copy in it, a folder above, a link on the way.
    def sign(trust, *more):
        return run(pack, "sign", bundle, "--trust", trust, "--export", work / "to-sign", *more)

    refused("sign --trust with a stranger's folder", sign(prefix / "trust"), "4711", str(theirs))
    shortcut = work / "shortcut"
    shortcut.symlink_to(prefix / "trust")
    refused("sign --trust with a link to it", sign(shortcut), "4711")
    copied = work / "copied"
    shutil.copytree(prefix / "trust", copied)
    os.chmod(copied, 0o755)
    code, said = sign(copied)
    check("sign --trust with a folder of its own", code == 0, said)
    (work / "to-sign").unlink()
    os.chown(copied / "state.a", MALLORY, MALLORY)
    refused("sign --trust with a stranger's copy in it", sign(copied), "4711", "state.a")
    os.chown(copied / "state.a", 0, 0)
    refused("sign --trust that is not there", sign(work / "nowhere"), "nowhere", code=7)
    refused("sign --trust that is not there, beside a fingerprint",
            sign(work / "nowhere", "--fingerprint", foreign), "nowhere", code=7)
    (work / "empty").mkdir()
    refused("sign --trust without a state", sign(work / "empty", "--fingerprint", foreign), "trust folder", code=7)

    def serve(*more):
        return served_and_stopped(repo, "serve", bundle, "--listen", "127.0.0.1:0", *more)

    refused("serve --trust with a stranger's folder", serve("--trust", prefix / "trust"), "4711")
    refused("serve --trust that is not there", serve("--trust", work / "nowhere", "--fingerprint", foreign), "nowhere",
            code=7)
    check("serve --trust with a folder of its own", serve("--trust", copied)[0] == "served")
    for verb in ("verify", "preflight", "plan"):
        refused(f"{verb} --prefix of a stranger", run(install, verb, bundle, "--prefix", prefix), "4711")
    refused("export --prefix of a stranger",
            run(install, "export", bundle, "--prefix", prefix, "--programs", work / "programs"), "4711")
    code, said = run(install, "verify", bundle, "--prefix", own_prefix)
    check("verify --prefix of its own", code == 0, said)

    # Where root writes files of a signed bundle: a link of mallory's would have them lie in /etc/cron.daily.
    cron = work / "cron.daily"
    cron.mkdir()
    bait = theirs / "bait"
    bait.symlink_to(cron)
    give(bait)
    refused("export into a stranger's link",
            run(install, "export", bundle, "--fingerprint", foreign, "--programs", bait), "4711")
    refused("mend into a stranger's link",
            run(install, "mend", bundle, "--fingerprint", foreign, "--into", bait), "4711")
    check("nothing came there", not any(cron.iterdir()), list(cron.iterdir()))

    # The audit log, in a folder as /tmp.
    tmp = work / "tmp"
    tmp.mkdir()
    os.chmod(tmp, 0o1777)
    passwd, log = work / "passwd", tmp / "audit.jsonl"
    passwd.write_text("root's own\n")
    log.symlink_to(passwd)
    os.lchown(log, MALLORY, MALLORY)
    refused("an audit log that is another user's link", serve("--trust", copied, "--audit-log", log), "4711")
    check("what it led to is as it was", passwd.read_text() == "root's own\n")
    log.unlink()
    log.write_text("")
    os.chown(log, MALLORY, MALLORY)
    refused("an audit log that is another user's file", serve("--trust", copied, "--audit-log", log), "4711")
    log.unlink()
    check("an audit log of its own", serve("--trust", copied, "--audit-log", log)[0] == "served")
    check("an audit log that is there", serve("--trust", copied, "--audit-log", log)[0] == "served")
    check("an audit log on stdout", serve("--trust", copied, "--audit-log", "/dev/stdout")[0] == "served")
    tokens = theirs / "tokens"
    tokens.write_text("")
    os.chmod(tokens, 0o640)
    refused("tokens below a stranger's folder", serve("--trust", copied, "--tokens", tokens), "4711")

    # An unfinished bundle of another account, where all may write.
    made = next(bundle.glob("*.seal")).stem
    partial = tmp / f".{made}.partial"
    partial.mkdir()
    os.chmod(partial, 0o777)
    (partial / "theirs").write_text("mallory's")
    give(partial)
    documents = [pack, "documents", bundle, "--fingerprint", foreign, "-o", tmp / made]
    refused("what was begun by another account is gone on with", run(*documents), "4711", partial.name)
    check("which is as it was", (partial / "theirs").exists())
    shutil.rmtree(partial)
    partial.symlink_to(cron)
    os.lchown(partial, MALLORY, MALLORY)
    code, said = run(*documents)
    check("a link in its place is not followed", code != 0 and not any(cron.iterdir()), said)

    # A rehearsal runs what it installs there, in a sandbox that is given the folder by its name.
    shutil.copy(install, bundle / "sealift-install")
    refused("a rehearsal in a stranger's folder",
            run(pack, "rehearse", bundle, "--fingerprint", foreign, "--work-area", theirs), "4711", code=11)

    if (BIN / "sealift-verify").exists():
        report = tmp / "report"
        report.mkdir()
        give(report)
        code, said = run(BIN / "sealift-verify", "run", "--level", "quick", "--out", report)
        check("a report in a stranger's folder", code != 0 and "4711" in said and not any(report.iterdir()), said)

    # sealift-launch under sudo -E, in their folder, with their variables: what it opens before it starts the ranks.
    if shutil.which("strace") and (BIN / "sealift-launch").exists():
        launchers = ({}, {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_NODEID": "0", "SLURM_LOCALID": "0"},
                     {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "4711"})
        for variables in launchers:
            names = ("HOME", "XDG_CACHE_HOME", "TMPDIR", "LD_LIBRARY_PATH", "GCONV_PATH", "LOCPATH", "OPENSSL_CONF")
            environment = dict(os.environ, **{name: str(theirs) for name in names}, **variables)
            trace = work / "trace"
            run("strace", "-o", trace, "-e", "trace=%file", BIN / "sealift-launch", "--nproc", "2", "/bin/true",
                env=environment, cwd=theirs)
            opened = [line for line in trace.read_text().splitlines()
                      if '"' in line and not line.startswith("execve") and "/proc/self/exe" not in line
                      and "/dev/null" not in line]
            check(f"sealift-launch opens nothing of theirs, {variables}", not opened, opened)
    else:
        print("left out: what sealift-launch opens, since strace is not here")

    # And the other way round: a user believes root and nobody else.
    os.chmod(copied / "state.a", 0o644)
    code, said = run(install, "verify", bundle, "--prefix", prefix, user=4712)
    check("a user who believes another one's trust folder", code == 2 and "4711" in said, said)
    code, said = run(install, "verify", bundle, "--prefix", own_prefix, user=4712)
    check("a user believes root's", code == 0, said)
finally:
    shutil.rmtree(work)

print(f"{tries} tries, {len(failures)} failed")
sys.exit(1 if failures else 0)
