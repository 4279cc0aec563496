// SPDX-License-Identifier: Apache-2.0
// Only members of the .dist-info are considered, by their names in the wheel: a License-File that points
// anywhere else finds nothing there.
#include "packager/documents/licence_files.hpp"

#include <algorithm>

#include "bundle/core/unicode.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxName = 120;
constexpr std::size_t kMaxLeftOut = 20;

bool named_as_licence(std::string_view path) {
  const std::string name = bundle::case_folded(path.substr(path.rfind('/') + 1));
  return name.starts_with("license") || name.starts_with("licence") || name.starts_with("copying") ||
         name.starts_with("notice");
}

}  // namespace

std::string PlainNames::take(std::string_view text, std::string_view suffix) {
  std::string name(text.substr(0, kMaxName));
  for (char& c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && c != '.' && c != '_' && c != '-' && c != '+') c = '_';
  }
  if (name.empty() || name.front() == '.' || name.front() == '-') name.insert(0, "_");
  const auto whole = [&] { return name.ends_with(suffix) ? name : name + std::string(suffix); };
  while (!taken_.insert(bundle::case_folded(whole())).second) {
    if (!suffix.empty() && name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    name += "_";
  }
  return whole();
}

CollectedLicences collect_licences(bundle::Wheel& wheel, const WheelFacts& facts, const fs::path& folder) {
  CollectedLicences found;
  PlainNames names;
  std::uint64_t bytes = 0;
  // A wheel may name ten thousand; a reader needs to know that something is wrong, not each of them.
  const auto leave_out = [&found](std::string_view path, const char* why) {
    if (found.left_out.size() < kMaxLeftOut) found.left_out.push_back(shown(path) + ": " + why);
  };
  std::set<std::string> wanted(facts.licence_files.begin(), facts.licence_files.end());
  for (const bundle::WheelFile& file : wheel.files()) {
    const std::string prefix = wheel.dist_info() + "/";
    if (file.scheme != bundle::Scheme::SitePackages || !file.path.starts_with(prefix)) continue;
    std::string path = file.path.substr(prefix.size());
    // PEP 639 puts them into licenses/, older tools beside METADATA.
    const bool beside = wanted.erase(path) > 0;
    if (path.starts_with("licenses/")) path.erase(0, 9);
    const bool listed = wanted.erase(path) > 0 || beside;
    if (!listed && !named_as_licence(path)) continue;
    if (file.member.size > kMaxLicenceFile || file.member.size > kMaxLicenceBytes - bytes) {
      leave_out(path, "too large");
      continue;
    }
    if (found.files.size() == kMaxLicenceFiles) {
      leave_out(path, "too many files");
      continue;
    }
    std::string text;
    wheel.extract(file, [&text](bundle::ByteView piece) { text.append(bundle::as_text(piece)); });
    bytes += text.size();
    fs::create_directories(folder);
    found.files.push_back(names.take(path, ".txt"));
    bundle::write_text(folder / found.files.back(), text);
  }
  for (const std::string& missing : wanted) leave_out(missing, "not in the wheel");
  return found;
}

}  // namespace sealift::packager
