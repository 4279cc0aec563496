// SPDX-License-Identifier: Apache-2.0
// Our zip reader agrees with Python's on honest archives and survives damage. What it refuses is tests/hostile's
// business.
#include "sealift/bundle/archive/zip.hpp"

#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

namespace {

MemorySource zip_of(const std::string& bytes) {
  const ByteView view = as_bytes(bytes);
  return {Bytes(view.begin(), view.end()), "the-zip"};
}

std::map<std::string, std::string> unzip(const std::string& bytes) {
  MemorySource source = zip_of(bytes);
  ZipReader zip(source);
  std::map<std::string, std::string> files;
  for (const ZipMember& member : zip.members()) files[member.name] = zip.extract_text(member, 1 << 20);
  return files;
}

}  // namespace

TEST_CASE("stored and deflated members read back, folders are left out") {
  const std::string text(100000, 'a');
  const auto files = unzip(make_zip({{.name = "a/", .unix_mode = 0040755},
                                     {.name = "a/x", .bytes = "hello"},
                                     {.name = "b", .bytes = text, .deflated = true},
                                     {.name = "empty"}}));
  CHECK(files == std::map<std::string, std::string>{{"a/x", "hello"}, {"b", text}, {"empty", ""}});
  CHECK(unzip(make_zip({})).empty());
}

TEST_CASE("a folder's own header is checked with the file behind it, and at once where there is none") {
  const ZipItem good{.name = "a/", .unix_mode = 0040755}, bad{.name = "a/", .unix_mode = 0040755, .local_name = "b/"};
  const ZipItem file{.name = "x", .bytes = "hello"};
  const std::string before = make_zip({file, bad, {.name = "y", .bytes = "y"}});
  MemorySource source = zip_of(before);
  ZipReader zip(source);
  CHECK(zip.extract_text(zip.members().at(0), 10) == "hello");
  CHECK_REFUSED(zip.extract_text(zip.members().at(1), 10), Format, "directory and member disagree");
  CHECK_REFUSED(unzip(make_zip({file, bad})), Format, "directory and member disagree");
  CHECK_REFUSED(unzip(make_zip({good, bad})), Format, "");
  CHECK(unzip(make_zip({good, file})).size() == 1);
}

TEST_CASE("a folder that a tool has compressed like a file is a folder, if nothing else is in it") {
  const auto folder = [](const std::string& deflated) {  // stored, but for what its headers say
    return ZipItem{.name = "a/", .bytes = deflated, .unix_mode = 0040755, .crc32 = 0, .claimed_size = 0, .method = 8};
  };
  const ZipItem file{.name = "a/x", .bytes = "hello"};
  const std::string nothing("\3\0", 2);
  CHECK(nothing == zip_format::deflate_raw(""));
  CHECK(unzip(make_zip({folder(nothing), file})).size() == 1);
  CHECK(unzip(make_zip({file, folder(nothing)})).size() == 1);
  for (const std::string& other : {std::string("\3\1", 2), std::string("\0\3", 2), std::string("\3\0\0", 3)})
    CHECK_REFUSED(unzip(make_zip({folder(other), file})), Format, "a folder has bytes");
  CHECK_REFUSED(unzip(make_zip({{.name = "a/", .bytes = "x", .unix_mode = 0040755}, file})), Format,
                "a folder has bytes");
}

TEST_CASE("an archive may have a comment, which no reader can take for another archive") {
  const std::string zip = make_zip({{.name = "x", .bytes = "hello"}});
  const auto commented = [&](const std::string& comment) {
    std::string out = zip.substr(0, zip.size() - 2);
    zip_format::put(out, comment.size(), 2);
    return out + comment;
  };
  for (const std::string& comment : {std::string("built by our CI 4711"), std::string("x"), std::string(65535, 'x')})
    CHECK(unzip(commented(comment)).at("x") == "hello");
  CHECK_REFUSED(unzip(commented("built") + "x"), Format, "one zip directory and its comment");
  CHECK_REFUSED(unzip(commented("PK\5\6")), Format, "one zip directory and its comment");
  CHECK_REFUSED(unzip(commented(zip)), Format, "");
}

TEST_CASE("archives that Python writes are read, zip64 included") {
  const TempDir dir;
  const std::string script =
      "import zipfile\n"
      "with zipfile.ZipFile('" +
      (dir / "p.zip").string() +
      "', 'w', zipfile.ZIP_DEFLATED) as z:\n"
      "  z.writestr('a.py', 'x' * 5000)\n"
      "  with z.open('big', 'w', force_zip64=True) as f: f.write(b'y' * 70000)\n"
      "  for i in range(70000): z.writestr('n/%d' % i, b'')\n";
  write_file(dir / "make.py", script);
  REQUIRE(std::system(("python3 '" + (dir / "make.py").string() + "'").c_str()) == 0);
  FileSource source(dir / "p.zip");
  ZipReader zip(source);
  CHECK(zip.members().size() == 70002);
  CHECK(zip.extract_text(zip.members()[0], 5000) == std::string(5000, 'x'));
  CHECK(zip.extract_text(zip.members()[1], 70000) == std::string(70000, 'y'));
  CHECK_REFUSED(zip.extract_text(zip.members()[1], 69999), Format, "too large");
}

TEST_CASE("a local header may say its sizes twice, as Python before 3.11.4 does, if it says the same") {
  const auto zip_with = [](std::uint64_t size, std::uint64_t compressed) {
    ZipItem item{.name = "a", .bytes = "hello"};
    using sealift::test::zip_format::put;
    put(item.local_extra, 1, 2), put(item.local_extra, 16, 2);
    put(item.local_extra, size, 8), put(item.local_extra, compressed, 8);
    return make_zip({item});
  };
  CHECK(unzip(zip_with(5, 5)).at("a") == "hello");
  CHECK_REFUSED(unzip(zip_with(6, 5)), Format, "contradicts");
  CHECK_REFUSED(unzip(zip_with(5, 6)), Format, "contradicts");
}

TEST_CASE("found in a licence: output that just overflows a piece after all input was taken is not missed") {
  for (const std::size_t pieces : {1, 2, 8})
    for (const std::size_t more : {0, 1, 2, 257, 258, 300}) {
      CAPTURE(pieces);
      CAPTURE(more);
      const std::string text(pieces * (std::size_t{1} << 18) + more, 'x');
      MemorySource source = zip_of(make_zip({{.name = "a", .bytes = text, .deflated = true}}));
      ZipReader zip(source);
      CHECK((zip.extract_text(zip.members()[0], std::size_t{1} << 22) == text));
    }
}

TEST_CASE("what stands behind a deflate stream is seen to the byte, and every cut of one is too short") {
  // A member whose deflate stream is `stream`, and which claims to be `size` bytes long.
  const auto extract = [](const std::string& stream, std::uint64_t size) {
    MemorySource source = zip_of(make_zip({{.name = "a", .bytes = stream, .claimed_size = size, .method = 8}}));
    ZipReader zip(source);
    return zip.extract_text(zip.members().at(0), size);
  };
  const std::string piece(std::size_t{1} << 18, 'x');
  for (const std::string& text : {std::string("hello"), piece, piece + "y"}) {
    const std::string stream = sealift::test::zip_format::deflate_raw(text);
    CAPTURE(stream.size());
    CHECK_REFUSED(extract(stream, text.size()), Format, "the CRC-32 is wrong");  // that of the stream
    for (std::size_t more = 1; more <= 17; ++more)
      CHECK_REFUSED(extract(stream + std::string(more, '\0'), text.size()), Format, "bytes follow the deflate stream");
    for (std::size_t cut = 1; cut < stream.size(); ++cut)
      CHECK_REFUSED(extract(stream.substr(0, cut), cut), Format, "");
    CHECK_REFUSED(extract(stream.substr(0, stream.size() - 1), text.size()), Format, "the deflate stream is cut short");
  }
  CHECK_REFUSED(extract("\x07", 1), Format, "the deflate stream is damaged");
}

TEST_CASE("no prefix of an archive and no flipped bit in one makes the reader misbehave") {
  const std::string good =
      make_zip({{.name = "a", .bytes = std::string(300, 'q'), .deflated = true}, {.name = "b", .bytes = "stored"}});
  const auto truth = unzip(good);
  for (std::size_t size = 0; size < good.size(); ++size) CHECK_THROWS_AS(unzip(good.substr(0, size)), Error);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    try {
      for (const auto& [name, bytes] : unzip(bad))  // names and unused header fields may change, contents may not
        CHECK((bytes == truth.at("a") || bytes == truth.at("b")));
    } catch (const Error&) {
    }
  }
}
