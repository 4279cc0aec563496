// SPDX-License-Identifier: Apache-2.0
// The members of an archive that is accepted have safe names, stand once, and give as many bytes as they claim; no byte
// before the directory belongs to nobody.
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/hostile/read_hostile.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

FUZZ(text) {
  accepted([&] {
    MemorySource source = source_of(text, "zip");
    ZipReader zip(source);
    std::map<std::string, std::uint64_t> names;
    for (const ZipMember& member : zip.members()) {
      must(SafePath::parse_published(member.name, "").text() == member.name, "a name is safe");
      must(names.emplace(member.name, member.size).second, "a name stands once");
      if (member.size > (1 << 24)) continue;  // bounded by what deflate can hold, but no use of a fuzzer's time
      const std::string bytes = zip.extract_text(member, 1 << 24);
      must(bytes.size() == member.size, "a member has its size");
      must(zip.start_of(member, 8) == bytes.substr(0, 8), "a member starts as it goes on");
    }
  });
}
