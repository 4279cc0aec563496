// SPDX-License-Identifier: Apache-2.0
// Which Sealift a program of the training half is: its version, and the commit that it was built from.
// For --version; cmake/commit.cmake makes the body from version.cpp.in at build time.
// Only the programs link it, so that a new commit builds neither a library nor a test anew.
#pragma once

#include <string>

namespace sealift::trainer {

/// "NAME VERSION", as the tools say it, then "commit HASH", which ends with "-changed" where files differed from it;
/// "commit unknown" of a build outside of git.
std::string sealift_version();

}  // namespace sealift::trainer
