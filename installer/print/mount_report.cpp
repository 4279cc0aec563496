// SPDX-License-Identifier: Apache-2.0
// The text ends with the way back.
#include "installer/print/mount_report.hpp"

#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

bundle::Json json_of(const Mounted& mounted) {
  return {{"image", mounted.image.string()},
          {"folder", mounted.folder.string()},
          {"bundle", mounted.bundle.empty() ? bundle::Json() : bundle::Json(mounted.bundle)},
          {"digest", bundle::fingerprint_text(mounted.digest)},
          {"size", mounted.size},
          {"names", mounted.names},
          {"prefetched", mounted.prefetched},
          {"process", mounted.process}};
}

std::string text_of(const Mounted& mounted) {
  return "mounted " + mounted.image.string() + (mounted.bundle.empty() ? "" : ", the image of " + mounted.bundle) +
         "\n  on " + mounted.folder.string() + ", read only, " + std::to_string(mounted.names) +
         " names; each read is checked against " + bundle::fingerprint_text(mounted.digest) +
         "\n  to end it: sealift-install unmount " + mounted.folder.string() + "\n";
}

}  // namespace sealift::installer
