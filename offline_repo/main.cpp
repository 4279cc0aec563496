// SPDX-License-Identifier: Apache-2.0
// sealift-repo: its verbs, and the exit code. Results go to stdout, everything else to stderr.
// Errors are caught in Program::run, and only there.
#include "offline_repo/verbs/verbs.hpp"

int main(int argc, char** argv) {
  sealift::bundle::Program program(
      "sealift-repo", "A package index and a model hub, straight from verified bundles, read only.", SEALIFT_VERSION);
  sealift::offline_repo::add_serve(program);
  sealift::offline_repo::add_status(program);
  sealift::offline_repo::add_folder_verbs(program);
  return program.run(argc, argv);
}
