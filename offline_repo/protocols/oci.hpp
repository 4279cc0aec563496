// SPDX-License-Identifier: Apache-2.0
// The pull half of the OCI distribution specification 1.1: what a client of a registry asks for, and the documents that
// it reads. Pure functions; what there is stands in the catalogue.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::offline_repo {

enum class OciRoute {
  Base,       // /v2/
  Catalog,    // /v2/_catalog
  Tags,       // /v2/NAME/tags/list
  Manifest,   // /v2/NAME/manifests/TAG or DIGEST
  Blob,       // /v2/NAME/blobs/DIGEST
  Referrers,  // /v2/NAME/referrers/DIGEST
  Unknown,    // anything else below /v2/
};

struct OciTarget {
  OciRoute route = OciRoute::Unknown;
  std::string name = {};       // of a repository
  std::string reference = {};  // a tag, or "sha256:…"
};

// `segments` are decoded, and the first is "v2".
OciTarget parse_oci_target(const std::vector<std::string>& segments);

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
