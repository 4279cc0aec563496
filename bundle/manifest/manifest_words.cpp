// SPDX-License-Identifier: Apache-2.0
// Names the kinds and encodings that manifest.hpp declares; see manifest_words.hpp.
#include "bundle/manifest/manifest_words.hpp"

namespace sealift::bundle {

std::string name_of(EntryKind kind) {
  return detail::enum_name(detail::kKindNames, kind);
}
std::string name_of(Encoding encoding) {
  return detail::enum_name(detail::kEncodingNames, encoding);
}
std::string name_of(WheelBuild build) {
  return detail::enum_name(detail::kBuildNames, build);
}

}  // namespace sealift::bundle
