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
// The same of a path, whose slashes stay.
std::string path_escaped(std::string_view path);

std::string project_list_html(const Catalogue& catalogue);
std::string project_list_json(const Catalogue& catalogue);

std::string project_html(const Project& project);
std::string project_json(const Project& project);

// The wheels of all projects on one page, as --find-links reads it.
std::string wheel_list_html(const Catalogue& catalogue);

// All of it as requirements that name each version and the digests of its wheels, one line a project; or why there are
// none: a project with two versions, or one whose version is not spelled as versions are.
struct Requirements {
  std::string text, why_not;
};
Requirements requirements_of(const Catalogue& catalogue);

}  // namespace sealift::offline_repo
