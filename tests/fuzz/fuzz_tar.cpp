// SPDX-License-Identifier: Apache-2.0
// An archive that is accepted is, byte for byte, what our writer would write; its paths are safe, each stands once, and
// no link leads out. The pieces it comes in do not matter.
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/hostile/read_hostile.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

FUZZ(text) {
  Listing whole, pieces;
  std::string written;
  std::map<std::string, std::string> links;
  const bool good = accepted([&] {
    std::uint64_t size = 0;
    TarReader reader({.begin =
                          [&](const TarMember& member) {
                            written.append(tar_padding(size), '\0').append(write_tar_header(member));
                            size = member.size;
                            must(SafePath::parse(member.path, "").text() == member.path, "a path is safe");
                            if (member.type == TarType::Link) links.emplace(member.path, member.target);
                          },
                      .data = [&](ByteView piece) { written.append(as_text(piece)); }},
                     "tar");
    reader.feed(as_bytes(text));
    reader.finish();
    written.append(tar_padding(size), '\0').append(tar_end());
  });
  must(accepted([&] { pieces = list_tar(text, "tar", 7); }) == good, "the pieces do not matter");
  if (!good) return;
  must(written == text, "an archive has one spelling");
  must(link_that_leads_out(links) == nullptr, "no link leads out");
  std::map<std::string, std::string> names(pieces.begin(), pieces.end());
  must(names.size() == pieces.size(), "a path stands once");
}
