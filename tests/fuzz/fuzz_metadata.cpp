// SPDX-License-Identifier: Apache-2.0
// The headers of a wheel's METADATA, as documents read them: never refused, always within bounds.
#include "packager/resolve/metadata_headers.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sealift;
using namespace sealift::test;

FUZZ(text) {
  const packager::MetadataHeaders headers(text);
  for (const char* field : {"Name", "License-File", "Requires-Dist", ""}) {
    const auto values = headers.all(field);
    must(values.size() <= packager::kMaxHeaders, "headers are bounded");
    for (const std::string& value : values) must(value.size() <= packager::kMaxHeaderValue, "values are bounded");
    must(headers.first(field) == (values.empty() ? "" : values.front()), "the first is one of all");
  }
}
