// SPDX-License-Identifier: Apache-2.0
// With a bundle: verify it -> check the prefix -> repair -> check again, until nothing more can be put right. Several
// rounds, since a missing store item hides what is wrong with its generations.
#include "installer/doctor/doctor.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "installer/doctor/repair.hpp"
#include "installer/generations/generation.hpp"
#include "installer/host/mending.hpp"
#include "installer/prefix/prefix_lock.hpp"
#include "installer/store/stamps.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::ErrorCode;
using Kind = Deviation::Kind;

namespace {

constexpr int kRounds = 3;

// Which copy of an installed bundle would do, where this one was signed by a key that the site has withdrawn since, or
// was withdrawn itself; empty: by the newest accepted root neither holds.
std::string copy_needed(const GenerationRecord::Bundle& record, unsigned generation, const fs::path& seal,
                        const bundle::TrustState& trust) {
  const bundle::Root root = bundle::parse_root(trust.root, "the newest accepted root");
  const std::string identity = bundle::fingerprint_text(record.identity);
  if (root.revoked_bundles.contains(record.identity))
    return "no copy of " + record.name + "-" + std::to_string(record.version) + ", " + identity +
           ", is accepted any more: apply another version, and gc takes "
           "generation " +
           Prefix::generation_name(generation);
  const auto withdrawn = [&](const bundle::Digest& key) { return root.revoked_keys.contains(key); };
  if (std::none_of(record.signers.begin(), record.signers.end(), withdrawn)) return {};
  std::string signers;
  for (const auto& [name, role] : root.roles) {
    if (name == bundle::kRootRole) continue;
    signers += (signers.empty() ? "" : ", and ") + std::to_string(role.threshold) + " of the " + name + " keys";
    for (const bundle::Digest& key : role.keys) signers += " " + bundle::fingerprint_text(key);
  }
  return "ask the sender for " + seal.filename().string() + " of the same bundle, " + identity + ", signed anew by " +
         signers + " (sealift-pack sign BUNDLE); put it in the place of " + seal.string() +
         ", in a copy of the folder where the medium cannot be written: the volumes stay";
}

// The bundle of an installed generation may be older than what was accepted since; it is only compared with, so a
// downgrade is allowed for it.
bundle::VerifiedBundle open_for_repair(const DoctorOptions& options, const Status& status) {
  bundle::OpenBundle opened = bundle::open(options.repair);
  opened.mending = mending_here(options.repair, {}, shell_option("--prefix", options.prefix.folder()));
  const bundle::Digest identity = opened.seal.manifest.digest();
  std::optional<std::pair<unsigned, GenerationRecord::Bundle>> installed;  // with its generation
  for (const Status::Generation& generation : status.generations)
    for (const GenerationRecord::Bundle& one :
         generation.record ? bundles_of(*generation.record) : std::vector<GenerationRecord::Bundle>{})
      if (one.identity == identity && !installed) installed.emplace(generation.number, one);
  const bool known = installed.has_value();
  const bundle::TrustState trust = bundle::trust_for_run(options.prefix.trust(), std::nullopt);
  try {
    return bundle::verify(opened, {.state = trust, .allow_downgrade = known}, options.now);
  } catch (const bundle::Error& error) {
    if (!known || error.code() != ErrorCode::Revoked || trust.root.empty()) throw;
    bundle::Facts facts = error.facts();
    if (auto next = copy_needed(installed->second, installed->first, opened.seal_path, trust); !next.empty())
      facts.next = next;
    throw bundle::Error(ErrorCode::Revoked, std::move(facts));
  }
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

// What is compared with the bundle here may get another record; the next apply hashes these items and stamps them anew.
void forget_stamps(const ItemRecords& items, const Prefix& prefix, Disk& disk) {
  Stamps stamps = Stamps::read(prefix);
  for (const auto& [name, record] : items) stamps.forget(name);
  disk.make_folder(prefix.staging());
  const fs::path work = prefix.staging() / "doctor";
  disk.make_folder(work);
  stamps.save(prefix, work, disk);
  sweep(prefix, disk);
}

bool can_be_put_right(const Deviation& finding) {
  return finding.kind != Kind::Outside && finding.kind != Kind::Broken;
}

// Takes no prefix lock, so that every user who may read the prefix can check it. Another run may change the prefix
// meanwhile; then this refuses, instead of reporting a file as missing that gc has just removed.
Checkup check_without_lock(const DoctorOptions& options, bundle::Progress& progress) {
  const auto names = [&] { return std::pair(generation_numbers(options.prefix), item_names(options.prefix)); };
  const auto before = names();
  Checkup checkup = PrefixCheckup(options.prefix, options.threads, {}, progress).run();
  const bool may_be_passing =
      std::any_of(checkup.findings.begin(), checkup.findings.end(), [](const Deviation& finding) {
        return finding.kind == Kind::Missing || finding.kind == Kind::Unknown || finding.kind == Kind::Broken;
      });
  // The inode of a file that gc removed may belong to another one by now: where names changed, no finding is certain.
  if ((may_be_passing && PrefixLock::is_held(options.prefix)) || (!checkup.findings.empty() && names() != before))
    PrefixLock::throw_held(options.prefix, "somebody else changed this prefix while it was being checked");
  return checkup;
}

// Checks and repairs until nothing more can be put right.
Checkup repair_rounds(const DoctorOptions& options, const Status& status, Disk& disk, bundle::Progress& progress) {
  const bundle::VerifiedBundle bundle = open_for_repair(options, status);
  const ItemRecords signed_by = signed_records(bundle, options.threads, progress);
  forget_stamps(signed_by, options.prefix, disk);
  std::vector<Deviation> repaired;
  std::vector<std::string> wrong_before;
  for (int round = 0;; ++round) {
    PrefixCheckup round_checkup(options.prefix, options.threads, signed_by, progress);
    Checkup checkup = round_checkup.run();
    std::vector<std::string> wrong;
    for (const Deviation& finding : checkup.findings)
      if (can_be_put_right(finding)) wrong.insert(wrong.end(), finding.paths.begin(), finding.paths.end());
    if (wrong.empty() || wrong == std::exchange(wrong_before, wrong) || round == kRounds) {
      std::erase_if(repaired, [&](const Deviation& before) {
        return std::any_of(checkup.findings.begin(), checkup.findings.end(),
                           [&](const Deviation& now) { return now.paths.front() == before.paths.front(); });
      });
      checkup.repaired = std::move(repaired);
      return checkup;
    }
    ItemRecords records = round_checkup.records();
    for (const auto& [name, record] : signed_by) records.insert_or_assign(name, record);
    repair(checkup.findings, bundle, records, round_checkup.status(), options.prefix, disk, progress);
    for (Deviation& finding : checkup.findings)
      if (can_be_put_right(finding)) repaired.push_back(std::move(finding));
  }
}

// The undamaged copies, in the generation and in the store.
void leave_out_wrong(Checkup& checkup, const Prefix& prefix) {
  std::set<fs::path> wrong;
  for (const Deviation& finding : checkup.findings)
    for (const std::string& path : finding.paths) wrong.insert(prefix.folder() / path);
  const auto is_wrong = [&](fs::path path) {
    for (; path != prefix.folder() && path.has_relative_path(); path = path.parent_path())
      if (wrong.contains(path)) return true;
    return false;
  };
  std::erase_if(checkup.copies, [&](const CopiedFile& copy) { return is_wrong(copy.path) || is_wrong(copy.source); });
}

}  // namespace

Checkup doctor(const DoctorOptions& options, Disk& disk, bundle::Progress& progress) {
  const Status status = status_of(options.prefix);
  if (options.repair.empty() && !options.relink) return check_without_lock(options, progress);
  check_owner(options.prefix);
  const PrefixLock lock(options.prefix, disk, "doctor");
  sweep(options.prefix, disk);
  Checkup checkup = options.repair.empty() ? PrefixCheckup(options.prefix, options.threads, {}, progress).run()
                                           : repair_rounds(options, status, disk, progress);
  if (options.relink) {
    leave_out_wrong(checkup, options.prefix);
    checkup.relinked = relink(checkup.copies, options.prefix, disk);
  }
  return checkup;
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
