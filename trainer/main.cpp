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
  using namespace sealift;
  using namespace sealift::trainer;
  keep_freed_memory();
  bundle::Program program("sealift-train",
                          "Trains and fine-tunes language models in one process or many ranks, without Python.",
                          sealift_version() + "\nLibTorch " TORCH_VERSION);
  add_run(program, argv);
  add_fine_tune(program, argv);
  add_explain(program);
  add_check(program);
  add_compare(program);
  add_race(program);
  add_families(program);
  add_export(program);
  add_plan(program);
  add_tokenize(program);
  add_rehearse(program);

  // c10d warns about every address that no name service knows, and an isolated host may have none.
  if (!std::getenv("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = 2;
  return run_program(program, argc, argv);
}
