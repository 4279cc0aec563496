// SPDX-License-Identifier: Apache-2.0
// Makes the digest list and compares it.
// See digests.hpp.
// Texts of the report stand in it as ASCII JSON strings, so that a site's name cannot add a line.
#include "verify/report/digests.hpp"

#include "verify/report/folder.hpp"
#include "verify/verdict/json.hpp"
#include "verify/wording/statement.hpp"

#include <sealift/train/checkpoint/digest.hpp>

namespace sealift::verify {
namespace {

namespace fs = std::filesystem;

std::string comment(const std::string& name, const std::string& value) {
  return "# " + name + ": " + nlohmann::json(value).dump(-1, ' ', true) + "\n";
}

/// The list whose comment on the verdict is `said` of it.
template <class Said>
std::string list_of(const fs::path& folder, const Said& said) {
  const auto verdict = read_report(folder / "report.json");
  auto list = std::string("# report of sealift-verify, format 1; check with: sha256sum -c report.digests\n") +
              comment("site", verdict.site) + comment("verdict", said(verdict)) +
              comment("level", name_of(verdict.level)) + comment("finished", verdict.finished) +
              comment("manifest", verdict.bundle ? verdict.bundle->manifest_sha256 : "");
  for (const auto* name : kReportFiles) list += sha256_of(read_bounded(folder / name)) + "  " + name + "\n";
  return list;
}

}  // namespace

std::string sha256_of(const std::string& bytes) {
  train::Sha256 digest;
  digest.update(bytes.data(), bytes.size());
  return digest.hex();
}

std::string digest_list(const fs::path& folder) {
  return list_of(folder, [](const Verdict& verdict) { return statement(verdict, Language::English); });
}

std::optional<std::string> foreign_page(const fs::path& folder) {
  const auto pages = pages_of(read_report(folder / "report.json"));
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (!pages[i].empty() && read_bounded(folder / kReportFiles[i]) != pages[i]) return kReportFiles[i];
  }
  return std::nullopt;
}

std::optional<std::string> difference_from_digests(const std::string& list, const fs::path& folder) {
  for (const auto* name : kReportFiles) {
    const auto line = sha256_of(read_bounded(folder / name)) + "  " + name + "\n";
    if (list.find("\n" + line) == list.npos) return std::string(name) + " is not the file that was signed";
  }
  // Equal digests, and still not the one spelling: what it says of the report was changed, or lines were added.
  // Lists of before have the bare outcome.
  const auto bare = [](const Verdict& verdict) { return name_of(outcome_of(verdict)); };
  if (list != digest_list(folder) && list != list_of(folder, bare))
    return std::string(kDigestsFile) + " is not the list that this report gives";
  return std::nullopt;
}

}  // namespace sealift::verify
