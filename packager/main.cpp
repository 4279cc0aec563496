// SPDX-License-Identifier: Apache-2.0
// sealift-pack: lists the verbs, each in a file of verbs/. Errors are caught in Program::run alone.
#include "packager/host/private_memory.hpp"
#include "packager/verbs/verbs.hpp"
#include "sealift/bundle/host/interrupt.hpp"

int main(int argc, char** argv) {
  using namespace sealift::packager;
  keep_memory_private();
  sealift::bundle::Program program(
      "sealift-pack", "Packs a Python environment with its interpreter into a signed bundle that can cross an air gap.",
      SEALIFT_VERSION);
  add_keygen(program);
  add_root(program);
  add_lock(program);
  add_create(program);
  add_sign(program);
  add_rehearse(program);
  add_recut(program);
  add_inspect(program);
  add_diff(program);
  add_documents(program);
  sealift::bundle::catch_interrupts();
  return program.run(argc, argv);
}
