// SPDX-License-Identifier: Apache-2.0
// Order: the prefix's own folders -> the store -> each generation, one at a time -> the libraries that the current
// generation's interpreter loads. Records of store items come first, since generations are laid out from them.
#include "installer/doctor/checkup.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "installer/prefix/prefix_owner.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::ErrorCode;
using Kind = Deviation::Kind;

namespace {

// The store's owner; somebody else may have made the prefix's own folder.
uid_t owner_of(const Prefix& prefix) {
  struct stat status {};
  if (::lstat(prefix.store().c_str(), &status) == 0) return status.st_uid;
  return ::geteuid();
}

}  // namespace

PrefixCheckup::PrefixCheckup(const Prefix& prefix, unsigned threads, const ItemRecords& signed_records,
                             bundle::Progress& progress)
    : prefix_(prefix),
      signed_(signed_records),
      status_(status_of(prefix_)),
      comparer_(prefix_, owner_of(prefix_), threads, progress) {}

Checkup PrefixCheckup::run() {
  check_own_folders();
  check_items();
  for (const Status::Generation& generation : status_.generations) check_generation(generation);
  checkup_.files = comparer_.files();
  checkup_.bytes = comparer_.bytes();
  checkup_.findings = comparer_.take();
  check_libraries();
  return std::move(checkup_);
}

void PrefixCheckup::find(Kind kind, std::string path, std::string expected, std::string got) {
  comparer_.add({.kind = kind, .paths = {std::move(path)}, .expected = std::move(expected), .got = std::move(got)});
}

// A user who may write into one of these folders can replace anything in it.
void PrefixCheckup::check_own_folders() {
  for (const fs::path& folder : {prefix_.store(), prefix_.generations()}) {
    struct stat status {};
    if (::lstat(folder.c_str(), &status) != 0 || (status.st_mode & 022) == 0) continue;
    find(Kind::Mode, folder.filename().string(), "writable by its owner only", "writable by others");
  }
  if (status_.current && std::none_of(status_.generations.begin(), status_.generations.end(),
                                      [&](const auto& generation) { return generation.number == status_.current; }))
    find(Kind::Missing, "generations/" + Prefix::generation_name(*status_.current),
         "the generation that `current` names", "nothing");
}

void PrefixCheckup::check_items() {
  std::vector<ExpectedTree> trees;
  for (const std::string& name : item_names(prefix_)) {
    const fs::path folder = prefix_.store() / name;
    const auto truth = signed_.find(name);
    std::optional<ItemRecord> record;
    try {
      record = read_item_record(folder / kRecordName);
      const std::string hex = record->content.hex();
      if (!name.starts_with(hex)) {
        find(Kind::Changed, "store/" + name + "/record.json", "the record of " + name, "that of " + hex);
        record.reset();
      }
    } catch (const bundle::Error& error) {
      const bool missing = error.code() == ErrorCode::Missing;
      find(missing ? Kind::Missing : Kind::Changed, "store/" + name + "/record.json", "the item's record",
           missing ? "nothing" : error.facts().what);
    }
    if (truth != signed_.end()) {
      ++checkup_.signed_items;
      ItemRecord expected = truth->second;
      if (record) expected.name = record->name;  // another bundle may have given the same bytes another name
      if (record && *record != expected)
        find(Kind::Changed, "store/" + name + "/record.json", "what the signed entry unpacks to", "something else");
      record = truth->second;
    }
    if (!record) continue;
    trees.push_back(item_tree(folder, *record));
    records_.emplace(name, *std::move(record));
  }
  checkup_.items = trees.size();
  comparer_.compare(trees);
}

void PrefixCheckup::check_generation(const Status::Generation& generation) {
  const std::string folder = "generations/" + Prefix::generation_name(generation.number);
  const std::string record_path = folder + "/" + std::string(bundle::kGenerationRecord);
  ++checkup_.generations;
  if (!generation.record) return find(Kind::Changed, record_path, "the generation's record", generation.fault);
  const GenerationRecord& record = *generation.record;
  bool complete = true;
  for (const GenerationRecord::Part& part : record.entries) {
    if (records_.contains(part.item)) continue;
    complete = false;
    if (std::error_code ignored; !fs::exists(prefix_.store() / part.item, ignored) && missing_.insert(part.item).second)
      find(Kind::Missing, "store/" + part.item, part.path + " of generation " + std::to_string(record.number),
           "nothing");
  }
  if (record.site_packages.empty())
    return find(Kind::Unknown, record_path, "where its entries lie", "an older version wrote this record");
  if (!complete) return find(Kind::Unknown, folder, "a store that has its items", "items are missing or damaged");
  if (record.bytecode)
    note("generation " + std::to_string(record.number) +
         ": the bytecode that apply made (__pycache__) was not compared: nobody signed it");
  try {
    const ExpectedTree tree = generation_tree(prefix_, record, records_);
    comparer_.compare({tree});
    for (CopiedFile& copy : copied_files(tree)) checkup_.copies.push_back(std::move(copy));
  } catch (const bundle::Error& error) {
    find(Kind::Changed, record_path, "a record that makes one environment", error.facts().what);
  }
}

// Of the current generation, and only if its files are unchanged: a changed interpreter is never started.
void PrefixCheckup::check_libraries() {
  if (!status_.current)
    return note(status_.generations.empty() ? "no generation is installed here"
                                            : "no generation is current; sealift-install switch makes one so");
  const auto current = std::find_if(status_.generations.begin(), status_.generations.end(),
                                    [&](const auto& generation) { return generation.number == status_.current; });
  if (current == status_.generations.end() || !current->record) return;
  const GenerationRecord& record = *current->record;
  const std::string folder = "generations/" + Prefix::generation_name(record.number);
  if (!is_own_prefix(prefix_))
    return note(
        "the interpreter was not started: the prefix belongs to another user, whose code this user does not run");
  if (record.interpreter.empty() || record.self_check.imports.empty())
    return note("the interpreter was not started: the bundle names no imports");
  for (const Deviation& finding : checkup_.findings)
    for (const std::string& path : finding.paths)
      if (path.starts_with(folder)) return note("the interpreter was not started, since its generation is not whole");
  checkup_.libraries =
      loaded_libraries(prefix_.generation(record.number), record.interpreter, record.self_check.imports);
  const auto add = [&](Kind kind, const std::string& path, const std::string& expected, const std::string& got) {
    checkup_.findings.push_back({.kind = kind, .paths = {path}, .expected = expected, .got = got});
  };
  if (!checkup_.libraries->fault.empty())
    add(Kind::Broken, folder + "/" + record.interpreter, "what the bundle names to be imported",
        checkup_.libraries->fault);
  for (const std::string& path : checkup_.libraries->outside)
    add(Kind::Outside, path, "libraries of " + folder + ", the C library and the GPU's driver", "this one is loaded");
}

void PrefixCheckup::note(std::string text) {
  checkup_.notes.push_back(std::move(text));
}

}  // namespace sealift::installer
