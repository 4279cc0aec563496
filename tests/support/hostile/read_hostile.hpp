// SPDX-License-Identifier: Apache-2.0
// Reads bytes as each family's reader would, to the last byte: what the tests run, and what the fuzzers run.
#pragma once

#include <map>
#include <string>

#include "sealift/bundle.hpp"
#include "sealift/safetensors.hpp"

namespace sealift::test {

inline bundle::MemorySource source_of(std::string_view bytes, const std::string& name) {
  const bundle::ByteView view = bundle::as_bytes(bytes);
  return {bundle::Bytes(view.begin(), view.end()), name};
}

// Path -> "file SIZE", "folder" or "link TARGET", in the archive's order.
using Listing = std::vector<std::pair<std::string, std::string>>;

inline Listing list_tar(std::string_view bytes, const std::string& name, std::size_t step = 1 << 16) {
  using namespace bundle;
  Listing listing;
  TarReader reader({.begin =
                        [&](const TarMember& member) {
                          listing.emplace_back(member.path, member.type == TarType::File
                                                                ? "file " + std::to_string(member.size)
                                                            : member.type == TarType::Folder ? "folder"
                                                                                             : "link " + member.target);
                        },
                    .data = [](ByteView) {}},
                   name);
  for (std::size_t at = 0; at < bytes.size(); at += step) reader.feed(as_bytes(bytes.substr(at, step)));
  reader.finish();
  return listing;
}

inline Listing list_zip(std::string_view bytes, const std::string& name) {
  bundle::MemorySource source = source_of(bytes, name);
  bundle::ZipReader zip(source);
  Listing listing;
  for (const bundle::ZipMember& member : zip.members()) {
    zip.extract(member, [](bundle::ByteView) {});
    listing.emplace_back(member.name, "file " + std::to_string(member.size));
  }
  return listing;
}

inline Listing list_wheel(std::string_view bytes, const std::string& name) {
  bundle::MemorySource source = source_of(bytes, name);
  bundle::Wheel wheel(source, name);
  Listing listing;
  for (const bundle::WheelFile& file : wheel.files()) {
    wheel.extract(file, [](bundle::ByteView) {});
    listing.emplace_back(file.path, "file " + std::to_string(file.member.size));
  }
  return listing;
}

// Throws bundle::Error, as the other readers do.
inline safetensors::Header read_safetensors(std::string_view bytes, const std::string& name) {
  try {
    return safetensors::read_header(
        bytes.size(), [bytes](std::uint64_t offset, char* data, std::size_t count) { bytes.copy(data, count, offset); },
        name);
  } catch (const safetensors::FormatError& error) {
    throw bundle::Error(bundle::ErrorCode::Format, {.what = error.what()});
  }
}

}  // namespace sealift::test
