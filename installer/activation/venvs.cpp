// SPDX-License-Identifier: Apache-2.0
// A name is added before an older one is removed, so that at no moment is the environment unknown.
#include "installer/activation/venvs.hpp"

#include "installer/prefix/small_files.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxPath = 1 << 14;
constexpr std::size_t kDigest = 16;  // hexadecimal digits

std::string digest_of(const fs::path& folder) {
  return bundle::sha256(bundle::as_bytes(folder.string())).hex().substr(0, kDigest);
}

// 3 for "0003-0123456789abcdef"; 0 for any other name.
unsigned number_of(const std::string& name) {
  const std::size_t dash = name.find('-');
  if (dash < 4 || dash > 9 || name.size() != dash + 1 + kDigest) return 0;
  if (name.find_first_not_of("0123456789") != dash) return 0;
  return static_cast<unsigned>(std::stoul(name.substr(0, dash)));
}

bool counts(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "pyvenv.cfg", ignored) || !fs::exists(folder.parent_path(), ignored);
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator there(folder, error), end; !error && there != end; there.increment(error))
    names.push_back(there->path().filename().string());
  return names;
}

}  // namespace

KnownVenvs known_venvs(const Prefix& prefix) {
  KnownVenvs known;
  for (const std::string& name : names_in(prefix.venvs())) {
    const unsigned number = number_of(name);
    if (number == 0) continue;
    const std::string text = bundle::read_text(prefix.venvs() / name, kMaxPath);
    const fs::path folder = text.substr(0, text.find('\n'));
    if (counts(folder)) known.emplace(number, folder);
  }
  return known;
}

void remember_venv(const Prefix& prefix, unsigned number, const fs::path& folder, Disk& disk) {
  const std::string name = Prefix::generation_name(number) + "-" + digest_of(folder);
  replace_small_files({{prefix.venvs() / name, folder.string() + "\n"}}, prefix, prefix.staging(), disk);
  for (const std::string& other : names_in(prefix.venvs()))
    if (number_of(other) != 0 && other != name && other.ends_with("-" + digest_of(folder)))
      disk.remove_tree(prefix.venvs() / other);
}

}  // namespace sealift::installer
