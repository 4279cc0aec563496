// SPDX-License-Identifier: Apache-2.0
// The verbs of sealift-verify, a file each: arguments -> options -> one call -> print.
// `main` adds them to its command line and catches what they throw.
// A verb whose result is bad throws CLI::RuntimeError with the exit code, after it has printed why.
#pragma once

#include <CLI/CLI.hpp>

namespace sealift::verify {

/// `run`: runs the checks and writes the report. `argv` is what the ranks of this host are started with.
void add_run(CLI::App& app, char** argv);

/// `golden`: records what a job computes, for [[golden]].
void add_golden(CLI::App& app);

/// `diff`: compares two reports.
void add_diff(CLI::App& app);

/// `sign`: writes the bytes that the site's key signs.
void add_sign(CLI::App& app);

/// `check-signature`: checks what it signed.
void add_check_signature(CLI::App& app);

}  // namespace sealift::verify
