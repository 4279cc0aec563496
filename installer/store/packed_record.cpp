// SPDX-License-Identifier: Apache-2.0
// The fields in the order of the struct; see packed_record.hpp.
#include "installer/store/packed_record.hpp"

#include "installer/store/flat_values.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::installer {

namespace {

std::string taken_path(ValueTaker& from) {
  return bundle::SafePath::parse_published(from.text(), "stamps").text();
}

ItemRecord take_record(ValueTaker& from) {
  ItemRecord record;
  from.take(record.kind);
  record.name = from.text();
  from.take(record.content);
  record.dist_info = from.text();
  record.files.resize(static_cast<std::size_t>(from.count(sizeof(std::uint64_t) + bundle::Digest::kSize)));
  for (StoredFile& file : record.files) {
    file.path = taken_path(from);
    from.take(file.size);
    from.take(file.sha256);
    std::uint8_t executable = 0;
    from.take(executable);
    file.executable = executable != 0;
  }
  record.folders.resize(static_cast<std::size_t>(from.count(sizeof(std::uint64_t))));
  for (std::string& folder : record.folders) folder = taken_path(from);
  record.links.resize(static_cast<std::size_t>(from.count(2 * sizeof(std::uint64_t))));
  for (StoredLink& link : record.links) {
    link.path = taken_path(from);
    link.target = from.text();
  }
  return record;
}

bool is_kind(bundle::EntryKind kind) {
  return kind == bundle::EntryKind::Tree || kind == bundle::EntryKind::Wheel || kind == bundle::EntryKind::File;
}

}  // namespace

std::string pack_record(const ItemRecord& record) {
  std::string packed;
  put_value(packed, record.kind);
  put_text(packed, record.name);
  put_value(packed, record.content);
  put_text(packed, record.dist_info);
  put_value(packed, std::uint64_t{record.files.size()});
  for (const StoredFile& file : record.files) {
    put_text(packed, file.path);
    put_value(packed, file.size);
    put_value(packed, file.sha256);
    put_value(packed, static_cast<std::uint8_t>(file.executable));
  }
  put_value(packed, std::uint64_t{record.folders.size()});
  for (const std::string& folder : record.folders) put_text(packed, folder);
  put_value(packed, std::uint64_t{record.links.size()});
  for (const StoredLink& link : record.links) {
    put_text(packed, link.path);
    put_text(packed, link.target);
  }
  return packed;
}

std::optional<ItemRecord> unpack_record(std::string_view packed) try {
  ValueTaker from(packed);
  ItemRecord record = take_record(from);
  if (from.failed() || from.more() || !is_kind(record.kind)) return std::nullopt;
  return record;
} catch (const bundle::Error&) {  // a path that is not safe, such as the empty one behind the end
  return std::nullopt;
}

}  // namespace sealift::installer
