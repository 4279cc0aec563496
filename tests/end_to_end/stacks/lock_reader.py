# SPDX-License-Identifier: Apache-2.0
# What run.sh asks of a lock or of a job: `versions LOCK`, `wheels LOCK` (digest and name), `requirements JOB`
# (and what constrains them).
import sys
import tomllib

what, file = sys.argv[1:]
with open(file, "rb") as stream:
    said = tomllib.load(stream)
if what == "versions":
    print("\n".join(sorted("%s==%s" % (wheel["name"], wheel["version"]) for wheel in said["wheel"])))
elif what == "wheels":
    print("\n".join("%s %s" % (wheel["sha256"], wheel["file"]) for wheel in said["wheel"]))
else:
    print("\n".join(said["python"]["requirements"] + said["python"].get("constraints", [])))
