// SPDX-License-Identifier: Apache-2.0
// What gc prints: what goes, what stays and why. A dry run prints the same.
// Bytes are whole, since an operator compares them with what df says afterwards.
#include "installer/verbs/gc.hpp"
#include "installer/host/progress.hpp"

namespace sealift::installer {

using bundle::Json;

Json json_of(const Cleanup& cleanup, const GcOptions& options) {
  Json kept = Json::array();
  for (const Cleanup::Kept& generation : cleanup.kept)
    kept.push_back({{"generation", generation.number}, {"why", generation.why}});
  return {{"prefix", options.prefix.root().string()},
          {"dry_run", options.dry_run},
          {"removed", cleanup.generations},
          {"removed_items", cleanup.items},
          {"removed_files", cleanup.files},
          {"freed_bytes", cleanup.bytes},
          {"kept", std::move(kept)},
          {"warnings", cleanup.warnings}};
}

std::string text_of(const Cleanup& cleanup, const GcOptions& options) {
  const std::string verb = options.dry_run ? "would remove" : "removed";
  std::string text;
  for (const Cleanup::Kept& generation : cleanup.kept)
    text += "  " + Prefix::generation_name(generation.number) + "  stays: " + generation.why + "\n";
  for (const unsigned number : cleanup.generations)
    text += "  " + Prefix::generation_name(number) + "  " + (options.dry_run ? "goes" : "is gone") + "\n";
  if (cleanup.generations.empty() && cleanup.items.empty()) return text + "nothing to remove\n";
  return text + verb + " " + std::to_string(cleanup.generations.size()) + " generation(s) and " +
         std::to_string(cleanup.items.size()) + " store item(s): " + std::to_string(cleanup.files) + " names, " +
         std::to_string(cleanup.bytes) + " bytes (" + human_bytes(cleanup.bytes) + ")\n";
}

}  // namespace sealift::installer
