// SPDX-License-Identifier: Apache-2.0
// Names on disk need not be UTF-8, so all of them are made printable.
#include "installer/print/doctor_report.hpp"

#include <map>

#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::installer {

namespace {

constexpr std::size_t kShown = 25;

bundle::Json json_of(const std::vector<Deviation>& findings) {
  bundle::Json list = bundle::Json::array();
  for (const Deviation& finding : findings) {
    bundle::Json paths = bundle::Json::array();
    for (const std::string& path : finding.paths) paths.push_back(bundle::SafePath::printable(path));
    list.push_back({{"kind", std::string(name_of(finding.kind))},
                    {"paths", std::move(paths)},
                    {"expected", bundle::SafePath::printable(finding.expected)},
                    {"got", bundle::SafePath::printable(finding.got)}});
  }
  return list;
}

std::string text_of(const std::vector<Deviation>& findings) {
  std::string text;
  std::map<Deviation::Kind, std::size_t> counts;
  for (const Deviation& finding : findings) {
    if (++counts[finding.kind] > kShown) continue;
    const std::string kind(name_of(finding.kind));
    text += kind + std::string(9 - kind.size(), ' ') + bundle::SafePath::printable(finding.paths.front()) + "\n";
    for (std::size_t i = 1; i < finding.paths.size(); ++i)
      text += "    also   " + bundle::SafePath::printable(finding.paths[i]) + "\n";
    text += "    expected " + bundle::SafePath::printable(finding.expected) + "\n    got      " +
            bundle::SafePath::printable(finding.got) + "\n";
  }
  for (const auto& [kind, count] : counts)
    if (count > kShown)
      text += "and " + std::to_string(count - kShown) + " more that are " + std::string(name_of(kind)) +
              "; --json lists all\n";
  return text;
}

std::uint64_t copied_bytes(const Checkup& checkup) {
  std::uint64_t bytes = 0;
  for (const CopiedFile& copy : checkup.copies) bytes += copy.size;
  return bytes;
}

std::string text_of_copies(const Checkup& checkup, const DoctorOptions& options) {
  const std::string many =
      std::to_string(checkup.copies.size()) + " files, " + bundle::human_size(copied_bytes(checkup));
  if (checkup.relinked && checkup.relinked->without_links)
    return "  copies      " + many + ": this file system has no hard links, so generations take their own space\n";
  if (checkup.relinked)
    return "  linked      " + std::to_string(checkup.relinked->files) + " files of generations to the store's again, " +
           bundle::human_size(checkup.relinked->bytes) + " saved\n";
  if (checkup.copies.empty()) return {};
  return "  copies      " + many +
         " of generations take space of their own: the prefix was copied without its hard links (cp -r; rsync without "
         "-H), or the file system has none\n              next: sealift-install doctor --relink --prefix " +
         options.prefix.folder().string() + "\n";
}

}  // namespace

bundle::Json json_of(const Checkup& checkup, const DoctorOptions& options) {
  bundle::Json json = {{"prefix", options.prefix.folder().string()},
                       {"healthy", checkup.findings.empty()},
                       {"generations", checkup.generations},
                       {"items", checkup.items},
                       {"signed_items", checkup.signed_items},
                       {"files", checkup.files},
                       {"hashed_bytes", checkup.bytes},
                       {"findings", json_of(checkup.findings)},
                       {"repaired", json_of(checkup.repaired)},
                       {"notes", checkup.notes},
                       {"copied_files", checkup.copies.size()},
                       {"copied_bytes", copied_bytes(checkup)},
                       {"relinked_files", checkup.relinked ? checkup.relinked->files : 0},
                       {"libraries", bundle::Json()}};
  if (checkup.libraries)
    json["libraries"] = {{"inside", checkup.libraries->inside},
                         {"host", checkup.libraries->allowed},
                         {"outside", checkup.libraries->outside}};
  return json;
}

std::string text_of(const Checkup& checkup, const DoctorOptions& options) {
  std::string text;
  if (!checkup.repaired.empty()) text += "put right:\n" + text_of(checkup.repaired);
  if (!checkup.findings.empty()) text += "wrong:\n" + text_of(checkup.findings);
  text += (checkup.findings.empty() ? "healthy: " : std::to_string(checkup.findings.size()) + " finding(s) in ") +
          options.prefix.folder().string() + "\n  looked at   " + std::to_string(checkup.generations) +
          " generation(s), " + std::to_string(checkup.items) + " store items, " + std::to_string(checkup.files) +
          " files, " + bundle::human_size(checkup.bytes) + " hashed\n  compared with " +
          (options.repair.empty()
               ? "the records that were made when they were unpacked\n"
               : "the signed bundle (" + std::to_string(checkup.signed_items) + " items), others with their records\n");
  if (checkup.libraries && checkup.libraries->fault.empty())
    text += "  libraries   " + std::to_string(checkup.libraries->inside.size()) + " of the generation, " +
            std::to_string(checkup.libraries->allowed.size()) + " of the host's C library and driver, " +
            std::to_string(checkup.libraries->outside.size()) + " from elsewhere\n";
  text += text_of_copies(checkup, options);
  for (const std::string& note : checkup.notes) text += "  note        " + note + "\n";
  return text;
}

}  // namespace sealift::installer
