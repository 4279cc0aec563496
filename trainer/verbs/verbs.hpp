// SPDX-License-Identifier: Apache-2.0
// The verbs of sealift-train, a file each: arguments -> options -> one call -> print.
// `main` adds them to its command line and catches what they throw.
// A verb whose result is bad throws CLI::RuntimeError with the exit code, after it has printed why.
#pragma once

#include <CLI/CLI.hpp>

namespace sealift::trainer {

/// `run`: trains. `argv` is what the ranks of this host are started with.
void add_run(CLI::App& app, char** argv);

/// `sft`, `dpo`, `pretrain`: train a Hugging Face model or adapters of it. `argv` as above.
void add_fine_tune(CLI::App& app, char** argv);

/// `check`: compares results.
void add_check(CLI::App& app);

/// `export`: writes a checkpoint as plain safetensors.
void add_export(CLI::App& app);

/// `rehearse`: one rank of a job that does not run.
void add_rehearse(CLI::App& app);

/// `plan`: what each way to train a model takes, sends and lasts.
void add_plan(CLI::App& app);

/// `tokenize`: JSON lines -> a token file.
void add_tokenize(CLI::App& app);

}  // namespace sealift::trainer
