// SPDX-License-Identifier: Apache-2.0
// The verbs of sealift-install, one file each: what the verb accepts, and from that to options, one call and the print.
// main adds them in the order in which --help lists them.
#pragma once

#include "bundle/host/command_line.hpp"

namespace sealift::installer {

void add_probe(bundle::Program& program);
void add_trust(bundle::Program& program);
void add_verify(bundle::Program& program);
void add_mend(bundle::Program& program);
void add_preflight(bundle::Program& program);
void add_plan(bundle::Program& program);
void add_apply(bundle::Program& program);
void add_status(bundle::Program& program);
void add_switch(bundle::Program& program);
void add_pin(bundle::Program& program);
void add_unpin(bundle::Program& program);
void add_receipt(bundle::Program& program);
void add_gc(bundle::Program& program);
void add_doctor(bundle::Program& program);
void add_inventory(bundle::Program& program);
void add_export(bundle::Program& program);
void add_image(bundle::Program& program);
void add_mount(bundle::Program& program);
void add_unmount(bundle::Program& program);
void add_site(bundle::Program& program);
void add_venv(bundle::Program& program);

}  // namespace sealift::installer
