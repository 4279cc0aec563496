// SPDX-License-Identifier: Apache-2.0
// Questions about contents that do not depend on their kind; see content.hpp.
#include "packager/content/content.hpp"

#include <fmt/format.h>

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// Why a file of this machine cannot be taken; empty when it can. A program's bytes are compared before anything is
// written, so its size says nothing new; data is hashed only while it is written, which may be hours later.
std::string fault_of(const Content& content, const fs::path& file) {
  std::error_code error;
  const std::uint64_t size = fs::file_size(file, error);
  if (error) return error.message();
  if (content.kind == Content::Kind::Program || size == content.size) return {};
  return fmt::format("{} bytes, not {}", size, content.size);
}

}  // namespace

fs::path file_of(const Content& content, const Cache& cache) {
  if (const auto* disk = std::get_if<FromDisk>(&content.origin)) return disk->file;
  return cache.path(content.sha256);
}

std::vector<Download> downloads_of(const std::vector<Content>& contents) {
  std::vector<Download> downloads;
  for (const Content& content : contents)
    if (const auto* server = std::get_if<FromServer>(&content.origin))
      downloads.push_back({.name = content.name,
                           .url = server->url,
                           .sha256 = content.sha256,
                           .size = content.size,
                           .bearer = server->bearer});
  return downloads;
}

void require_inputs(const std::vector<Content>& contents, const Cache& cache) {
  std::string changed;
  for (const Content& content : contents) {
    if (std::holds_alternative<FromLock>(content.origin) && !cache.contains(content.sha256))
      throw Error(ErrorCode::Missing, {.what = content.name + " that was locked is not in the cache",
                                       .where = cache.path(content.sha256).string(),
                                       .expected = "sha256 " + content.sha256.hex(),
                                       .next = "run sealift-pack lock again with the same --cache"});
    const auto* disk = std::get_if<FromDisk>(&content.origin);
    const std::string fault = disk == nullptr ? "" : fault_of(content, disk->file);
    if (!fault.empty()) changed += fmt::format("\n    {}: {}", disk->file.string(), fault);
  }
  if (!changed.empty())
    throw Error(ErrorCode::Missing, {.what = "files of this machine are not as they were locked",
                                     .got = changed,
                                     .next = "bring them back, or run sealift-pack lock again"});
}

}  // namespace sealift::packager
