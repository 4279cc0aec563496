// SPDX-License-Identifier: Apache-2.0
// What indexes do not tell uv or us as they should, from the files themselves: metadata that is promised and not there,
// and the SHA-256 of files that have an MD5 alone.
#pragma once

#include <string>
#include <vector>

#include "packager/files/cache.hpp"
#include "packager/host/http_logins.hpp"
#include "packager/resolve/pylock.hpp"
#include "packager/resolve/source_facts.hpp"
#include "packager/tables/startup_rules.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// Of the wheel at this address: its end by ranges, or all of it where the server has none. Throws Network.
SourceMetadata read_remote_metadata(const std::string& url, const HttpLogins& logins,
                                    const std::vector<StartupRule>& startup_files);

// Fetches what was chosen and has no SHA-256, and pins it by one of our own. Throws Network.
void pin_unpinned(PythonChoice& choice, const HttpLogins& logins, const Cache& cache, bundle::Progress& progress);

}  // namespace sealift::packager
