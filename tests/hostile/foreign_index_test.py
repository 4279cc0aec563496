#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A hostile source of `sealift-pack`: an index of Python packages, which uv asks. What is done with it, and what must not come of it,
# is in foreign_server.py.
#   foreign_index_test.py BIN UV [TRIES [SEED]]
import json

from foreign_server import as_json, bomb, CANARY, changed, CODES, Endless, judge, main, make_wheel, PYTHON, sha, TRIES, WHEEL


def attack(site, host, work, canary):
    wheel = make_wheel()
    base = f"http://{host}"
    job = (f'[python]\nversion = "3.11"\ninterpreter = "{PYTHON}"\nimports = []\nrequirements = ["demo"]\n'
           f'default_index = "{base}/simple"\n')
    kind = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
    entry = {"filename": WHEEL, "url": f"{base}/files/{WHEEL}", "hashes": {"sha256": sha(wheel)}, "size": len(wheel),
             "requires-python": ">=3.8", "yanked": False}
    page = {"meta": {"api-version": "1.1"}, "name": "demo", "versions": ["1.0"], "files": [entry]}

    def offer(page=page, body=wheel, html=None):
        answer = (200, as_json(page), kind) if html is None else (200, html.encode(errors="surrogatepass"), {"Content-Type": "text/html"})
        site.routes = {"/simple/demo/": answer, f"/files/{WHEEL}": body}

    def with_entry(**more):
        return {**page, "files": [{**entry, **more}]}

    offer()
    judge("as it should be", job, {0})
    canary_wheel = work / "other" / WHEEL
    canary_wheel.parent.mkdir(exist_ok=True)
    canary_wheel.write_bytes(make_wheel(extra={"demo/secret": CANARY}))
    for address in (f"file://{canary_wheel}", f"file://localhost{canary_wheel}", f"FILE://{canary_wheel}", f"file:{canary_wheel}"):
        offer(with_entry(url=address, hashes={"sha256": sha(canary_wheel.read_bytes())}, size=canary_wheel.stat().st_size))
        judge(address, job, CODES - {0})
        offer(html=f'<a href="{address}#sha256={sha(canary_wheel.read_bytes())}">{WHEEL}</a>')
        judge("page with " + address, job, CODES - {0})
    offer(html=f'<base href="file://{canary_wheel.parent}/"><a href="{WHEEL}#sha256={sha(canary_wheel.read_bytes())}">{WHEEL}</a>')
    judge("base of the page", job, CODES - {0})
    canary_wheel.unlink()
    for where in (f"file://{canary}", f"ftp://{host}/x", f"{base}/files/{WHEEL}", "gopher://x/"):
        offer(body=(302, b"", {"Location": where}))
        judge("redirect to " + where, job, CODES - {0})
    del_size = {key: value for key, value in entry.items() if key != "size"}
    offer({**page, "files": [del_size]}, Endless(most=300 << 20))
    judge("no size, another file that is long", job, CODES - {0})
    offer(with_entry(), Endless())
    judge("a size, and no end", job, CODES - {0})
    offer(html="<a href='x'>" * 2_000_000)
    judge("a page of two million links", job, CODES - {0})
    site.routes["/simple/demo/"] = (200, Endless(b"<a href='x'>" * 80_000, 12 << 30), {"Content-Type": "text/html"})
    judge("a page without an end", job, {3}, most_memory=9 << 29)  # uv keeps it until its end, or has 4 GiB of it
    offer()
    site.routes["/simple/demo/"] = (200, bomb(b"", b" ", 300 << 20), {"Content-Encoding": "gzip", "Content-Type": "text/html"})
    judge("a page of 300 MB that is sent as 300 kB", job, CODES - {0})
    site.routes["/simple/demo/"] = (200, b"[" * 500_000, kind)
    judge("a page of brackets", job, CODES - {0})
    for _ in range(TRIES):
        mutant = changed(page)
        offer(mutant)
        judge(json.dumps(mutant)[:300], job)


main(attack)
