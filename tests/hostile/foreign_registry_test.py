#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A hostile source of `sealift-pack`: a registry of container images, which skopeo asks. What is done with it, and what must not come of it,
# is in foreign_server.py.
#   foreign_registry_test.py BIN UV [TRIES [SEED]]
import copy
import gzip
import io
import json
import random
import tarfile

from foreign_server import as_json, changed, CODES, Endless, judge, main, PYTHON_PART, sha, TRIES


def attack(site, host, work, canary):
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("file"), io.BytesIO(b""))
    layer = layer.getvalue()
    config = as_json({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(gzip.decompress(layer))]}})
    oci = "application/vnd.oci.image."
    manifest = {"schemaVersion": 2, "mediaType": oci + "manifest.v1+json",
                "config": {"mediaType": oci + "config.v1+json", "digest": "sha256:" + sha(config), "size": len(config)},
                "layers": [{"mediaType": oci + "layer.v1.tar+gzip", "digest": "sha256:" + sha(layer), "size": len(layer)}]}
    job = PYTHON_PART + f'[[image]]\nsource = "docker://{host}/org/app:1"\n'

    def offer(manifest=manifest, blobs=(), kind=oci + "manifest.v1+json", under=None):
        body = manifest if isinstance(manifest, (bytes, Endless)) else as_json(manifest)
        site.routes = {"/v2/": b"{}"}
        headers = {"Content-Type": kind}
        if not isinstance(body, Endless):
            headers["Docker-Content-Digest"] = under or "sha256:" + sha(body)
            site.routes["/v2/org/app/manifests/sha256:" + sha(body)] = (200, body, headers)
        site.routes["/v2/org/app/manifests/1"] = (200, body, headers)
        for data in (config, layer):
            site.routes["/v2/org/app/blobs/sha256:" + sha(data)] = data
        site.routes.update(blobs)

    where = "/v2/org/app/blobs/sha256:"
    offer()
    judge("as it should be", job, {0})
    listed = {"schemaVersion": 2, "mediaType": oci + "index.v1+json", "manifests": [
        {"mediaType": oci + "manifest.v1+json", "digest": "sha256:" + sha(as_json(manifest)), "size": len(as_json(manifest)),
         "platform": {"os": "linux", "architecture": "amd64"}}]}
    offer(listed, {"/v2/org/app/manifests/sha256:" + sha(as_json(manifest)): (200, as_json(manifest), {"Content-Type": oci + "manifest.v1+json"})},
          oci + "index.v1+json")
    judge("a list as it should be", job, {0})
    bad = CODES - {0}
    offer(blobs={where + sha(layer): Endless()})
    judge("a layer without an end", job, bad)
    offer(blobs={where + sha(config): Endless()})
    judge("a configuration without an end", job, bad)
    offer(Endless())
    judge("a manifest without an end", job, bad)
    offer(blobs={where + sha(layer): b"x" * len(layer)})
    judge("another layer", job, bad)
    for target in (f"file://{canary}", f"http://{host}{where}{sha(layer)}", "ftp://x/"):
        offer(blobs={where + sha(layer): (307, b"", {"Location": target})})
        judge("redirect to " + target, job, bad)
    foreign = copy.deepcopy(manifest)
    foreign["layers"][0] |= {"urls": [f"file://{canary}"], "mediaType": oci + "layer.nondistributable.v1.tar+gzip"}
    offer(foreign)
    judge("a layer that lies elsewhere", job)
    offer(under="sha256:" + "0" * 64)
    judge("another digest in the header", job)
    many = {**manifest, "layers": manifest["layers"] * 5000}
    offer(many)
    judge("5,000 layers", job, bad)
    offer({**listed, "manifests": [{**listed["manifests"][0], "digest": "sha256:" + sha(as_json(listed))}]}, kind=oci + "index.v1+json")
    judge("a list of itself", job, bad)
    site.routes["/v2/"] = (401, b"", {"WWW-Authenticate": f'Bearer realm="file://{canary}",service="\x1b[2J"'})
    judge("a realm that is a file", job)
    for _ in range(TRIES):
        mutant = changed(random.choice((manifest, listed)))
        offer(mutant, kind=random.choice((oci + "manifest.v1+json", oci + "index.v1+json", "text/\x1b[2J", "")))
        judge(json.dumps(mutant)[:300], job)


main(attack, "skopeo")
