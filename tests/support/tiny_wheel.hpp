// SPDX-License-Identifier: Apache-2.0
// Zip archives and wheels made in memory, byte by byte, so that a test can put exactly one fault into one.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/digest.hpp"

namespace sealift::test {

struct ZipItem {
  std::string name;
  std::string bytes;
  bool deflated = false;
  std::uint32_t unix_mode = 0100644;
  // Faults: what to claim instead of the truth.
  std::string local_name;  // empty: name
  std::optional<std::uint32_t> crc32;
  std::optional<std::uint64_t> claimed_size;
  std::uint16_t flags = 0;
  std::optional<std::uint16_t> method;
  std::optional<std::uint32_t> header_offset;
  // Faults of one of the two headers only.
  std::optional<std::uint32_t> local_crc32, local_size, local_compressed_size;
  std::optional<std::uint16_t> local_flags, local_method;
  std::string before;              // bytes of nobody in front of the member
  std::string local_extra, extra;  // extra fields, with their ids and sizes
  std::string descriptor;          // what stands behind the bytes
  std::string comment;
  std::uint8_t made_by = 3;   // Unix
  bool only_local = false;    // not in the directory
  bool only_central = false;  // nothing but a line in the directory
};

namespace zip_format {
inline void put(std::string& out, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i, value >>= 8) out.push_back(static_cast<char>(value & 255));
}
inline std::string deflate_raw(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
}  // namespace zip_format

inline std::string make_zip(const std::vector<ZipItem>& items) {
  using zip_format::put;
  std::string out, directory;
  std::size_t count = 0;
  for (const ZipItem& item : items) {
    const std::string body = item.deflated ? zip_format::deflate_raw(item.bytes) : item.bytes;
    const std::uint32_t crc = item.crc32.value_or(static_cast<std::uint32_t>(
        ::crc32(0, reinterpret_cast<const Bytef*>(item.bytes.data()), static_cast<uInt>(item.bytes.size()))));
    const std::uint64_t size = item.claimed_size.value_or(item.bytes.size());
    const std::uint16_t method = item.method.value_or(item.deflated ? 8 : 0);
    const std::string local_name = item.local_name.empty() ? item.name : item.local_name;
    std::uint32_t offset = item.header_offset.value_or(static_cast<std::uint32_t>(out.size()));
    if (!item.only_central) {
      out += item.before;
      offset = item.header_offset.value_or(static_cast<std::uint32_t>(out.size()));
      put(out, 0x04034b50, 4), put(out, 20, 2), put(out, item.local_flags.value_or(item.flags), 2);
      put(out, item.local_method.value_or(method), 2), put(out, 0, 4), put(out, item.local_crc32.value_or(crc), 4);
      put(out, item.local_compressed_size.value_or(static_cast<std::uint32_t>(body.size())), 4);
      put(out, item.local_size.value_or(static_cast<std::uint32_t>(size)), 4);
      put(out, local_name.size(), 2), put(out, item.local_extra.size(), 2);
      out += local_name + item.local_extra + body + item.descriptor;
    }
    if (item.only_local) continue;
    ++count;
    put(directory, 0x02014b50, 4), put(directory, item.made_by << 8 | 20, 2), put(directory, 20, 2);
    put(directory, item.flags, 2), put(directory, method, 2), put(directory, 0, 4), put(directory, crc, 4);
    put(directory, body.size(), 4), put(directory, size, 4), put(directory, item.name.size(), 2);
    put(directory, item.extra.size(), 2), put(directory, item.comment.size(), 2), put(directory, 0, 4);
    put(directory, std::uint64_t{item.unix_mode} << 16, 4), put(directory, offset, 4);
    directory += item.name + item.extra + item.comment;
  }
  const std::size_t begin = out.size();
  out += directory;
  put(out, 0x06054b50, 4), put(out, 0, 4), put(out, count, 2), put(out, count, 2);
  put(out, directory.size(), 4), put(out, begin, 4), put(out, 0, 2);
  return out;
}

struct TinyWheel {
  std::string name = "demo";
  std::string version = "1.0";
  std::string tag = "py3-none-any";
  std::map<std::string, std::string> files = {
      {"demo/__init__.py", "ANSWER = 42\n"}};         // beside the .dist-info; a folder: "x/"
  std::string entry_points;                           // text of entry_points.txt, left out when empty
  std::string extra_metadata;                         // further header lines, each with its line break
  std::map<std::string, std::string> record_digests;  // a fault: path -> text instead of "sha256=..."
  std::map<std::string, std::string> record_sizes;    // a fault: path -> text instead of the size
  std::vector<std::string> unrecorded;                // a fault: paths left out of RECORD
  std::string extra_record;                           // a fault: further RECORD rows

  std::string file_name() const { return name + "-" + version + "-" + tag + ".whl"; }
};

// The bytes of the wheel; `.py` and larger files are deflated, the rest stored.
inline std::string make_wheel(const TinyWheel& wheel) {
  const std::string info = wheel.name + "-" + wheel.version + ".dist-info/";
  std::map<std::string, std::string> files = wheel.files;
  files.emplace(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: " + wheel.tag + "\n");
  files.emplace(info + "METADATA", "Metadata-Version: 2.1\nName: " + wheel.name + "\nVersion: " + wheel.version + "\n" +
                                       wheel.extra_metadata + "\n");
  if (!wheel.entry_points.empty()) files[info + "entry_points.txt"] = wheel.entry_points;
  std::string record;
  std::vector<ZipItem> items;
  for (const auto& [path, bytes] : files) {
    if (path.ends_with('/')) {
      items.push_back({.name = path, .unix_mode = 0040755});
      continue;
    }
    items.push_back({.name = path, .bytes = bytes, .deflated = path.ends_with(".py") || bytes.size() > 1000});
    if (std::any_of(path.begin(), path.end(), [](char c) { return (c & 0x80) != 0; }))
      items.back().flags = 0x800;  // the name is UTF-8
    if (std::find(wheel.unrecorded.begin(), wheel.unrecorded.end(), path) != wheel.unrecorded.end()) continue;
    const auto fault = wheel.record_digests.find(path);
    const std::string digest =
        fault != wheel.record_digests.end()
            ? fault->second
            : "sha256=" + bundle::to_base64(bundle::sha256(bundle::as_bytes(bytes)).bytes, bundle::Base64::UrlNoPad);
    const auto size = wheel.record_sizes.find(path);
    record += path + "," + digest + "," +
              (size != wheel.record_sizes.end() ? size->second : std::to_string(bytes.size())) + "\n";
  }
  record += wheel.extra_record + info + "RECORD,,\n";
  items.push_back({.name = info + "RECORD", .bytes = record});
  return make_zip(items);
}

}  // namespace sealift::test
