// SPDX-License-Identifier: Apache-2.0
// Ends with the next command, since the bundle now lies in two folders.
#include "installer/print/mend_report.hpp"

#include "installer/print/verification_report.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

bundle::Json json_of(const Mended& mended) {
  return {{"name", mended.name},
          {"version", mended.version},
          {"identity", mended.identity.hex()},
          {"warnings", mended.warnings},
          {"folder", mended.folder.empty() ? bundle::Json() : bundle::Json(mended.folder.string())},
          {"volumes", mended.volumes},
          {"bytes", mended.bytes},
          {"damage", json_of(mended.damage)}};
}

std::string text_of(const Mended& mended) {
  const std::string which = mended.name + " version " + std::to_string(mended.version);
  if (mended.volumes.empty()) return "every volume of " + which + " is whole; nothing was written\n";
  std::string text = "mended " + which + "\n  " + mended.damage.verdict() + "\n  " + mended.folder.string() + "  (" +
                     bundle::human_size(mended.bytes) + ", every byte verified)\n";
  for (const std::string& volume : mended.volumes) text += "    " + volume + "\n";
  return text + "  go on with    sealift-install apply " + mended.folder.string() + " --volumes BUNDLE\n";
}

}  // namespace sealift::installer
