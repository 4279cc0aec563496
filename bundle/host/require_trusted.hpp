// SPDX-License-Identifier: Apache-2.0
// What a tool says of a path that it does not trust (trusted_path.hpp): whose it is, and what to do.
// One sentence for all verbs, since the remedy is the same for all.
#pragma once

#include <filesystem>
#include <string>

#include "bundle/host/trusted_path.hpp"

namespace sealift::bundle {

// Throws Usage with the folder, link or file that somebody else could change, and with the remedy; Io where one cannot
// be looked at. `what` is the sentence that the message begins with: what could happen.
void require_trusted_path(const std::filesystem::path& path, Above above, const std::string& what);

// The same for a file or folder that is open, whatever its name leads to by now; `where` is for the message.
void require_trusted_open(int descriptor, const std::filesystem::path& where, const std::string& what);

}  // namespace sealift::bundle
