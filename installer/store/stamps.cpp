// SPDX-License-Identifier: Apache-2.0
// The numbers are written as they lie in memory: a prefix on another kind of machine has other inodes, so there is
// nothing to carry over. Tens of thousands of files are read and written in a few milliseconds.
#include "installer/store/stamps.hpp"

#include <cstring>

#include "installer/store/flat_values.hpp"
#include "installer/store/packed_record.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// Another kRecordFormat is another number here: records are kept as they were read.
constexpr std::string_view kOpening = "sealift stamps 2\n";
static_assert(kRecordFormat == 2);
constexpr std::uint64_t kMaxStamps = std::uint64_t{1} << 30;

// What the checksum at the end vouches for; empty when it does not.
std::string whole_body(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(fs::symlink_status(path, ignored))) return {};
  std::string text = bundle::read_text(path, kMaxStamps);
  const bundle::Digest none{};
  if (text.size() < kOpening.size() + none.bytes.size() || !text.starts_with(kOpening)) return {};
  const std::string_view body = std::string_view(text).substr(0, text.size() - none.bytes.size());
  if (std::memcmp(bundle::sha256(bundle::as_bytes(body)).bytes.data(), text.data() + body.size(), none.bytes.size()) !=
      0)
    return {};
  text.resize(body.size());
  return text;
}

Stamp stamp_at(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) ? stamp_of(status) : Stamp{};
}

}  // namespace

Stamps Stamps::read(const Prefix& prefix) {
  Stamps stamps;
  std::string text;
  try {
    text = whole_body(prefix.stamps());
  } catch (const Error&) {
  }
  if (text.empty()) return stamps;
  ValueTaker from(std::string_view(text).substr(kOpening.size()));
  while (from.more() && !from.failed()) {
    Item item;
    const std::string name(from.text());
    if (!bundle::is_store_item_name(name)) return {};
    from.take(item.record);
    from.take(item.record_stamp);
    item.packed = from.text();
    item.files.resize(static_cast<std::size_t>(from.count(sizeof(Stamp))));
    for (Stamp& file : item.files) from.take(file);
    stamps.items_.emplace(name, std::move(item));
  }
  return from.failed() ? Stamps() : std::move(stamps);
}

void Stamps::save(const Prefix& prefix, const fs::path& staging, Disk& disk) const {
  std::string text(kOpening);
  for (const auto& [name, item] : items_) {
    put_text(text, name);
    put_value(text, item.record);
    put_value(text, item.record_stamp);
    put_text(text, item.packed);
    put_value(text, std::uint64_t{item.files.size()});
    for (const Stamp& file : item.files) put_value(text, file);
  }
  const bundle::Digest digest = bundle::sha256(bundle::as_bytes(text));
  text.append(reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size());
  disk.write_new(staging / "stamps", text, 0444);
  disk.rename(staging / "stamps", prefix.stamps());
}

void Stamps::add(const std::string& item, const bundle::Digest& record, std::vector<Stamp> files) {
  const std::lock_guard lock(guard_);
  items_.insert_or_assign(item, Item{.record = record, .record_stamp = {}, .packed = {}, .files = std::move(files)});
}

ItemRecord Stamps::record_of(const Store& store, const bundle::Entry& entry) {
  const fs::path path = store.item(entry) / kRecordName;
  const Stamp now = stamp_at(path);
  const auto there = items_.find(Store::item_name(entry));
  const bool unchanged = there != items_.end() && now && now == there->second.record_stamp;
  std::optional<ItemRecord> kept = unchanged ? unpack_record(there->second.packed) : std::nullopt;
  if (kept && (kept->content != entry.content || kept->kind != entry.kind)) kept.reset();
  ItemRecord record = kept ? *std::move(kept) : read_record(store, entry, now);
  Item& item = items_.at(Store::item_name(entry));
  item.files.resize(record.files.size());
  for (std::size_t i = 0; i < record.files.size(); ++i) record.files[i].stamp = &item.files[i];
  return record;
}

// From the store; `now` is the stamp that its file had before it was read.
ItemRecord Stamps::read_record(const Store& store, const bundle::Entry& entry, const Stamp& now) {
  const fs::path path = store.item(entry) / kRecordName;
  const std::string text = bundle::read_text(path, kMaxItemRecord);
  ItemRecord record = store.record(entry, text);  // first, since one of another version says so itself
  const auto [there, fresh] = items_.try_emplace(Store::item_name(entry));
  Item& item = there->second;
  const bundle::Digest digest = bundle::sha256(bundle::as_bytes(text));
  if (!fresh && digest != item.record)
    throw Error(ErrorCode::Digest, {.what = "the record of a store item was changed since it was unpacked",
                                    .where = path.string(),
                                    .expected = "sha256 " + item.record.hex(),
                                    .got = "sha256 " + digest.hex(),
                                    .next = "sealift-install doctor --repair BUNDLE with a bundle that carries it"});
  item.record = digest;
  item.record_stamp = now;
  item.packed = pack_record(record);
  return record;
}

void Stamps::hash_all_again() {
  for (auto& [name, item] : items_) {
    item.record_stamp = {};
    item.files.assign(item.files.size(), {});
  }
}

void Stamps::follow_links(const Prefix& prefix, bool only_check) {
  for (auto& [name, item] : items_) {
    const fs::path folder = prefix.store() / name;
    ItemRecord record;
    try {
      record = read_item_record(folder / kRecordName);
    } catch (const Error&) {
      item.files.clear();
    }
    if (record.files.size() != item.files.size()) item.files.assign(record.files.size(), {});
    for (std::size_t i = 0; i < item.files.size(); ++i) {
      Stamp& file = item.files[i];
      const Stamp now = file ? stamp_at(folder / record.files[i].path) : Stamp{};
      file = (only_check ? now == file : now.same_bytes(file)) ? now : Stamp{};
    }
  }
}

}  // namespace sealift::installer
