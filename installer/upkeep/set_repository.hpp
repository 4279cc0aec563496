// SPDX-License-Identifier: Apache-2.0
// The story of `sealift-install site repository`: remembers in the prefix what the site serves packages from, and
// writes what hands it on (activation, modules) anew. The medium is not needed, and no generation is touched.
#pragma once

#include "installer/activation/site_settings.hpp"
#include "installer/disk/disk.hpp"

namespace sealift::installer {

// Remembers repository and certificates (a PEM file, or empty for none); forgets both for an empty URL. Throws Missing
// when there is no prefix, Usage and Format for what cannot be used; then nothing is changed.
SiteSettings set_repository(const Prefix& prefix, const std::string& url, const std::filesystem::path& certificates,
                            Disk& disk);

}  // namespace sealift::installer
