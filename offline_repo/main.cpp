// SPDX-License-Identifier: Apache-2.0
// sealift-repo: its verb, and the exit code. Results go to stdout, everything else to stderr.
// Errors are caught in Program::run, and only there.
#include "offline_repo/verbs/verbs.hpp"

int main(int argc, char** argv) {
  sealift::bundle::Program program(
      "sealift-repo", "A package index and a model hub, straight from verified bundles, read only.", SEALIFT_VERSION);
  sealift::offline_repo::add_serve(program);
  return program.run(argc, argv);
}
