// SPDX-License-Identifier: Apache-2.0
// The verbs of sealift-train, a file each: arguments -> options -> one call -> print.
// `main` adds them to its command line and catches what they throw.
// An action returns the exit code; of a bad result after it has printed why.
#pragma once

#include "bundle/host/command_line.hpp"

namespace sealift::trainer {

/// `run`: trains. `argv` is what the ranks of this host are started with.
void add_run(bundle::Program& program, char** argv);

/// `sft`, `dpo`, `pretrain`: train a Hugging Face model or adapters of it. `argv` as above.
void add_fine_tune(bundle::Program& program, char** argv);

/// `explain`: what becomes of each key of a job file of another project.
void add_explain(bundle::Program& program);

/// `check`: compares results.
void add_check(bundle::Program& program);

/// `compare`: what runs cost, side by side.
void add_compare(bundle::Program& program);

/// `race`: a job under each method.
void add_race(bundle::Program& program);

/// `families`: which models are read.
void add_families(bundle::Program& program);

/// `export`: writes a checkpoint as plain safetensors.
void add_export(bundle::Program& program);

/// `rehearse`: one rank of a job that does not run.
void add_rehearse(bundle::Program& program);

/// `plan`: what each way to train a model takes, sends and lasts.
void add_plan(bundle::Program& program);

/// `tokenize`: JSON lines -> a token file.
void add_tokenize(bundle::Program& program);

}  // namespace sealift::trainer
