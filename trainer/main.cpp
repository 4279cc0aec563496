// SPDX-License-Identifier: Apache-2.0
// sealift-train: fine-tunes Hugging Face models, and trains a small one on data of known entropy, to show that an
// environment computes what it should.
// A verb is a file in verbs/. Results go to stdout, everything else to stderr. Nothing is caught but in run_program,
// and in `run`, whose ranks must report a failure while they are connected. Exit codes: 0 good, 1 bad (a rank failed, a
// check did not hold), 2 cannot tell (arguments, files).
#include <torch/torch.h>
#include <sealift/train/comm/gloo_turns.hpp>

#include "trainer/command_line.hpp"
#include "trainer/kept_memory.hpp"
#include "trainer/verbs/verbs.hpp"
#include "trainer/version.hpp"

#include <cstdlib>

C10_DECLARE_int(caffe2_log_level);

int main(int argc, char** argv) {
  using namespace sealift::trainer;
  keep_freed_memory();
  CLI::App app("Trains and fine-tunes language models in one process or many ranks, without Python.", "sealift-train");
  app.require_subcommand(1);
  app.set_version_flag("--version", version_of("sealift-train") + "\nLibTorch " TORCH_VERSION);
  add_run(app, argv);
  add_fine_tune(app, argv);
  add_check(app);
  add_export(app);
  add_plan(app);
  add_tokenize(app);
  add_rehearse(app);

  // c10d warns about every address that no name service knows, and an isolated host may have none.
  if (!std::getenv("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = 2;
  return run_program(app, argc, argv);
}
