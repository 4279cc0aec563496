// SPDX-License-Identifier: Apache-2.0
// The pages of a simple repository index: PEP 503 in HTML, PEP 691, 700 and 792 in JSON, with PEP 658 and 714 metadata.
// Links are relative, so the index works below any path and behind any proxy.
#pragma once

#include <string>
#include <string_view>

#include "offline_repo/catalogue/catalogue.hpp"

namespace sealift::offline_repo {

// One segment of a URL's path: every character that is not unreserved as %XX.
std::string url_escaped(std::string_view text);

std::string project_list_html(const Catalogue& catalogue);
std::string project_list_json(const Catalogue& catalogue);

std::string project_html(const Project& project);
std::string project_json(const Project& project);

}  // namespace sealift::offline_repo
