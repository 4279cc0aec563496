// SPDX-License-Identifier: Apache-2.0
// One spelling of a fingerprint, bundle::fingerprint_text, in both forms.
#include "installer/print/signers.hpp"

#include "sealift/bundle/core/human_text.hpp"

namespace sealift::installer {

bundle::Json fingerprints(const std::vector<bundle::Digest>& digests) {
  bundle::Json list = bundle::Json::array();
  for (const bundle::Digest& digest : digests) list.push_back(bundle::fingerprint_text(digest));
  return list;
}

std::string text_of(const std::vector<bundle::Digest>& digests) {
  std::string text;
  for (const bundle::Digest& digest : digests) text += (text.empty() ? "" : ", ") + bundle::fingerprint_text(digest);
  return text;
}

bundle::Json json_of(const bundle::RootName& root) {
  return {{"version", root.version}, {"fingerprint", bundle::fingerprint_text(root.fingerprint)}};
}

std::string text_of(const bundle::RootName& root) {
  return std::to_string(root.version) + ", " + bundle::fingerprint_text(root.fingerprint);
}

}  // namespace sealift::installer
