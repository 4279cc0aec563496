# SPDX-License-Identifier: Apache-2.0
# Last step of samples/air_gap.sh: reads what the steps left in OUT/logs, decides PASS or FAIL, writes report.json and a
# one-page report.html (self-contained, inline SVG). Everything that is shown was measured or printed by a step.
#   air_gap_report.py OUT SECONDS      exit status 0: PASS
import html
import json
import pathlib
import sys

STAGES = ["prepare", "build", "lock", "pack", "carry", "verify", "install", "python", "train", "verdict", "serve", "report"]
RUNS = [("none", "one process", "#888888"), ("ddp", "ddp, 2 ranks", "#d95f02"), ("fsdp", "fsdp, 2 ranks", "#1b9e77")]


def load(path):
    """A step's JSON, or None when the step did not get that far."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def judge(logs, steps):
    """The reasons for FAIL; empty means PASS. A missing result is a reason."""
    reasons = [f"step '{name}' failed" for name, status, _ in steps if status != "ok"]
    done = {name for name, status, _ in steps if status == "ok"}
    reasons += [f"step '{name}' did not run" for name in STAGES if name not in done and not any(name in r for r in reasons)]
    again = load(logs / "apply_again.json")
    if again is None or again.get("action") != "nothing":
        reasons.append("a second apply was not a no-op")
    python = load(logs / "python.json")
    if python is None or not python.get("ranks_equal") or python.get("ddp_max_difference", 1) >= 1e-6:
        reasons.append("the carried Python's DDP step does not equal one process")
    check = load(logs / "check.json")
    if check is None or check.get("verdict") != "pass":
        reasons.append("the three training runs do not agree, or did not learn")
    verdict = load(logs / "verdict.json")
    if verdict is None or verdict.get("verdict") != "PASS":
        reasons.append("sealift-verify did not pass this site")
    reasons += [f"swift sft did not give the golden run {name}" for name in of_swift(logs) if swift_said(verdict, name) is None]
    return reasons


def of_swift(logs):
    """The golden runs that `swift sft` had to give; none where ms-swift is not carried."""
    named = logs / "ms_swift"
    return named.read_text().split() if named.exists() else []


def swift_said(verdict, name):
    """What the check of `swift sft` says where it passed."""
    checks = {check["name"]: check for check in (verdict or {}).get("checks", [])}
    check = checks.get(f"python.swift.{name}", {})
    return check["reason"]["en"] if check.get("outcome") == "PASS" else None


def curves(runs, floor):
    """The loss curves as SVG."""
    width, height, left, bottom = 760, 300, 50, 30
    top_loss = max(max(run["losses"]) for _, _, run in runs) * 1.03
    low = floor * 0.85
    steps = max(len(run["losses"]) for _, _, run in runs)

    def x(step):
        return left + (width - left - 10) * step / max(1, steps - 1)

    def y(loss):
        return 10 + (height - bottom - 10) * (top_loss - loss) / (top_loss - low)

    parts = [f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="loss by step">']
    for k in range(5):
        value = low + (top_loss - low) * k / 4
        parts.append(f'<line x1="{left}" x2="{width - 10}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#eee"/>'
                     f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.2f}</text>')
    parts.append(f'<line x1="{left}" x2="{width - 10}" y1="{y(floor):.1f}" y2="{y(floor):.1f}" stroke="#4477cc" stroke-dasharray="4 4"/>'
                 f'<text x="{width - 12}" y="{y(floor) + 13:.1f}" text-anchor="end" fill="#4477cc">entropy of the source {floor:.4f}</text>')
    for k, (label, colour, run) in enumerate(runs):  # dashes that take turns: equal curves show all their colours
        points = " ".join(f"{x(i):.1f},{y(loss):.1f}" for i, loss in enumerate(run["losses"]))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="3" stroke-dasharray="14 {14 * (len(runs) - 1)}" '
                     f'stroke-dashoffset="{-14 * k}"><title>{label}</title></polyline>')
    for k, (label, colour, _) in enumerate(runs):
        parts.append(f'<rect x="{left + 20 + 160 * k}" y="{height - 16}" width="12" height="12" fill="{colour}"/>'
                     f'<text x="{left + 38 + 160 * k}" y="{height - 6}">{label}</text>')
    return "".join(parts) + "</svg>"


def table(rows, head=()):
    cell = lambda value: html.escape(str(value))
    out = "<table>" + ("<tr>" + "".join(f"<th>{cell(h)}</th>" for h in head) + "</tr>" if head else "")
    return out + "".join("<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>" for row in rows) + "</table>"


def verdict_line(verdict):
    """How many checks came to what; the report itself lies in OUT/verdict."""
    count = lambda outcome: sum(check["outcome"] == outcome for check in verdict["checks"])
    return (f"{verdict['verdict']} at level {verdict['level']}: {count('PASS')} checks passed, {count('FAIL')} failed, "
            f"{count('NOT RUN')} were not run")


def summary(report, served):
    """What was verified, installed and run, in the words of the people who sign the page."""
    verify, install, python, check = (report[key] or {} for key in ("verify", "install", "python", "check"))
    audit, test = install.get("audit", {}), install.get("self_test", {})
    rows = []
    if verify:
        rows += [("bundle", f"{verify['name']}-{verify['version']}, channel {verify['channel']}, made {verify['created']}"),
                 ("identity", "sha256:" + verify["identity"]), ("signed by", ", ".join(verify["signers"])),
                 ("root", f"{verify['root']['version']}, {verify['root']['fingerprint']}"),
                 ("verified", f"{verify['bytes']:,} bytes in {verify['chunks']} chunks, {verify['volumes']} volume(s), "
                              f"{verify['entries']} entries; {len(verify['failures'])} damaged"),
                 ("made for", f"{verify['target']['arch']}, glibc {verify['target']['glibc']} or newer")]
    if audit:
        rows += [("installed", f"{audit['files']:,} files, {audit['bytes']:,} bytes, {audit['wheels']} wheels, generation {install['generation']}"),
                 ("audited", f"{audit['record_rows']:,} rows of RECORD; every file present, each digest checked as it was written"),
                 ("self-test", f"imported {', '.join(test.get('imports', []))} in {test.get('milliseconds', 0) / 1000:.1f} s")]
    if python:
        rows += [("versions", f"Python {python['python']}, torch {python['torch']}, CUDA {python['cuda']}, NCCL {python['nccl']}, cuDNN {python['cudnn']}"),
                 ("Python's DDP", f"one step over Gloo with {python['ddp_ranks']} ranks; weights differ from one process by {python['ddp_max_difference']:.1e}")]
    if check:
        rows += [("training", f"{check['runs']} runs agree to {check['digits']:.1f} digits (largest relative difference "
                              f"{check['max_relative_difference']:.1e}); final loss {check['final_loss']:.4f}, known floor {check['entropy_floor']:.4f}")]
    if report["site"]:
        rows += [("sealift-verify", verdict_line(report["site"]))]
        rows += [(f"swift sft, {name}", said) for name in report["swift"] if (said := swift_said(report["site"], name))]
    return rows + ([("served", served)] if served else [])


STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
h1{margin-bottom:.2rem}table{border-collapse:collapse;margin:.5rem 0}td,th{border:1px solid #ddd;padding:.2rem .6rem;text-align:left;
vertical-align:top;overflow-wrap:anywhere}svg text{font:11px system-ui,sans-serif}.PASS{color:#167a3a}.FAIL{color:#b00020}
@media print{body{margin:0}}"""


def page(report, runs, served):
    verdict = report["verdict"]
    parts = [f"<!doctype html><html lang=en><meta charset=utf-8><title>Sealift air-gap report: {verdict}</title><style>{STYLE}</style>",
             f"<h1>Air-gap report: <span class={verdict}>{verdict}</span></h1>",
             "<p>A training environment was packed and signed, carried into a bare host without network, verified, installed, "
             "and trained there.</p>"]
    if report["reasons"]:
        parts.append("<h2>Reasons</h2><ul>" + "".join(f"<li>{html.escape(r)}</li>" for r in report["reasons"]) + "</ul>")
    if report["failure_log"]:
        parts.append(f"<pre>{html.escape(report['failure_log'])}</pre>")
    if len(runs) == len(RUNS):
        parts.append("<h2>The same loss, three ways</h2>" + curves(runs, runs[0][2]["entropy_floor"]))
        parts.append(table([(label, run["world_size"], f"{run['parameters']:,}", len(run["losses"]), f"{run['losses'][0]:.6f}",
                             f"{run['final_loss']:.6f}") for label, _, run in runs],
                           ("run", "ranks", "parameters", "steps", "first loss", "final loss")))
    parts.append("<h2>What was carried, verified and run</h2>" + table(summary(report, served)))
    parts.append("<h2>Steps</h2>" + table([(n, s, f"{t} s") for n, s, t in report["steps"]], ("step", "outcome", "time")))
    return "".join(parts) + "</html>\n"


def served_line(logs):
    """What pip installed from the repository, as the new environment's own interpreter said it."""
    log = logs / "serve.log"
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return next((line for line in reversed(lines) if line.startswith("sympy ")), "")


def main():
    out, seconds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    logs = out / "logs"
    steps_file = logs / "steps.tsv"
    steps = [line.split("\t") for line in steps_file.read_text().splitlines()] if steps_file.exists() else []
    reasons = judge(logs, steps)
    runs = [(label, colour, run) for method, label, colour in RUNS if (run := load(logs / f"train_{method}.json"))]
    newest = max(logs.glob("*.log"), key=lambda path: path.stat().st_mtime, default=None)
    failed = any(status != "ok" for _, status, _ in steps)
    report = {
        "verdict": "FAIL" if reasons else "PASS", "reasons": reasons, "seconds": seconds,
        "steps": steps, "check": load(logs / "check.json"), "verify": load(logs / "verify.json"),
        "install": load(logs / "apply.json"), "python": load(logs / "python.json"), "status": load(logs / "status.json"),
        "bundle": load(logs / "inspect.json"), "site": load(logs / "verdict.json"), "swift": of_swift(logs), "runs": [run for _, _, run in runs],
        "failure_log": newest.read_text(errors="replace")[-3000:] if failed and newest else "",
    }
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / "report.html").write_text(page(report, runs, served_line(logs)))
    print(f"\n{report['verdict']}: {out}/report.html" + "".join(f"\n  - {reason}" for reason in reasons))
    sys.exit(0 if not reasons else 1)


main()
