// SPDX-License-Identifier: Apache-2.0
// Our tar reads back what it wrote and agrees with stock tar. What it refuses is tests/hostile's business.
#include "sealift/bundle/archive/tar.hpp"

#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

namespace {

using Members = std::vector<std::pair<TarMember, std::string>>;

Members read_tar(const std::string& bytes, std::size_t step = 100) {
  Members members;
  TarReader reader({.begin = [&](const TarMember& member) { members.emplace_back(member, ""); },
                    .data = [&](ByteView piece) { members.back().second.append(as_text(piece)); }},
                   "the archive");
  for (std::size_t i = 0; i < bytes.size(); i += step) reader.feed(as_bytes(std::string_view(bytes).substr(i, step)));
  reader.finish();
  return members;
}

Members sample_members() {
  return {{{.path = "lib", .type = TarType::Folder}, ""},
          {{.path = "lib/run", .size = 5, .executable = true}, "hello"},
          {{.path = "lib/link", .type = TarType::Link, .target = "run"}, ""},
          {{.path = "lib/" + std::string(150, 'n'), .size = 600}, std::string(600, 'b')},
          {{.path = "lib/far", .type = TarType::Link, .target = std::string(150, 'n')}, ""},
          {{.path = "empty"}, ""}};
}

}  // namespace

TEST_CASE("a tar reads back as it was written, whatever the pieces") {
  for (const std::size_t step : {1, 100, 512, 513, 100000}) {
    const Members members = read_tar(make_tar(sample_members()), step);
    REQUIRE(members.size() == sample_members().size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      CHECK(members[i].first.path == sample_members()[i].first.path);
      CHECK(members[i].first.type == sample_members()[i].first.type);
      CHECK(members[i].first.executable == sample_members()[i].first.executable);
      CHECK(members[i].first.target == sample_members()[i].first.target);
      CHECK(members[i].second == sample_members()[i].second);
    }
  }
}

TEST_CASE("stock tar unpacks what we write") {
  const TempDir dir;
  write_file(dir / "a.tar", make_tar(sample_members()));
  REQUIRE(std::system(("cd '" + dir.path().string() + "' && tar xf a.tar").c_str()) == 0);
  CHECK(read_file(dir / "lib/run") == "hello");
  CHECK(read_file(dir.path() / "lib" / std::string(150, 'n')) == std::string(600, 'b'));
  CHECK(std::filesystem::read_symlink(dir / "lib/far") == std::string(150, 'n'));
  CHECK((std::filesystem::status(dir / "lib/run").permissions() & std::filesystem::perms::owner_exec) !=
        std::filesystem::perms::none);
}

TEST_CASE("sizes above 8 GiB get a pax record") {
  const std::string header = write_tar_header({.path = "big", .size = std::uint64_t{10} << 30});
  CHECK(header.size() == 3 * kTarBlock);
  CHECK(header.find("20 size=10737418240\n") != std::string::npos);
  std::uint64_t size = 0;
  TarReader reader({.begin = [&](const TarMember& member) { size = member.size; }, .data = [](ByteView) {}}, "x");
  reader.feed(as_bytes(header));
  CHECK(size == std::uint64_t{10} << 30);
}
