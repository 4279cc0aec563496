// SPDX-License-Identifier: Apache-2.0
// Rows A01 to A13, and what M13 and M19 mean for us: tar archives with one fault each.
#pragma once

#include <functional>

#include "bundle/archive/tar_header.hpp"
#include "tests/support/hostile/hostile_case.hpp"
#include "tests/support/tiny_bundle.hpp"

namespace sealift::test {

using TarParts = std::vector<std::pair<bundle::TarMember, std::string>>;

// The archive with `text` written into the header at `header`, and the checksum made right again.
inline std::string tampered_tar(std::string bytes, std::size_t header, std::size_t offset, std::string_view text) {
  bundle::detail::TarHeader raw;
  std::memcpy(raw.raw.data(), bytes.data() + header, bundle::kTarBlock);
  std::memcpy(raw.raw.data() + offset, text.data(), text.size());
  raw.put_octal(148, 7, raw.checksum());
  return bytes.replace(header, bundle::kTarBlock, raw.raw.data(), bundle::kTarBlock);
}

// `records` as a pax header of type `type`, with its padding.
inline std::string pax_block(const std::string& records, char type = 'x') {
  const auto header = bundle::detail::tar_header("pax", type, records.size(), false, "");
  return std::string(header.raw.data(), bundle::kTarBlock) + records +
         std::string(bundle::tar_padding(records.size()), '\0');
}

inline HostileCases hostile_tars() {
  using bundle::detail::pax_record;
  using namespace std::string_view_literals;
  const std::string good = make_tar({{tar_file("file"), "abc"}});
  HostileCases cases;
  const auto add = [&](const char* row, const char* name, std::string bytes, const char* word) {
    cases.push_back({.row = row, .name = name, .bytes = std::move(bytes), .word = word, .file = "t.tar"});
  };
  const auto parts = [&](const char* row, const char* name, const TarParts& members, const char* word) {
    add(row, name, make_tar(members), word);
  };
  const auto header = [&](const char* row, const char* name, std::size_t offset, std::string_view text,
                          const char* word) { add(row, name, tampered_tar(good, 0, offset, text), word); };
  const auto pax = [&](const char* row, const char* name, const std::string& records, const char* word) {
    add(row, name, pax_block(records) + good, word);
  };
  const std::string long_path = "d/" + std::string(150, 'n');

  header("A01", "parent", 0, "../x\0"sv, "not safe");
  header("A01", "absolute", 0, "/abs\0"sv, "not safe");
  header("A01", "drive", 0, "C:/x\0"sv, "not safe");
  header("A01", "dot-dot-inside", 0, "a/../b\0"sv, "not safe");
  header("A01", "backslash", 0, "a\\b\0"sv, "not safe");
  header("A01", "not-utf-8", 0, "\xff\xfe\0"sv, "not safe");
  header("A01", "trailing-slash-on-a-file", 0, "a/\0"sv, "not safe");
  header("A01", "no-name", 0, "\0\0\0\0"sv, "not safe");
  pax("A01", "parent-in-pax", pax_record("path", "../" + long_path), "not safe");
  parts("A02", "file-through-a-link", {{tar_link("a", "b"), ""}, {tar_file("a/x"), "x"}}, "not a folder");
  parts("A02", "file-through-a-deep-link",
        {{tar_folder("d"), ""}, {tar_link("d/l", "."), ""}, {tar_file("d/l/d/l/x"), "x"}}, "not a folder");
  parts("A02", "link-through-a-link", {{tar_link("a", "b"), ""}, {tar_link("a/x", "y"), ""}}, "not a folder");
  parts("A02", "chain-that-climbs",
        {{tar_folder("d"), ""}, {tar_link("d/up", ".."), ""}, {tar_link("out", "d/up/.."), ""}}, "leads out");
  parts("A02", "chain-in-the-other-order",
        {{tar_link("out", "d/up/../etc"), ""}, {tar_folder("d"), ""}, {tar_link("d/up", ".."), ""}}, "leads out");
  for (const char type : {'1', '3', '4', '6', '7', 'S', 'D', 'K', 'L', 'M', 'N', 'V', 'A', 'X', '\x7f', '\0'}) {
    const std::string name =
        std::string("type-") + (type > ' ' && type < 127 ? std::string(1, type) : std::to_string(type));
    header(type == '1'   ? "A03"
           : type == 'S' ? "A08"
                         : "A04",
           name.c_str(), 156, std::string_view(&type, 1), "neither file");
  }
  add("A03", "hard-link-to-outside", tampered_tar(tampered_tar(good, 0, 156, "1"), 0, 157, "/etc/passwd"),
      "neither file");
  parts("A05", "file-twice", {{tar_file("a"), "1"}, {tar_file("a"), "2"}}, "twice");
  parts("A05", "folder-twice", {{tar_folder("a"), ""}, {tar_folder("a"), ""}}, "twice");
  parts("A05", "folder-becomes-a-link", {{tar_folder("a"), ""}, {tar_link("a", "b"), ""}}, "twice");
  parts("A05", "filled-folder-becomes-a-link", {{tar_file("a/x"), ""}, {tar_link("a", "b"), ""}}, "twice");
  parts("A05", "link-becomes-a-file", {{tar_link("a", "b"), ""}, {tar_file("a"), "x"}}, "twice");
  parts("A05", "file-becomes-a-folder", {{tar_file("a"), "x"}, {tar_folder("a"), ""}}, "twice");
  parts("A05", "file-below-a-file", {{tar_file("a"), "1"}, {tar_file("a/x"), "x"}}, "not a folder");
  pax("A06", "pax-size-beside-ustar-size", pax_record("size", "512"), "two sizes");
  add("A06", "pax-size-for-a-small-file",
      pax_block(pax_record("size", "3")) + tampered_tar(good, 0, 124, "00000000000"), "spelling");
  pax("A07", "pax-before-a-gnu-long-name", pax_record("path", long_path), "spelling");
  add("A07", "pax-then-gnu-long-name", pax_block(pax_record("path", long_path)) + tampered_tar(good, 0, 156, "L"),
      "neither file");
  add("A07", "pax-then-pax", pax_block(pax_record("path", long_path)) + pax_block(pax_record("size", "3")) + good,
      "neither file");
  add("A07", "pax-before-the-end", pax_block(pax_record("path", long_path)) + bundle::tar_end(), "before no member");
  for (const char* key : {"GNU.sparse.size", "GNU.sparse.major", "GNU.sparse.map", "GNU.sparse.name"})
    pax("A08", key, pax_record(key, "1"), "unknown kind");
  header("A08", "base-256-size", 124, "\x80\0\0\0\0\0\0\0\0\0\0\3"sv, "not octal");
  header("A08", "negative-size", 124, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"sv, "not octal");
  header("A08", "minus-in-size", 124, "-0000000003", "not octal");
  header("A08", "junk-in-size", 124, "0000000x003", "not octal");
  header("A08", "blank-before-the-size", 124, "          3", "spelling");
  header("A08", "no-nul-after-the-size", 124, "000000000003", "spelling");
  header("A08", "junk-after-the-size", 124, "3\0 4"sv, "spelling");
  header("A08", "no-ustar", 257, "xxxxx", "not ustar");
  header("A08", "gnu-magic", 257, "ustar  \0"sv, "not ustar");
  header("A08", "version-1", 263, "01", "spelling");
  header("A08", "split-name", 345, "prefix", "prefix");
  header("A08", "junk-after-the-name", 0, "a\0b"sv, "spelling");
  add("A08", "folder-with-bytes", tampered_tar(tampered_tar(good, 0, 0, "d/\0\0"sv), 0, 156, "5"), "has bytes");
  header("A08", "file-with-a-target", 157, "x", "target");
  add("A09", "global-header", pax_block(pax_record("path", "x"), 'g') + good, "neither file");
  for (const char* key : {"SCHILY.xattr.security.capability", "LIBARCHIVE.xattr.user", "SCHILY.acl.access",
                          "RHT.security.selinux", "hdrcharset", "charset", "mtime", "uid", "uname", "comment"})
    pax("A09", key, pax_record(key, "1"), "unknown kind");
  pax("A09", "record-twice", pax_record("path", long_path) + pax_record("path", long_path + "2"), "stands twice");
  pax("A09", "path-that-fits-ustar", pax_record("path", "short"), "spelling");
  for (const auto& [name, record] : std::vector<std::pair<const char*, const char*>>{
           {"record-too-long", "999 path=x\n"},
           {"record-too-short", "5 path=x\n"},
           {"record-without-length", "x path=y\n"},
           {"record-without-line-end", "11 path=abc"},
           {"record-without-equals", "=\n"},
           {"record-of-zero", "0 path=abc\n"},
           {"record-length-that-wraps", "18446744073709551627 path=abc\n"}})
    pax("A09", name, record, "pax record");
  std::string checksum = good;
  checksum[0] ^= 1;
  add("A10", "checksum", checksum, "checksum");
  std::string padding = good;
  padding[bundle::kTarBlock + 10] = 'x';
  add("A10", "padding", padding, "padding");
  add("A10", "nothing", "", "not closed");
  add("A10", "one-zero-block", good.substr(0, good.size() - 512), "not closed");
  add("A10", "no-zero-block", good.substr(0, good.size() - 1024), "not closed");
  add("A10", "three-zero-blocks", good + std::string(512, '\0'), "follows the end");
  add("A10", "archive-after-the-end", good + good, "follows the end");
  add("A10", "byte-after-the-end", good + "x", "not closed");
  add("A10", "cut-in-a-header", good.substr(0, 300), "not closed");
  add("A10", "cut-in-the-data", good.substr(0, 513), "not closed");
  add("A10", "member-after-one-zero-block", std::string(512, '\0') + good, "follows the end");
  add("A13", "pax-of-10-megabytes", pax_block(pax_record("path", std::string(10'000'000, 'p'))) + good,
      "unlikely size");
  pax("A13", "path-of-5000-bytes",
      pax_record("path",
                 [] {
                   std::string path = "a";
                   while (path.size() < 5000) path += "/a";
                   return path;
                 }()),
      "not safe");
  pax("A13", "part-of-256-bytes", pax_record("path", std::string(256, 'p')), "not safe");
  parts("M13", "absolute-link", {{tar_link("l", "/etc/passwd"), ""}}, "leaves the tree");
  parts("M13", "link-that-climbs", {{tar_link("a/l", "../../x"), ""}}, "leaves the tree");
  parts("M13", "link-that-climbs-and-returns", {{tar_link("a/l", "../../a/x"), ""}}, "leaves the tree");
  parts("M13", "link-to-nothing", {{tar_link("l", ""), ""}}, "leaves the tree");
  parts("M13", "link-to-itself", {{tar_link("l", "l"), ""}}, "in a circle");
  parts("M13", "two-links-in-a-circle", {{tar_link("a", "b"), ""}, {tar_link("b", "a"), ""}}, "in a circle");
  TarParts stairs;
  for (int i = 0; i < 60; ++i) stairs.push_back({tar_link("l" + std::to_string(i), "l" + std::to_string(i + 1)), ""});
  parts("M13", "sixty-links-in-a-row", stairs, "in a circle");
  header("M19", "setuid", 100, "0004755", "mode");
  header("M19", "setgid", 100, "0002755", "mode");
  header("M19", "sticky", 100, "0001755", "mode");
  header("M19", "world-writable", 100, "0000777", "mode");
  header("M19", "owner", 108, "0001750", "an owner");
  header("M19", "time", 136, "14000000000", "a time");
  return cases;
}

}  // namespace sealift::test
