// SPDX-License-Identifier: Apache-2.0
// The text ends with what the file is good for.
#include "installer/print/image_report.hpp"

#include "installer/generations/generation_record.hpp"
#include "installer/host/mending.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

bundle::Json json_of(const MadeImage& made) {
  return {{"name", made.name},
          {"version", made.version},
          {"identity", made.identity.hex()},
          {"warnings", made.warnings},
          {"image", made.file.string()},
          {"carried", made.carried},
          {"digest", bundle::fingerprint_text(made.digest)},
          {"root", made.root ? bundle::Json(made.root->hex()) : bundle::Json()},
          {"size", made.size},
          {"bytes", made.bytes},
          {"files", made.files},
          {"folders", made.folders},
          {"links", made.links},
          {"mended", to_json(made.mended)}};
}

std::string text_of(const MadeImage& made) {
  std::string text = "wrote " + made.name + " version " + std::to_string(made.version) + " as one image\n  " +
                     made.file.string() + "  " + bundle::human_size(made.size) + ", of " +
                     bundle::human_size(made.bytes) + " in " + std::to_string(made.files) + " files, " +
                     std::to_string(made.folders) + " folders and " + std::to_string(made.links) + " links\n  " +
                     bundle::fingerprint_text(made.digest) + " names it: the digest of its chunk list beside it\n";
  if (made.root) text += "  " + made.root->hex() + " is the root hash of its hash tree beside it, for dm-verity\n";
  if (made.carried) text += "  it is the image that the bundle carries, byte for byte\n";
  if (!made.mended.empty())
    text += "  mended while it was read: " + text_of(made.mended) + "; replace what these lie on\n";
  return text;
}

}  // namespace sealift::installer
