// SPDX-License-Identifier: Apache-2.0
// The verbs of sealift-verify, a file each: arguments -> options -> one call -> print.
// `main` adds them to its command line and catches what they throw.
// An action returns the exit code; of a bad result after it has printed why.
#pragma once

#include "bundle/host/command_line.hpp"

namespace sealift::verify {

/// `run`: runs the checks and writes the report. `argv` is what the ranks of this host are started with.
void add_run(bundle::Program& program, char** argv);

/// `golden`: records what a job computes, for [[golden]].
void add_golden(bundle::Program& program);

/// `diff`: compares two reports.
void add_diff(bundle::Program& program);

/// `sign`: writes the bytes that the site's key signs.
void add_sign(bundle::Program& program);

/// `check-signature`: checks what it signed.
void add_check_signature(bundle::Program& program);

}  // namespace sealift::verify
