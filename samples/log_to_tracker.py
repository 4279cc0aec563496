#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The curves of OUT/log.jsonl, as sealift-train writes it, in a tracker of experiments, without a network.
# docs/experiment_trackers.md shows it. Needs Python 3.9, and the tracker's own package for all but csv and tensorboard.
#   log_to_tracker.py OUT --to csv|wandb|mlflow|clearml|swanlab|tensorboard [--name NAME] [--project NAME] [--folder DIR]
import argparse
import csv
import json
import math
import os
import pathlib
import sys


def numbers_of(line):
    """The numbers of a line by name; what is text ("nan", "inf"), a list or a truth is left out."""
    return {name: value for name, value in line.items()
            if name != "step" and isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)}


def read_log(path):
    """([(step, {name: number})] by rising step, lines that are no JSON object with a step).

    Of a step that was computed twice the last line counts, and with the first line of a run that went on from a
    checkpoint all later steps of the run before are forgotten: they were undone."""
    rows, last_trained, spoilt = {}, 0, 0
    with open(path, "rb") as file:
        for text in file:
            try:
                line = json.loads(text)
                step = line["step"]
                if type(step) is not int:
                    raise ValueError(step)
            except (ValueError, KeyError, TypeError):
                spoilt += 1
                continue
            if "loss" in line:
                if step <= last_trained:
                    rows = {earlier: row for earlier, row in rows.items() if earlier < step}
                last_trained = step
            rows.setdefault(step, {}).update(numbers_of(line))
    return sorted((step, row) for step, row in rows.items() if row), spoilt


def settings_of(out):
    """The settings of OUT/result.json; none where the run has not ended."""
    try:
        return json.loads((out / "result.json").read_text()).get("configuration", {})
    except (OSError, ValueError):
        return {}


def tag_of(name):
    """The name of a curve: eval/loss of eval_loss, train/loss of loss."""
    return "eval/" + name[5:] if name.startswith("eval_") else "train/" + name


def to_csv(rows, _settings, _given):
    names = sorted({name for _, row in rows for name in row})
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["step", *names])
    for step, row in rows:
        table.writerow([step, *(row.get(name, "") for name in names)])


def to_wandb(rows, settings, given):
    os.environ["WANDB_MODE"] = "offline"
    import wandb
    run = wandb.init(project=given.project, name=given.name, config=settings, dir=str(given.folder))
    for step, row in rows:
        run.log({tag_of(name): value for name, value in row.items()}, step=step)
    run.finish()


def to_mlflow(rows, settings, given):
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # MLflow 3.17 asks for a data base otherwise
    import mlflow
    mlflow.set_tracking_uri((given.folder / "mlruns").resolve().as_uri())
    mlflow.set_experiment(given.project)
    with mlflow.start_run(run_name=given.name):
        for name, value in settings.items():
            mlflow.log_param(name, str(value)[:500])
        for step, row in rows:
            mlflow.log_metrics({tag_of(name): value for name, value in row.items()}, step=step)


def to_clearml(rows, settings, given):
    os.environ.setdefault("CLEARML_CACHE_DIR", str(given.folder / "clearml"))
    from clearml import Task
    Task.set_offline(offline_mode=True)
    task = Task.init(project_name=given.project, task_name=given.name, auto_connect_frameworks=False,
                     auto_resource_monitoring=False, auto_connect_arg_parser=False)
    task.connect(dict(settings))
    for step, row in rows:
        for name, value in row.items():
            title, series = tag_of(name).split("/", 1)
            task.get_logger().report_scalar(title=series, series=title, value=value, iteration=step)
    task.close()


def to_swanlab(rows, settings, given):
    import swanlab
    run = swanlab.init(project=given.project, experiment_name=given.name, config=settings, mode="offline",
                       logdir=str(given.folder / "swanlog"))
    for step, row in rows:
        run.log({tag_of(name): value for name, value in row.items()}, step=step)
    run.finish()


def to_tensorboard(rows, _settings, given):
    from torch.utils.tensorboard import SummaryWriter
    with SummaryWriter(str(given.folder / "tensorboard"), purge_step=rows[0][0]) as board:
        for step, row in rows:
            for name, value in row.items():
                board.add_scalar(tag_of(name), value, step)


TRACKERS = {"csv": to_csv, "wandb": to_wandb, "mlflow": to_mlflow, "clearml": to_clearml, "swanlab": to_swanlab,
            "tensorboard": to_tensorboard}


def main():
    parser = argparse.ArgumentParser(description="Brings the curves of OUT/log.jsonl into a tracker, without a network.")
    parser.add_argument("out", type=pathlib.Path, help="the folder of a run, with log.jsonl")
    parser.add_argument("--to", choices=TRACKERS, default="csv")
    parser.add_argument("--name", help="of the run; without: the folder's")
    parser.add_argument("--project", default="sealift")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("."), help="where the tracker's files go")
    given = parser.parse_args()
    given.name = given.name or given.out.resolve().name
    rows, spoilt = read_log(given.out / "log.jsonl")
    if spoilt:
        print(f"note: {spoilt} line(s) of {given.out}/log.jsonl are not whole and are left out", file=sys.stderr)
    if not rows:
        sys.exit(f"{given.out}/log.jsonl has no step with a number; is it the OUT of sealift-train?")
    given.folder.mkdir(parents=True, exist_ok=True)
    try:
        TRACKERS[given.to](rows, settings_of(given.out), given)
    except ImportError as error:
        sys.exit(f"{error}; carry the package of {given.to} in the bundle, or install it here")
    print(f"{len(rows)} steps of {given.out} are in {given.to}", file=sys.stderr)


if __name__ == "__main__":
    main()
