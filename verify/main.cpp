// SPDX-License-Identifier: Apache-2.0
// sealift-verify: runs checks on one rank or a thousand and writes the report that a site files.
// A verb is a file in verbs/. Results go to stdout, everything else to stderr. Nothing is caught but in run_program,
// and on the ranks of `run`, which must report a failure while they are connected. Exit codes: 0 every check that was
// run passed, 1 a check failed, 2 cannot tell (arguments, files, nothing was run).
#include "trainer/command_line.hpp"
#include "trainer/version.hpp"
#include "verify/verbs/verbs.hpp"

#include <torch/torch.h>
#include <sealift/train/comm/gloo_turns.hpp>

#include <cstdlib>

C10_DECLARE_int(caffe2_log_level);

int main(int argc, char** argv) {
  using namespace sealift;
  bundle::Program program("sealift-verify",
                          "Checks that an installed environment computes, communicates and trains as it should.",
                          trainer::sealift_version() + "\nLibTorch " TORCH_VERSION);
  verify::add_run(program, argv);
  verify::add_golden(program);
  verify::add_diff(program);
  verify::add_sign(program);
  verify::add_check_signature(program);
  // c10d warns about every address that no name service knows, and an isolated host may have none.
  if (!std::getenv("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = 2;
  return trainer::run_program(program, argc, argv);
}
