// SPDX-License-Identifier: Apache-2.0
// The verbs of sealift-repo, one file each: what the verb accepts, and from that to options, one call and the print.
#pragma once

#include "bundle/host/command_line.hpp"

namespace sealift::offline_repo {

void add_serve(bundle::Program& program);

}  // namespace sealift::offline_repo
