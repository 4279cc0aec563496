// SPDX-License-Identifier: Apache-2.0
// Rows W01 to W09: zip archives that two programs would read differently, or that are more than they seem.
#pragma once

#include "bundle/archive/zip_directory.hpp"
#include "tests/support/hostile/hostile_case.hpp"
#include "tests/support/tiny_wheel.hpp"

namespace sealift::test {

namespace zip_format {

inline std::string zip_extra(std::uint16_t id, const std::string& body) {
  std::string out;
  put(out, id, 2), put(out, body.size(), 2);
  return out + body;
}
inline std::string zip_numbers(std::initializer_list<std::pair<std::uint64_t, int>> numbers) {
  std::string out;
  for (const auto& [value, size] : numbers) put(out, value, size);
  return out;
}
// An end of directory.
inline std::string zip_end(std::uint64_t count, std::uint64_t size, std::uint64_t offset,
                           const std::string& comment = {}) {
  return zip_numbers({{0x06054b50, 4}, {0, 4}, {count, 2}, {count, 2}, {size, 4}, {offset, 4}, {comment.size(), 2}}) +
         comment;
}
// A zip64 end of directory at `at`, and its locator.
inline std::string zip_end64(std::uint64_t at, std::uint64_t count, std::uint64_t size, std::uint64_t offset) {
  return zip_numbers(
             {{0x06064b50, 4}, {44, 8}, {45, 2}, {45, 2}, {0, 8}, {count, 8}, {count, 8}, {size, 8}, {offset, 8}}) +
         zip_numbers({{0x07064b50, 4}, {0, 4}, {at, 8}, {1, 4}});
}
inline std::uint32_t crc_of(const std::string& bytes) {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

}  // namespace zip_format

// Where the directory of a zip that make_zip made begins.
inline std::size_t directory_of(const std::string& zip) {
  std::size_t offset = 0;
  for (int i = 4; i-- > 0;)
    offset = offset << 8 | static_cast<unsigned char>(zip[zip.size() - 6 + static_cast<std::size_t>(i)]);
  return offset;
}
inline std::string without_end(const std::string& zip) {
  return zip.substr(0, zip.size() - 22);
}

inline HostileCases hostile_zips() {
  using namespace zip_format;
  const ZipItem good{.name = "a", .bytes = "hello hello hello hello", .deflated = true};
  const ZipItem stored{.name = "a", .bytes = "hello"};
  const std::string plain = make_zip({good});
  const std::size_t directory = directory_of(plain), size = plain.size() - 22 - directory;
  HostileCases cases;
  const auto add = [&](const char* row, const std::string& name, std::string bytes, const char* word) {
    cases.push_back({.row = row, .name = name, .bytes = std::move(bytes), .word = word, .file = "the.zip"});
  };
  const auto with = [&](const char* row, const std::string& name, const ZipItem& base, auto change, const char* word) {
    ZipItem item = base;
    change(item);
    add(row, name, make_zip({item}), word);
  };
  const auto change = [&](const char* row, const std::string& name, auto action, const char* word) {
    with(row, name, good, action, word);
  };

  add("W01", "hidden-member", make_zip({good, {.name = "hidden", .bytes = "x", .only_local = true}}), "no member");
  add("W01", "hidden-member-first", make_zip({{.name = "hidden", .bytes = "x", .only_local = true}, good}),
      "before its first");
  add("W01", "directory-line-without-member", make_zip({good, {.name = "ghost", .only_central = true}}), "overlap");
  add("W01", "directory-line-into-a-member",
      make_zip({good, {.name = "ghost", .header_offset = 10, .only_central = true}}), "overlap");
  add("W01", "bytes-between-members", make_zip({stored, {.name = "b", .bytes = "x", .before = "junk"}}), "no member");
  add(
      "W01", "bytes-before-the-directory",
      [&] {
        const std::string zip = make_zip({stored});
        const std::size_t at = directory_of(zip);
        return zip.substr(0, at) + "junk" + zip.substr(at, zip.size() - 22 - at) +
               zip_end(1, zip.size() - 22 - at, at + 4);
      }(),
      "no member");
  add("W02", "name-twice", make_zip({good, good}), "stands twice");
  add("W02", "name-twice-other-bytes", make_zip({good, {.name = "a", .bytes = "other"}}), "stands twice");
  add("W02", "file-and-folder", make_zip({{.name = "a/", .unix_mode = 0040755}, good}), "stands twice");
  add("W02", "file-below-a-file", make_zip({good, {.name = "a/b", .bytes = "x"}}), "not a folder");
  change(
      "W03", "two-names", [](ZipItem& i) { i.local_name = "b"; }, "disagree");
  change(
      "W03", "two-names-by-length", [](ZipItem& i) { i.local_name = "ab"; }, "disagree");
  change(
      "W03", "two-crcs", [](ZipItem& i) { i.local_crc32 = 1; }, "disagree");
  change(
      "W03", "two-sizes", [](ZipItem& i) { i.local_size = 22; }, "disagree");
  change(
      "W03", "two-compressed-sizes", [](ZipItem& i) { i.local_compressed_size = 5; }, "disagree");
  change(
      "W03", "two-methods", [](ZipItem& i) { i.local_method = 0; }, "disagree");
  change(
      "W03", "encrypted-here-only", [](ZipItem& i) { i.local_flags = 1; }, "disagree");
  change(
      "W03", "utf-8-here-only", [](ZipItem& i) { i.local_flags = 0x800; }, "disagree");
  change(
      "W03", "sizes-behind-here-only", [](ZipItem& i) { i.local_flags = 8; }, "disagree");
  change(
      "W03", "wrong-crc", [](ZipItem& i) { i.crc32 = 1; }, "CRC-32");
  change(
      "W03", "more-than-claimed", [](ZipItem& i) { i.claimed_size = 22; }, "more comes out");
  change(
      "W03", "less-than-claimed", [](ZipItem& i) { i.claimed_size = 24; }, "less comes out");
  with(
      "W03", "stored-with-two-sizes", stored, [](ZipItem& i) { i.claimed_size = 4; }, "two sizes");
  const auto described = [&](ZipItem& item, std::uint32_t crc, std::uint32_t compressed, std::uint32_t length) {
    item.flags = 8, item.local_crc32 = 0, item.local_size = 0, item.local_compressed_size = 0;
    item.descriptor = zip_numbers({{0x08074b50, 4}, {crc, 4}, {compressed, 4}, {length, 4}});
  };
  const std::uint32_t crc = crc_of(good.bytes), packed = static_cast<std::uint32_t>(deflate_raw(good.bytes).size());
  change(
      "W03", "descriptor-with-another-crc", [&](ZipItem& i) { described(i, crc + 1, packed, 23); }, "disagree");
  change(
      "W03", "descriptor-with-another-size", [&](ZipItem& i) { described(i, crc, packed, 24); }, "disagree");
  change(
      "W03", "descriptor-with-another-compressed-size", [&](ZipItem& i) { described(i, crc, packed + 1, 23); },
      "disagree");
  change(
      "W03", "descriptor-cut-short",
      [&](ZipItem& i) {
        described(i, crc, packed, 23);
        i.descriptor.resize(8);
      },
      "no member");
  change(
      "W03", "descriptor-of-a-member-without",
      [&](ZipItem& i) {
        described(i, crc, packed, 23);
        i.flags = 0, i.local_crc32.reset(), i.local_size.reset(), i.local_compressed_size.reset();
      },
      "no member");
  with(
      "W03", "stored-with-a-descriptor", stored, [&](ZipItem& i) { described(i, crc_of("hello"), 5, 5); }, "behind it");
  add("W04", "nothing", "", "too short");
  add("W04", "no-directory", std::string(100, 'x'), "does not end");
  add("W04", "second-end", plain + zip_end(0, 0, plain.size()), "before its first");
  add("W04", "second-end-of-another-directory", plain + plain, "not where it says");
  add("W04", "byte-after-the-end", plain + "x", "does not end");
  add("W04", "bytes-before", "#!/bin/sh\n" + plain, "not where it says");
  add("W04", "bytes-before-with-right-offsets", make_zip({{.name = "a", .bytes = "x", .before = "#!/bin/sh\n"}}),
      "before its first");
  add("W04", "comment-cut-short", without_end(plain) + zip_end(1, size, directory, "comment").substr(0, 28),
      "does not end");
  add("W04", "comment-with-the-mark-of-an-end", without_end(plain) + zip_end(1, size, directory, "x PK\5\6 x"),
      "does not end");
  add("W04", "byte-after-a-comment", without_end(plain) + zip_end(1, size, directory, "comment") + "x", "does not end");
  add("W04", "comment-that-is-an-end", without_end(plain) + zip_end(1, size, directory, zip_end(1, size, directory)),
      "not where it says");
  add("W04", "comment-that-is-an-archive", without_end(plain) + zip_end(1, size, directory, plain),
      "not where it says");
  add("W04", "one-of-several-disks",
      without_end(plain) +
          zip_numbers({{0x06054b50, 4}, {1, 2}, {0, 2}, {1, 2}, {1, 2}, {size, 4}, {directory, 4}, {0, 2}}),
      "disk");
  add("W04", "two-counts",
      without_end(plain) + zip_numbers({{0x06054b50, 4}, {0, 4}, {2, 2}, {1, 2}, {size, 4}, {directory, 4}, {0, 2}}),
      "counts differ");
  add(
      "W04", "count-too-small",
      without_end(make_zip({good, {.name = "b"}})) +
          [&] {
            const std::string zip = make_zip({good, {.name = "b"}});
            return zip_end(1, zip.size() - 22 - directory_of(zip), directory_of(zip));
          }(),
      "left over");
  add("W04", "count-too-large", without_end(plain) + zip_end(9, size, directory), "shorter than its count");
  change(
      "W04", "member-with-a-comment", [](ZipItem& i) { i.comment = "x"; }, "comment");
  change(
      "W05", "zip64-locator-in-a-comment", [&](ZipItem& i) { i.comment = zip_end64(0, 1, 1, 1); }, "zip64");
  change(
      "W05", "zip64-locator-in-an-extra-field", [&](ZipItem& i) { i.extra = zip_extra(0x4242, zip_end64(0, 1, 1, 1)); },
      "without need");
  add("W05", "zip64-end-without-need",
      without_end(plain) + zip_end64(directory + size, 1, size, directory) + zip_end(1, size, directory),
      "without need");
  add("W05", "zip64-end-missing", without_end(plain) + zip_end(0xffff, size, directory), "locator is missing");
  add("W05", "zip64-end-elsewhere",
      without_end(plain) + zip_end64(0, 1, size, directory) + zip_end(0xffff, size, directory), "not where it says");
  add("W05", "two-ends-that-differ",
      without_end(plain) + zip_end64(directory + size, 1, size, directory) + zip_end(0xffff, size, directory + 1),
      "differ");
  add("W05", "zip64-size-of-everything",
      without_end(plain) + zip_end64(directory + size, 1, ~std::uint64_t{0}, directory) +
          zip_end(0xffff, 0xffffffff, directory),
      "too large");
  add("W05", "zip64-offset-that-wraps",
      without_end(plain) + zip_end64(directory + size, 1, size, ~std::uint64_t{0} - 10) +
          zip_end(0xffff, size, 0xffffffff),
      "not where it says");
  change(
      "W05", "zip64-field-too-short", [](ZipItem& i) { i.claimed_size = 0xffffffff, i.extra = zip_extra(1, "1234"); },
      "cut short");
  change(
      "W05", "zip64-field-too-long", [](ZipItem& i) { i.extra = zip_extra(1, std::string(16, '\0')); }, "too long");
  change(
      "W05", "zip64-field-twice", [](ZipItem& i) { i.extra = zip_extra(1, "") + zip_extra(1, ""); }, "two zip64");
  change(
      "W05", "extra-field-cut-short", [](ZipItem& i) { i.extra = std::string("\x42\x42\xff\0", 4); }, "cut short");
  change(
      "W05", "bytes-after-extra-fields", [](ZipItem& i) { i.extra = zip_extra(0x4242, "") + "x"; }, "cut short");
  change(
      "W05", "local-extra-field-cut-short", [](ZipItem& i) { i.local_extra = std::string("\x42\x42\xff\0", 4); },
      "cut short");
  const std::string second_name = zip_extra(0x7075, zip_numbers({{1, 1}, {crc_of("a"), 4}}) + "evil");
  change(
      "W05", "unicode-path", [&](ZipItem& i) { i.extra = second_name; }, "second name");
  change(
      "W05", "unicode-path-in-the-member", [&](ZipItem& i) { i.local_extra = second_name; }, "second name");
  for (const auto& [name, path] :
       std::vector<std::pair<const char*, std::string>>{{"parent", "../a"},
                                                        {"absolute", "/a"},
                                                        {"backslash", "..\\a"},
                                                        {"prefix-sibling", "../site-packages-evil/a"},
                                                        {"nul", std::string("a\0b", 3)},
                                                        {"drive", "C:/a"},
                                                        {"dot", "./a"},
                                                        {"empty-part", "a//b"},
                                                        {"newline", "a\nb"},
                                                        {"empty", ""},
                                                        {"part-of-256-bytes", std::string(256, 'a')}})
    change(
        "W06", name, [wanted = path](ZipItem& i) { i.name = wanted; }, "not safe");
  change(
      "W06", "neither-ascii-nor-utf-8", [](ZipItem& i) { i.name = "\xc3\xa9"; }, "marked as UTF-8");
  change(
      "W06", "marked-but-not-utf-8", [](ZipItem& i) { i.name = "\xff", i.flags = 0x800; }, "not safe");
  change(
      "W06", "decomposed-control-character", [](ZipItem& i) { i.name = "e\xcc\x81\xc2\x85", i.flags = 0x800; },
      "not safe");
  change(
      "W07", "symbolic-link", [](ZipItem& i) { i.unix_mode = 0120777; }, "symbolic link");
  change(
      "W07", "symbolic-link-made-on-a-mac", [](ZipItem& i) { i.unix_mode = 0120777, i.made_by = 19; }, "symbolic link");
  change(
      "W07", "symbolic-link-made-on-dos", [](ZipItem& i) { i.unix_mode = 0120777, i.made_by = 0; }, "symbolic link");
  change(
      "W07", "fifo", [](ZipItem& i) { i.unix_mode = 0010644; }, "neither a file");
  change(
      "W07", "device", [](ZipItem& i) { i.unix_mode = 0020644; }, "neither a file");
  change(
      "W07", "folder-named-as-a-file", [](ZipItem& i) { i.unix_mode = 0040755; }, "neither a file");
  change(
      "W07", "file-named-as-a-folder", [](ZipItem& i) { i.name = "a/"; }, "neither a file");
  change(
      "W07", "setuid", [](ZipItem& i) { i.unix_mode = 0104755; }, "setuid");
  with(
      "W07", "folder-with-bytes", stored, [](ZipItem& i) { i.name = "a/", i.unix_mode = 0040755; }, "has bytes");
  for (const std::uint16_t method : {1, 6, 9, 12, 14, 93, 95, 97, 98, 99})
    change(
        "W08", "method-" + std::to_string(method), [=](ZipItem& i) { i.method = method; }, "other than deflate");
  for (const std::uint16_t flag : {1, 0x40, 0x2000})
    change(
        "W08", "encrypted-" + std::to_string(flag), [=](ZipItem& i) { i.flags = flag; }, "encrypted");
  add("W09", "overlap", make_zip({good, {.name = "b", .bytes = good.bytes, .deflated = true, .header_offset = 0}}),
      "overlap");
  {
    std::vector<ZipItem> quilt = {{.name = "kernel", .bytes = std::string(100'000, '\0'), .deflated = true}};
    for (int i = 0; i < 200; ++i)
      quilt.push_back({.name = "k" + std::to_string(i),
                       .bytes = quilt[0].bytes,
                       .deflated = true,
                       .header_offset = 0,
                       .only_central = true});
    add("W09", "two-hundred-names-for-one-kernel", make_zip(quilt), "overlap");
  }
  change(
      "W09", "claims-more-than-deflate-can-hold", [](ZipItem& i) { i.claimed_size = 0xfffffffe; }, "deflate can hold");
  add("W09", "deflate-cut-short",
      make_zip({{.name = "a", .bytes = deflate_raw("hello").substr(0, 3), .claimed_size = 3, .method = 8}}),
      "deflate stream");
  add("W09", "bytes-after-deflate",
      make_zip({{.name = "a", .bytes = deflate_raw("hello") + "junk", .claimed_size = 5, .method = 8}}),
      "deflate stream");
  return cases;
}

}  // namespace sealift::test
