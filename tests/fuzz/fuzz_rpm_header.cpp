// SPDX-License-Identifier: Apache-2.0
// A package whose headers are accepted has a name, and no more text than its reader allows.
#include "packager/rpm/rpm_header.hpp"

#include "tests/fuzz/fuzz.hpp"

using namespace sealift;
using namespace sealift::test;

FUZZ(text) {
  accepted([&] {
    const bundle::ByteView view = bundle::as_bytes(text);
    bundle::MemorySource source(bundle::Bytes(view.begin(), view.end()), "x.rpm");
    const packager::RpmHeader header = packager::read_rpm_header(source);
    must(!header.name.empty() && !header.version.empty() && !header.arch.empty(), "a package has a name");
    must(header.licence.size() <= 65536 && header.vendor.size() <= 65536, "no text is longer than it may be");
  });
}
