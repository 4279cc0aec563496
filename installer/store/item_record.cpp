// SPDX-License-Identifier: Apache-2.0
// The only writer and the only reader of an item record. Paths are parsed as SafePath again, since they name files that
// are linked into environments.
#include "installer/store/item_record.hpp"

#include "bundle/manifest/manifest_words.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/manifest/manifest_json.hpp"

namespace sealift::installer {

using bundle::Json;
using bundle::JsonObject;
using bundle::SafePath;

namespace {
constexpr std::size_t kMaxFiles = 5'000'000;

std::string safe_path(JsonObject& object) {
  return SafePath::parse_published(object.string("path"), object.where()).text();
}
}  // namespace

std::string write_item_record(const ItemRecord& record) {
  Json files = Json::array(), links = Json::array();
  for (const StoredFile& file : record.files)
    files.push_back(
        {{"path", file.path}, {"size", file.size}, {"sha256", file.sha256.hex()}, {"executable", file.executable}});
  for (const StoredLink& link : record.links) links.push_back({{"path", link.path}, {"target", link.target}});
  return bundle::write_json({{"format", kRecordFormat},
                             {"kind", bundle::enum_name(bundle::kKindNames, record.kind)},
                             {"name", record.name},
                             {"content", record.content.hex()},
                             {"dist_info", record.dist_info},
                             {"files", std::move(files)},
                             {"folders", record.folders},
                             {"links", std::move(links)}}) +
         "\n";
}

void check_record_format(JsonObject& object) {
  if (const std::uint64_t format = object.integer("format"); format != kRecordFormat)
    throw bundle::Error(
        bundle::ErrorCode::CannotCheck,
        {.what = "a record of this prefix is of a format that this version does not know",
         .where = object.where(),
         .expected = std::to_string(kRecordFormat),
         .got = std::to_string(format),
         .next = format < kRecordFormat
                     ? "install into a new prefix; the sealift-install that wrote this one still reads it"
                     : "use the sealift-install that wrote it, or a newer one"});
}

ItemRecord read_item_record(const std::filesystem::path& path) {
  return parse_item_record(bundle::read_text(path, kMaxItemRecord), path.string());
}

ItemRecord parse_item_record(std::string_view text, const std::string& where) {
  ItemRecord record;
  std::exception_ptr fault;  // in an element; thrown only once the record's format is known to be ours
  const auto take = [&, of_files = where + ".files", of_links = where + ".links"](const std::string& key,
                                                                                  const Json& element) {
    if (record.files.size() + record.folders.size() + record.links.size() == kMaxFiles)
      bundle::refuse_json(where, "it has too many files", std::to_string(kMaxFiles));
    if (key == "files") {
      JsonObject file(element, of_files);
      record.files.push_back({.path = safe_path(file),
                              .size = file.integer("size"),
                              .sha256 = file.digest("sha256"),
                              .executable = file.boolean("executable")});
      file.done();
    } else if (key == "folders") {
      record.folders.push_back(
          SafePath::parse_published(element.is_string() ? element.get<std::string>() : "", where).text());
    } else if (key == "links") {
      JsonObject link(element, of_links);
      record.links.push_back({.path = safe_path(link), .target = link.string("target")});
      link.done();
    }
  };
  const Json root = bundle::parse_json(text, where, 8 * kMaxFiles, [&](const std::string& key, const Json& element) {
    try {
      if (!fault) take(key, element);
    } catch (const bundle::Error&) {
      fault = std::current_exception();
    }
  });
  JsonObject object(root, where);
  check_record_format(object);
  if (fault) std::rethrow_exception(fault);
  record.kind = bundle::enum_value(bundle::kKindNames, object.string("kind", 20), where);
  if (record.kind == bundle::EntryKind::Squashfs) bundle::refuse_json(where, "an image is no item of a store");
  record.name = object.string("name");
  record.content = object.digest("content");
  record.dist_info = object.string("dist_info");
  for (const char* taken : {"files", "folders", "links"}) object.array(taken, 0);
  object.done();
  return record;
}

}  // namespace sealift::installer
