// SPDX-License-Identifier: Apache-2.0
// Asks a model hub about a repository: its commit and its files. Only this source knows the routes of HF_ENDPOINT and
// of ModelScope. Everything a hub answers is bounded and checked; its files are fetched by fetch.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "packager/network/remote_documents.hpp"
#include "packager/tables/model.hpp"

namespace sealift::packager {

struct HubFile {
  std::string path;  // a SafePath's text
  std::uint64_t size = 0;
  std::optional<bundle::Digest> sha256;  // hubs give it for large files only
  std::string spelled = {};              // in a folder, where that is not Unicode's normal form C
};

struct HubListing {
  std::string commit;  // empty where the hub has none
  std::vector<HubFile> files;
  std::vector<std::string> empty_folders = {};  // of a folder of this machine
};

// Throws Network (with what to do when the hub refuses us), Format when the answer is not a hub's.
HubListing list_repository(const ModelSpec& spec, const FetchOptions& options);

// The URL of a file at exactly this commit.
std::string url_of(const ModelSpec& spec, const std::string& commit, const std::string& path);

// $HF_TOKEN, for an hf hub that is reached by TLS or on this machine; else empty. It is never written anywhere.
std::string token_for(const ModelSpec& spec);

// The next step after a refusal: what people usually forgot.
std::string hub_hint(const ModelSpec& spec);

}  // namespace sealift::packager
