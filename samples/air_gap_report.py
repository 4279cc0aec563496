# SPDX-License-Identifier: Apache-2.0
# Last step of samples/air_gap.sh: reads what the steps left in OUT/logs, decides PASS or FAIL, writes report.json and a
# one-page report.html (self-contained, inline SVG). Everything that is shown was measured or printed by a step.
#   air_gap_report.py OUT SECONDS      exit status 0: PASS
import html
import json
import pathlib
import sys

STAGES = ["prepare", "build", "lock", "pack", "carry", "verify", "install", "python", "train", "serve", "report"]
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
    return reasons


def curves(runs, floor):
    """The loss curves as SVG. One process is drawn widest, so equal curves show as one line of three colours."""
    width, height, left, bottom = 760, 300, 50, 30
    top_loss = max(max(run["losses"]) for _, _, run in runs) * 1.03
    low = floor * 0.95
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
                 f'<text x="{width - 12}" y="{y(floor) - 5:.1f}" text-anchor="end" fill="#4477cc">entropy of the source {floor:.4f}</text>')
    for thickness, (label, colour, run) in zip((7, 4, 1.6), runs):
        points = " ".join(f"{x(i):.1f},{y(loss):.1f}" for i, loss in enumerate(run["losses"]))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{thickness}"><title>{label}</title></polyline>')
    for k, (label, colour, _) in enumerate(runs):
        parts.append(f'<rect x="{left + 20 + 160 * k}" y="{height - 16}" width="12" height="12" fill="{colour}"/>'
                     f'<text x="{left + 38 + 160 * k}" y="{height - 6}">{label}</text>')
    return "".join(parts) + "</svg>"


def table(rows, head=()):
    cell = lambda value: html.escape(str(value))
    out = "<table>" + ("<tr>" + "".join(f"<th>{cell(h)}</th>" for h in head) + "</tr>" if head else "")
    return out + "".join("<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>" for row in rows) + "</table>"


def flat(value, prefix=""):
    """(name, value) rows of a JSON object, lists of plain values joined, longer structures left to report.json."""
    for key, item in (value or {}).items():
        if isinstance(item, dict):
            yield from flat(item, f"{prefix}{key}.")
        elif not isinstance(item, list):
            yield (prefix + key, item)
        elif len(item) < 8 and not any(isinstance(part, (dict, list)) for part in item):
            yield (prefix + key, ", ".join(map(str, item)))


STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
h1{margin-bottom:.2rem}table{border-collapse:collapse;margin:.5rem 0}td,th{border:1px solid #ddd;padding:.2rem .6rem;text-align:left;
vertical-align:top;overflow-wrap:anywhere}svg text{font:11px system-ui,sans-serif}.PASS{color:#167a3a}.FAIL{color:#b00020}
@media print{body{margin:0}}"""


def page(report, runs):
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
    for title, key in (("Do the runs agree", "check"), ("Verified", "verify"), ("Installed", "install"), ("Versions on the isolated side", "python")):
        if report[key]:
            parts.append(f"<h2>{title}</h2>" + table(flat(report[key])))
    parts.append("<h2>Steps</h2>" + table([(n, s, f"{t} s") for n, s, t in report["steps"]], ("step", "outcome", "time")))
    return "".join(parts) + "</html>\n"


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
        "bundle": load(logs / "inspect.json"), "runs": [run for _, _, run in runs],
        "failure_log": newest.read_text(errors="replace")[-3000:] if failed and newest else "",
    }
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / "report.html").write_text(page(report, runs))
    print(f"\n{report['verdict']}: {out}/report.html" + "".join(f"\n  - {reason}" for reason in reasons))
    sys.exit(0 if not reasons else 1)


main()
