// SPDX-License-Identifier: Apache-2.0
// Our tar reads back what it wrote and agrees with stock tar; tricks that stock tar knows are refused.
#include "sealift/bundle/tar.hpp"

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

Members sample() {
  return {{{.path = "lib", .type = TarType::Folder}, ""},
          {{.path = "lib/run", .size = 5, .executable = true}, "hello"},
          {{.path = "lib/link", .type = TarType::Link, .target = "run"}, ""},
          {{.path = "lib/" + std::string(150, 'n'), .size = 600}, std::string(600, 'b')},
          {{.path = "lib/far", .type = TarType::Link, .target = std::string(150, 'n')}, ""},
          {{.path = "empty"}, ""}};
}

// The archive with one header changed by `change`, and its checksum made right again.
std::string tampered(std::string bytes, std::size_t header, const std::function<void(char*)>& change) {
  sealift::bundle::detail::TarHeader raw;
  std::memcpy(raw.raw.data(), bytes.data() + header, kTarBlock);
  change(raw.raw.data());
  raw.put_octal(148, 7, raw.checksum());
  return bytes.replace(header, kTarBlock, raw.raw.data(), kTarBlock);
}

}  // namespace

TEST_CASE("a tar reads back as it was written, whatever the pieces") {
  for (const std::size_t step : {1, 100, 512, 513, 100000}) {
    const Members members = read_tar(make_tar(sample()), step);
    REQUIRE(members.size() == sample().size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      CHECK(members[i].first.path == sample()[i].first.path);
      CHECK(members[i].first.type == sample()[i].first.type);
      CHECK(members[i].first.executable == sample()[i].first.executable);
      CHECK(members[i].first.target == sample()[i].first.target);
      CHECK(members[i].second == sample()[i].second);
    }
  }
}

TEST_CASE("stock tar unpacks what we write") {
  const TempDir dir;
  write_file(dir / "a.tar", make_tar(sample()));
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

TEST_CASE("tar tricks are refused") {
  const std::string good = make_tar({{{.path = "file"}, "abc"}});
  const auto write = [](std::size_t offset, std::string_view text) {
    return [offset, text = std::string(text)](char* raw) { std::memcpy(raw + offset, text.data(), text.size()); };
  };
  struct Case {
    const char* name;
    std::string bytes;
    const char* reason;
  };
  const Case cases[] = {
      {"path that escapes", tampered(good, 0, write(0, std::string_view("../x\0", 5))), "not safe"},
      {"absolute path", tampered(good, 0, write(0, std::string_view("/abs\0", 5))), "not safe"},
      {"hard link", tampered(good, 0, write(156, "1")), "neither file"},
      {"device", tampered(good, 0, write(156, "3")), "neither file"},
      {"fifo", tampered(good, 0, write(156, "6")), "neither file"},
      {"GNU long name", tampered(good, 0, write(156, "L")), "neither file"},
      {"global pax header", tampered(good, 0, write(156, "g")), "neither file"},
      {"GNU base-256 size", tampered(good, 0, write(124, "\x80")), "not octal"},
      {"no ustar magic", tampered(good, 0, write(257, "xxxxx")), "not ustar"},
      {"split name", tampered(good, 0, write(345, "prefix")), "prefix"},
      {"folder with bytes", tampered(good, 0, write(156, "5")), "has bytes"},
      {"file with a link target", tampered(good, 0, write(157, "x")), "target"},
      {"link that escapes", make_tar({{{.path = "a/l", .type = TarType::Link, .target = "../../x"}, ""}}),
       "leaves the tree"},
      {"absolute link", make_tar({{{.path = "l", .type = TarType::Link, .target = "/etc/passwd"}, ""}}),
       "leaves the tree"},
      {"cut in a header", good.substr(0, 300), "not closed"},
      {"cut in the data", good.substr(0, 513), "not closed"},
      {"one zero block", good.substr(0, good.size() - 512), "not closed"},
      {"a member after the end", good + good, "follows the end"},
  };
  for (const Case& wrong : cases) {
    CAPTURE(std::string(wrong.name));
    CHECK_REFUSED(read_tar(wrong.bytes), Format, wrong.reason);
    CHECK_REFUSED(read_tar(wrong.bytes), Format, wrong.name[0] == 'c' ? "the archive" : "");
  }
  std::string checksum = good;
  checksum[0] ^= 1;
  CHECK_REFUSED(read_tar(checksum), Format, "checksum");
  std::string padding = good;
  padding[kTarBlock + 10] = 'x';
  CHECK_REFUSED(read_tar(padding), Format, "padding");
}

TEST_CASE("hostile pax records are refused") {
  const auto with_pax = [](const std::string& pax) {
    const auto header = sealift::bundle::detail::tar_header("pax", 'x', pax.size(), false, "");
    std::string bytes(header.raw.data(), kTarBlock);
    bytes += pax + std::string(tar_padding(pax.size()), '\0');
    return bytes + make_tar({{{.path = "file"}, "abc"}});
  };
  const auto record = sealift::bundle::detail::pax_record;
  CHECK(read_tar(with_pax(record("path", "other")))[0].first.path == "other");
  for (const std::string& bad :
       {record("path", "../x"), record("size", "99999999999999999999"), record("size", "-1"),
        record("GNU.sparse.size", "1"), record("path", "a") + record("path", "b"), std::string("999 path=x\n"),
        std::string("5 path=x\n"), std::string("x path=y\n"), std::string("11 path=abc"), std::string("=\n"),
        std::string(20000, 'x'), record("path", std::string("a\0b", 3))}) {
    CAPTURE(bad.substr(0, 30));
    CHECK_THROWS_AS(read_tar(with_pax(bad)), Error);
  }
}
