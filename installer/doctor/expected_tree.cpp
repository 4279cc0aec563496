// SPDX-License-Identifier: Apache-2.0
// lay_out wants the bundle's entries; they are made up again from the records, with the fields that it reads.
#include "installer/doctor/expected_tree.hpp"

#include <deque>
#include <memory>

namespace sealift::installer {

ExpectedTree item_tree(const std::filesystem::path& folder, const ItemRecord& record) {
  ExpectedTree tree{.folder = folder, .layout = {}, .own = {std::string(kRecordName)}};
  const auto origin = std::make_shared<Place::Origin>(Place::Origin{.owner = record.name, .item = folder.string()});
  for (const std::string& path : record.folders) tree.layout[path].type = Place::Type::Folder;
  for (const StoredFile& file : record.files) {
    Place& place = tree.layout[file.path];
    place.type = Place::Type::File;
    place.origin = origin;
    place.file = file;
  }
  for (const StoredLink& link : record.links) {
    Place& place = tree.layout[link.path];
    place.type = Place::Type::Link;
    place.text = link.target;
  }
  return tree;
}

namespace {

// Adds the names of compiled modules: below lib/python3.11, X.py becomes __pycache__/X.cpython-311.pyc.
void add_bytecode(ExpectedTree& tree) {
  for (const auto& [path, place] : tree.layout) {
    if (place.type != Place::Type::File || !path.starts_with("lib/python3.") || !path.ends_with(".py")) continue;
    const std::string minor = path.substr(12, path.find('/', 12) - 12);
    const std::filesystem::path module = path;
    const std::filesystem::path folder = module.parent_path() / "__pycache__";
    tree.own.insert(folder.generic_string());
    tree.own.insert((folder / (module.stem().string() + ".cpython-3" + minor + ".pyc")).generic_string());
  }
}

}  // namespace

ExpectedTree generation_tree(const Prefix& prefix, const GenerationRecord& record, const ItemRecords& records) {
  bundle::Environment environment;
  environment.interpreter = bundle::SafePath::parse(record.interpreter, "interpreter");
  environment.site_packages = bundle::SafePath::parse(record.site_packages, "site_packages");
  std::deque<bundle::Entry> entries;
  std::vector<UnpackedEntry> unpacked;
  for (const GenerationRecord::Part& part : record.entries) {
    const ItemRecord& item = records.at(part.item);
    entries.push_back(
        {.path = bundle::SafePath::parse(part.path, "entries"), .kind = item.kind, .content = item.content});
    unpacked.push_back({.entry = &entries.back(),
                        .into = part.into,
                        .item = prefix.store() / part.item,
                        .record = item,
                        .left_out = part.left_out,
                        .shared = part.shared});
  }
  ExpectedTree tree{.folder = prefix.generation(record.number),
                    .layout = lay_out(environment, std::move(unpacked)),
                    .own = {std::string(bundle::kGenerationRecord)}};
  if (record.bytecode) add_bytecode(tree);
  return tree;
}

}  // namespace sealift::installer
