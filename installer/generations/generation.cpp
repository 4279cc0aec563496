// SPDX-License-Identifier: Apache-2.0
// `current` is replaced by renaming another link over it, so it is never missing.
#include "installer/generations/generation.hpp"

#include <algorithm>
#include <charconv>

#include "installer/prefix/require_prefix.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr unsigned kMaxNumber = 1'000'000'000;  // so that there is a next one

std::optional<unsigned> number_of(const std::string& name) {
  unsigned number = 0;
  const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (fault != std::errc() || end != name.data() + name.size() || number > kMaxNumber ||
      Prefix::generation_name(number) != name)
    return std::nullopt;
  return number;
}

}  // namespace

std::vector<unsigned> numbers_in(const fs::path& folder) {
  std::vector<unsigned> numbers;
  std::error_code error;
  if (!fs::exists(folder, error)) return numbers;
  fs::directory_iterator names(folder, error);
  if (error) bundle::throw_errno("a folder of the prefix cannot be listed", folder, error.value());
  for (const fs::directory_entry& name : names)
    if (const std::optional<unsigned> number = number_of(name.path().filename().string())) numbers.push_back(*number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<unsigned> generation_numbers(const Prefix& prefix) {
  return numbers_in(prefix.generations());
}

std::optional<unsigned> current_generation(const Prefix& prefix) {
  std::error_code error;
  const fs::path target = fs::read_symlink(prefix.current(), error);
  if (error == std::errc::no_such_file_or_directory) return std::nullopt;
  const std::optional<unsigned> number = error ? std::nullopt : number_of(target.filename().string());
  if (!number || target.parent_path() != "generations")
    throw Error(ErrorCode::Conflict, {.what = "`current` is not what this program makes it",
                                      .where = prefix.current().string(),
                                      .expected = "a symbolic link to generations/NNNN",
                                      .got = error ? "no symbolic link" : target.string(),
                                      .next = "remove it, then: sealift-install switch N"});
  return number;
}

void require_generation(const Prefix& prefix, unsigned number) {
  require_prefix(prefix);
  std::string there;
  bool found = false;
  for (const unsigned candidate : generation_numbers(prefix)) {
    there += (there.empty() ? "" : ", ") + std::to_string(candidate);
    found = found || candidate == number;
  }
  if (!found)
    throw Error(ErrorCode::Missing, {.what = "there is no such generation",
                                     .where = prefix.generation(number).string(),
                                     .expected = there.empty() ? "a generation; there is none" : there,
                                     .got = std::to_string(number),
                                     .next = "see: sealift-install status"});
}

void publish_generation(const Prefix& prefix, unsigned number, const fs::path& built, Disk& disk) {
  disk.sync_all(built);
  disk.rename(built, prefix.generation(number));
  disk.sync_folder(prefix.generations());
}

void point_current_at(const Prefix& prefix, unsigned number, const fs::path& staging, Disk& disk) {
  // A run that was killed before it synced may have given the generation its name.
  disk.sync_folder(prefix.generations());
  const fs::path beside = staging / "current";
  disk.make_symlink("generations/" + Prefix::generation_name(number), beside);
  disk.rename(beside, prefix.current());
  disk.sync_folder(prefix.folder());
}

}  // namespace sealift::installer
