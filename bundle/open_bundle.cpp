// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/open_bundle.hpp"

#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "bundle/payload/changed_names.hpp"
#include "bundle/payload/left_by_systems.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_without_seal(const fs::path& folder) {
  const std::optional<ChangedName> instead = instead_of_bundle(folder);
  throw Error(ErrorCode::Missing, {.what = "there is no seal here",
                                   .where = folder.string(),
                                   .expected = "a file named NAME-VERSION.seal",
                                   .got = instead ? instead->got : "",
                                   .next = instead ? instead->next : "name the bundle's folder"});
}

// Of two seals: one of them may be a second copy of the other.
[[noreturn]] void refuse_two_seals(const fs::path& folder, const std::string& one, const std::string& other) {
  std::string next = "name the seal file instead of the folder";
  for (const auto& [copy, own] : {std::pair(one, other), std::pair(other, one)})
    if (original_name(copy) == own)
      next = "move " + SafePath::printable(copy) + " away, which is a second copy of " + SafePath::printable(own) +
             " by its name";
  throw Error(ErrorCode::Conflict, {.what = "the folder holds more than one seal",
                                    .where = folder.string(),
                                    .got = SafePath::printable(one) + " and " + SafePath::printable(other),
                                    .next = next});
}

// The seal's path, its contents not read yet.
OpenBundle find_seal(const std::filesystem::path& folder_or_seal) {
  std::error_code error;
  if (fs::is_regular_file(folder_or_seal, error) && folder_or_seal.extension() == kSealSuffix)
    return {.folder = folder_or_seal.has_parent_path() ? folder_or_seal.parent_path() : ".",
            .seal_path = folder_or_seal,
            .seal = {}};
  OpenBundle found;
  found.folder = folder_or_seal;
  if (fs::is_regular_file(folder_or_seal, error)) refuse_without_seal(folder_or_seal);
  fs::directory_iterator files(folder_or_seal, error);
  if (error) throw_errno("a bundle's folder cannot be opened", folder_or_seal, error.value());
  for (const fs::directory_entry& file : files) {
    if (file.path().extension() != kSealSuffix) continue;
    const std::string name = file.path().filename().string();
    if (is_left_by_system(name)) continue;
    if (!found.seal_path.empty()) refuse_two_seals(folder_or_seal, found.seal_path.filename().string(), name);
    found.seal_path = file.path();
  }
  if (found.seal_path.empty()) refuse_without_seal(folder_or_seal);
  return found;
}

}  // namespace

OpenBundle open(const std::filesystem::path& folder_or_seal) {
  OpenBundle opened = find_seal(folder_or_seal);
  opened.seal = parse_seal(read_text(opened.seal_path, kMaxSealSize), opened.seal_path.string());
  return opened;
}

}  // namespace sealift::bundle
