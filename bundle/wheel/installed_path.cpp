// SPDX-License-Identifier: Apache-2.0
// A scheme's folder and the path below it; see installed_path.hpp. Called for tens of thousands of files, so strings
// are joined and no filesystem::path is made.
#include "sealift/bundle/wheel/installed_path.hpp"

namespace sealift::bundle {

namespace {

std::string_view before(std::string_view text, char end) {
  return text.substr(0, text.find(end));
}

// "python3.11", the folder that holds site-packages.
std::string_view python_folder(std::string_view site_packages) {
  const std::string_view parent = site_packages.substr(0, site_packages.rfind('/'));
  return parent.substr(parent.rfind('/') + 1);
}

}  // namespace

std::string site_packages_of(std::string_view python) {
  return "lib/python" + std::string(python) + "/site-packages";
}

std::string installed_path(Scheme scheme, std::string_view path, std::string_view dist_info,
                           std::string_view site_packages) {
  std::string out;
  switch (scheme) {
    case Scheme::SitePackages:
      out.append(site_packages).append("/");
      break;
    case Scheme::Scripts:
      out = "bin/";
      break;
    case Scheme::Headers:  // include/python3.11/PROJECT
      out.append("include/").append(python_folder(site_packages)).append("/").append(before(dist_info, '-'));
      out.append("/");
      break;
    case Scheme::Data:
      break;
  }
  return out.append(path);
}

}  // namespace sealift::bundle
