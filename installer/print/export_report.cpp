// SPDX-License-Identifier: Apache-2.0
// Text counts, since a model has many files; JSON has each of them.
#include "installer/print/export_report.hpp"

#include "installer/generations/generation_record.hpp"
#include "installer/host/mending.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

bundle::Json json_of(const Exported& exported) {
  bundle::Json folders = bundle::Json::array();
  for (const ExportedFolder& folder : exported.folders)
    folders.push_back({{"folder", folder.folder.string()},
                       {"written", folder.written},
                       {"there", folder.there},
                       {"absent", folder.absent},
                       {"patched", folder.patched},
                       {"bytes", folder.bytes}});
  return {{"name", exported.name},         {"version", exported.version},   {"identity", exported.identity.hex()},
          {"warnings", exported.warnings}, {"folders", std::move(folders)}, {"mended", to_json(exported.mended)}};
}

std::string text_of(const Exported& exported) {
  std::string text = "exported " + exported.name + " version " + std::to_string(exported.version) + "\n";
  for (const ExportedFolder& folder : exported.folders) {
    text += "  " + folder.folder.string() + "  " + std::to_string(folder.written.size()) + " file(s) written (" +
            bundle::human_size(folder.bytes) + "), " + std::to_string(folder.there.size()) + " were there\n";
    if (!folder.absent.empty())
      text += "    " + std::to_string(folder.absent.size()) +
              " more are not carried by this bundle; export them from the bundle that carries them\n";
    if (!folder.patched.empty())
      text += "    " + std::to_string(folder.patched.size()) +
              " wheel(s) are carried as patches and were left out; with --base BUNDLE, which has the older ones, they "
              "are made\n";
  }
  if (!exported.mended.empty())
    text += "  mended while it was read: " + text_of(exported.mended) + "; replace what these lie on\n";
  return text;
}

}  // namespace sealift::installer
