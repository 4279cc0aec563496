// SPDX-License-Identifier: Apache-2.0
// The verbs of sealift-repo, one file each: what the verb accepts, and from that to options, one call and the print.
#pragma once

#include "bundle/host/command_line.hpp"

namespace sealift::offline_repo {

void add_serve(bundle::Program& program);
void add_status(bundle::Program& program);
void add_folder_verbs(bundle::Program& program);  // add, remove, switch

}  // namespace sealift::offline_repo
