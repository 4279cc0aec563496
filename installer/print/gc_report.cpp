// SPDX-License-Identifier: Apache-2.0
// Bytes are also printed in full, since an operator compares them with what df says afterwards.
#include "installer/print/gc_report.hpp"

#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

bundle::Json json_of(const Cleanup& cleanup, const GcOptions& options) {
  bundle::Json kept = bundle::Json::array();
  for (const Cleanup::Kept& generation : cleanup.kept)
    kept.push_back({{"generation", generation.number}, {"why", generation.why}});
  return {{"prefix", options.prefix.folder().string()},
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
         std::to_string(cleanup.bytes) + " bytes (" + bundle::human_size(cleanup.bytes) + ")\n";
}

}  // namespace sealift::installer
