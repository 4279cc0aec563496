// SPDX-License-Identifier: Apache-2.0
// Order: the bundle, if there is one -> the store -> each generation, one at a time -> the libraries that its
// interpreter loads -> repair -> look again, until nothing more can be put right.
#include "installer/doctor/doctor.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "installer/prefix/lock.hpp"
#include "installer/doctor/repair.hpp"
#include "installer/doctor/expected_tree.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::ErrorCode;
using Kind = Deviation::Kind;

namespace {

constexpr int kRounds = 3;  // a missing item hides what is wrong with its generations

class Look {
 public:
  Look(const DoctorOptions& options, const ItemRecords& signed_records, Progress& progress)
      : prefix_(options.prefix),
        signed_(signed_records),
        status_(status_of(prefix_)),
        examiner_(prefix_, owner_of(prefix_), options.threads, progress) {}

  Checkup run() {
    check_own_folders();
    check_items();
    for (const Status::Generation& generation : status_.generations) check_generation(generation);
    checkup_.files = examiner_.files();
    checkup_.bytes = examiner_.bytes();
    checkup_.findings = examiner_.take();
    check_libraries();
    return std::move(checkup_);
  }
  const ItemRecords& records() const { return records_; }
  const Status& status() const { return status_; }

 private:
  // Whoever made the store; the prefix itself may have been made by somebody else.
  static uid_t owner_of(const Prefix& prefix) {
    struct stat status {};
    if (::lstat(prefix.store().c_str(), &status) == 0) return status.st_uid;
    return ::geteuid();
  }

  void find(Kind kind, std::string path, std::string expected, std::string got) {
    examiner_.add({.kind = kind, .paths = {std::move(path)}, .expected = std::move(expected), .got = std::move(got)});
  }

  // Who may write into one of these may replace anything.
  void check_own_folders() {
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

  void check_items() {
    std::vector<Tree> trees;
    for (const std::string& name : item_names(prefix_)) {
      const fs::path root = prefix_.store() / name;
      const auto truth = signed_.find(name);
      std::optional<ItemRecord> record;
      try {
        record = read_item_record(root / kRecordName);
        const std::string hex = record->sha256.hex();
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
        if (record) expected.name = record->name;  // another bundle may call the same bytes otherwise
        if (record && *record != expected)
          find(Kind::Changed, "store/" + name + "/record.json", "what the signed entry unpacks to", "something else");
        record = truth->second;
      }
      if (!record) continue;
      trees.push_back(item_tree(root, *record));
      records_.emplace(name, *std::move(record));
    }
    checkup_.items = trees.size();
    examiner_.examine(trees);
  }

  void check_generation(const Status::Generation& generation) {
    const std::string root = "generations/" + Prefix::generation_name(generation.number);
    const std::string record_path = root + "/" + std::string(bundle::kGenerationRecord);
    ++checkup_.generations;
    if (!generation.record) return find(Kind::Changed, record_path, "the generation's record", generation.fault);
    const GenerationRecord& record = *generation.record;
    bool complete = true;
    for (const GenerationRecord::Part& part : record.entries) {
      if (records_.contains(part.item)) continue;
      complete = false;
      if (std::error_code ignored;
          !fs::exists(prefix_.store() / part.item, ignored) && missing_.insert(part.item).second)
        find(Kind::Missing, "store/" + part.item, part.path + " of generation " + std::to_string(record.number),
             "nothing");
    }
    if (record.site_packages.empty())
      return find(Kind::Unknown, record_path, "where its entries lie", "an older version wrote this record");
    if (!complete) return find(Kind::Unknown, root, "a store that has its items", "items are missing or damaged");
    if (record.bytecode)
      note("generation " + std::to_string(record.number) +
           ": the bytecode that apply made (__pycache__) was not compared: nobody signed it");
    try {
      examiner_.examine({generation_tree(prefix_, record, records_)});
    } catch (const bundle::Error& error) {
      find(Kind::Changed, record_path, "a record that makes one environment", error.facts().what);
    }
  }

  // Of the current generation, and only if its files are right: nothing that was changed is started.
  void check_libraries() {
    const auto current = std::find_if(status_.generations.begin(), status_.generations.end(),
                                      [&](const auto& generation) { return generation.number == status_.current; });
    if (current == status_.generations.end() || !current->record) return;
    const GenerationRecord& record = *current->record;
    const std::string root = "generations/" + Prefix::generation_name(record.number);
    if (record.interpreter.empty() || record.self_test.imports.empty())
      return note("the interpreter was not started: the bundle names no imports");
    for (const Deviation& finding : checkup_.findings)
      for (const std::string& path : finding.paths)
        if (path.starts_with(root)) return note("the interpreter was not started, since its generation is not whole");
    checkup_.libraries =
        loaded_libraries(prefix_.generation(record.number), record.interpreter, record.self_test.imports);
    const auto add = [&](Kind kind, const std::string& path, const std::string& expected, const std::string& got) {
      checkup_.findings.push_back({.kind = kind, .paths = {path}, .expected = expected, .got = got});
    };
    if (!checkup_.libraries->fault.empty())
      add(Kind::Broken, root + "/" + record.interpreter, "what the bundle names to be imported",
          checkup_.libraries->fault);
    for (const std::string& path : checkup_.libraries->outside)
      add(Kind::Outside, path, "libraries of " + root + ", the C library and the GPU's driver", "this one is loaded");
  }

  void note(std::string text) { checkup_.notes.push_back(std::move(text)); }

  const Prefix& prefix_;
  const ItemRecords& signed_;
  Status status_;
  Examiner examiner_;
  ItemRecords records_;
  std::set<std::string> missing_;
  Checkup checkup_;
};

// A generation's own bundle may be older than what was accepted since: it is not taken in, only compared with.
bundle::VerifiedBundle open_for_repair(const DoctorOptions& options, const Status& status) {
  const bundle::OpenBundle opened = bundle::open(options.repair);
  const bundle::Digest identity = opened.seal.manifest.digest();
  const bool installed = std::any_of(status.generations.begin(), status.generations.end(), [&](const auto& generation) {
    return generation.record && generation.record->identity == identity;
  });
  return bundle::verify(
      opened, {.state = bundle::trust_for_run(options.prefix.trust(), std::nullopt), .allow_downgrade = installed},
      options.now);
}

void check_owner(const Prefix& prefix) {
  struct stat status {};
  if (::lstat(prefix.store().c_str(), &status) != 0 || status.st_uid == ::geteuid()) return;
  throw bundle::Error(ErrorCode::Usage, {.what = "the prefix belongs to another user, so repaired files would too",
                                         .where = prefix.store().string(),
                                         .expected = "user " + std::to_string(status.st_uid),
                                         .got = "user " + std::to_string(::geteuid()),
                                         .next = "run this as that user"});
}

bool can_be_put_right(const Deviation& finding) {
  return finding.kind != Kind::Outside && finding.kind != Kind::Broken;
}

// Takes no lock, so that whoever may read can look. Somebody may then change the prefix meanwhile, and what is not
// there may be no more than that: nobody is told that a file is missing which gc has just removed.
Checkup look_without_lock(const DoctorOptions& options, Progress& progress) {
  const auto names = [&] { return std::pair(generation_numbers(options.prefix), item_names(options.prefix)); };
  const auto before = names();
  Checkup checkup = Look(options, {}, progress).run();
  const bool may_be_passing =
      std::any_of(checkup.findings.begin(), checkup.findings.end(), [](const Deviation& finding) {
        return finding.kind == Kind::Missing || finding.kind == Kind::Unknown || finding.kind == Kind::Broken;
      });
  // An inode that gc gave back may be another file by now: where names changed, no finding is sure.
  if ((may_be_passing && PrefixLock::is_held(options.prefix)) || (!checkup.findings.empty() && names() != before))
    PrefixLock::throw_held(options.prefix, "somebody else changed this prefix while it was looked at");
  return checkup;
}

}  // namespace

Checkup doctor(const DoctorOptions& options, Disk& disk, Progress& progress) {
  const Status status = status_of(options.prefix);
  if (options.repair.empty()) return look_without_lock(options, progress);
  check_owner(options.prefix);
  const PrefixLock lock(options.prefix, disk, "doctor");
  sweep(options.prefix, disk);
  const bundle::VerifiedBundle bundle = open_for_repair(options, status);
  const ItemRecords signed_by = signed_records(bundle, options.threads, progress);
  std::vector<Deviation> repaired;
  std::vector<std::string> wrong_before;
  for (int round = 0;; ++round) {
    Look look(options, signed_by, progress);
    Checkup checkup = look.run();
    std::vector<std::string> wrong;
    for (const Deviation& finding : checkup.findings)
      if (can_be_put_right(finding)) wrong.insert(wrong.end(), finding.paths.begin(), finding.paths.end());
    if (wrong.empty() || wrong == std::exchange(wrong_before, wrong) || round == kRounds) {
      // What is still wrong was not repaired.
      std::erase_if(repaired, [&](const Deviation& before) {
        return std::any_of(checkup.findings.begin(), checkup.findings.end(),
                           [&](const Deviation& now) { return now.paths.front() == before.paths.front(); });
      });
      checkup.repaired = std::move(repaired);
      return checkup;
    }
    ItemRecords records = look.records();
    for (const auto& [name, record] : signed_by) records.insert_or_assign(name, record);
    repair(checkup.findings, bundle, records, look.status(), options.prefix, disk, progress);
    for (Deviation& finding : checkup.findings)
      if (can_be_put_right(finding)) repaired.push_back(std::move(finding));
  }
}

std::optional<ErrorCode> verdict(const Checkup& checkup) {
  const auto any = [&](auto... kinds) {
    return std::any_of(checkup.findings.begin(), checkup.findings.end(),
                       [&](const Deviation& finding) { return ((finding.kind == kinds) || ...); });
  };
  if (any(Kind::Changed, Kind::Extra, Kind::Mode, Kind::Owner)) return ErrorCode::Digest;
  if (any(Kind::Missing)) return ErrorCode::Missing;
  if (any(Kind::Outside, Kind::Broken)) return ErrorCode::SelfTest;
  if (any(Kind::Unknown)) return ErrorCode::CannotCheck;
  return std::nullopt;
}

}  // namespace sealift::installer
