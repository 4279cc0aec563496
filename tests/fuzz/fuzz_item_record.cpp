// SPDX-License-Identifier: Apache-2.0
// The record of a store item, as JSON and as the stamps keep it: what is accepted reads back as the same value in both,
// names nothing outside of its item, and no part of a packed one is taken for a whole.
#include "installer/store/packed_record.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

void check_record(const ItemRecord& record) {
  const auto is_safe = [](const std::string& path) {
    must(bundle::SafePath::parse_published(path, "").text() == path, "path");
  };
  for (const StoredFile& file : record.files) is_safe(file.path);
  for (const std::string& folder : record.folders) is_safe(folder);
  for (const StoredLink& link : record.links) is_safe(link.path);
  const std::string packed = pack_record(record);
  must(unpack_record(packed) == record, "what was packed is unpacked as the same");
  must(!unpack_record(packed + "x"), "nothing follows a packed record");
  if (packed.size() > 2000) return;
  for (std::size_t size = 0; size < packed.size(); ++size)
    must(!unpack_record(std::string_view(packed).substr(0, size)), "a packed record that is cut is none");
}

}  // namespace

FUZZ(text) {
  if (const std::optional<ItemRecord> unpacked = unpack_record(text)) check_record(*unpacked);
  accepted([&] {
    const ItemRecord record = parse_item_record(text, "record");
    check_record(record);
    must(parse_item_record(write_item_record(record), "written") == record, "what was written reads back");
  });
}
