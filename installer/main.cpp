// SPDX-License-Identifier: Apache-2.0
// sealift-install: its verbs, and the exit code. Results go to stdout, everything else to stderr.
// Errors are caught in Program::run, and only there.
#include <sys/stat.h>

#include "installer/verbs/verbs.hpp"
#include "sealift/bundle/host/interrupt.hpp"

int main(int argc, char** argv) {
  using namespace sealift::installer;
  ::umask(022);  // a folder has its mode from the first moment, so that a crash leaves none that others cannot enter
  sealift::bundle::Program program(
      "sealift-install", "Checks sealed bundles and installs them on a machine without a network.", SEALIFT_VERSION);
  for (const auto add : {add_probe,     add_trust,  add_verify, add_mend,  add_preflight, add_plan, add_apply,
                         add_status,    add_switch, add_pin,    add_unpin, add_receipt,   add_gc,   add_doctor,
                         add_inventory, add_export, add_image,  add_mount, add_unmount,   add_site, add_venv})
    add(program);
  // A run may be killed at any instruction: what is current stays, and the next run goes on.
  sealift::bundle::say_when_interrupted(
      "\nstopped; what was current before still is, and the same command goes on from here\n");
  return program.run(argc, argv);
}
