// SPDX-License-Identifier: Apache-2.0
// The pull half of the OCI distribution specification 1.1: digests and pages as clients ask for them, and the
// documents that they read. Pure functions; what there is stands in the catalogue.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::offline_repo {

// The 64 digits behind "sha256:"; nothing unless they are a digest.
std::optional<std::string> digest_of_reference(std::string_view reference);

// A part of a sorted list, as ?n= and ?last= ask for it.
struct OciPage {
  std::vector<std::string> items;
  bool more = false;  // there are others behind them
};
OciPage page_of_list(const std::vector<std::string>& sorted, const std::string& n, const std::string& last);

std::string oci_catalog_json(const std::vector<std::string>& names);
std::string oci_tags_json(const std::string& name, const std::vector<std::string>& tags);
// An index without manifests.
std::string oci_no_referrers_json();
// {"errors": …}; `code` is one of the specification's.
std::string oci_error_json(std::string_view code, std::string_view why);

}  // namespace sealift::offline_repo
