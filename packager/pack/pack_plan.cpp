// SPDX-License-Identifier: Apache-2.0
// Lock, contents and cache -> plan; see pack_plan.hpp.
#include "packager/pack/pack_plan.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include "packager/owners/installed_content.hpp"
#include "packager/owners/place_claims.hpp"
#include "packager/owners/wheel_faults.hpp"
#include "sealift/bundle/core/parallel_for.hpp"
#include "sealift/bundle/wheel/installed_path.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Encoding;
using bundle::EntryKind;
using bundle::Error;
using bundle::SafePath;

namespace {

bool is_tree(Content::Kind kind) {
  return kind == Content::Kind::Interpreter || kind == Content::Kind::Tree;
}

// What the interpreter and a program can gain, they gain; wheels are compressed already.
Encoding encoding_of(Content::Kind kind) {
  return is_tree(kind) || kind == Content::Kind::Program ? Encoding::Zstd : Encoding::Identity;
}

EntryKind entry_kind_of(Content::Kind kind) {
  return is_tree(kind) ? EntryKind::Tree : kind == Content::Kind::Wheel ? EntryKind::Wheel : EntryKind::File;
}

// Who built it, where that was the packer.
bundle::WheelBuild build_of(const Content& content) {
  const auto* source = std::get_if<FromSource>(&content.origin);
  if (source == nullptr) return bundle::WheelBuild::None;
  return source->wheel.built_from->sandboxed ? bundle::WheelBuild::Sandboxed : bundle::WheelBuild::Unsandboxed;
}

bundle::Entry draft_of(const Content& content, const fs::path& file, const Installed& installed) {
  bundle::Entry entry;
  entry.path = SafePath::parse(content.entry, "lock");
  entry.kind = entry_kind_of(content.kind);
  entry.size = content.kind == Content::Kind::Wheel ? fs::file_size(file) : content.size;  // an index may not tell it
  entry.sha256 = content.sha256;
  entry.encoding = encoding_of(content.kind);
  entry.executable = content.executable;
  entry.installed_size = installed.size;
  entry.installed_files = installed.files.size() + installed.folders.size();
  entry.build = build_of(content);
  return entry;
}

bundle::Manifest draft_of(const Lock& lock) {
  bundle::Manifest draft;
  draft.name = lock.name;
  draft.channel = lock.channel;
  draft.version = lock.version;
  draft.created = lock.created;
  draft.rollback_floor = lock.rollback_floor;
  draft.payload.digest = lock.payload_digest;
  draft.target = {.arch = lock.target.arch, .glibc = lock.target.glibc};  // what a manifest carries
  draft.glibc_floor = lock.glibc_floor;
  draft.overruled = lock.overruled;
  if (!lock.python.empty()) {
    draft.environment.interpreter = SafePath::parse("bin/python" + lock.python, "lock");
    draft.environment.site_packages = SafePath::parse(bundle::site_packages_of(lock.python), "lock");
  }
  draft.environment.imports = lock.imports;
  draft.environment.runtime = lock.runtime;
  for (const StartupRule& rule : lock.startup_files) draft.environment.startup_files.push_back(rule.sha256);
  std::sort(draft.environment.startup_files.begin(), draft.environment.startup_files.end());
  return draft;
}

std::vector<bundle::Environment::Placement> placements_of(const PackPlan& plan) {
  std::vector<bundle::Environment::Placement> placements;
  for (const PlannedEntry& entry : plan.entries) {
    if (!entry.content.is_installed()) continue;
    placements.push_back({.entry = entry.draft.path, .into = entry.content.into});
    if (const auto out = plan.left_out.find(entry.content.owner); out != plan.left_out.end())
      for (const std::string& place : out->second)
        placements.back().left_out.push_back(SafePath::parse_published(place, "lock"));
    if (const auto in = plan.shares.find(entry.content.owner); in != plan.shares.end())
      for (const std::string& folder : in->second)
        placements.back().shared.push_back(SafePath::parse_published(folder, "lock"));
  }
  return placements;
}

// Wheels' directories and the interpreter take longest.
std::vector<std::size_t> largest_first(const std::vector<Content>& contents) {
  std::vector<std::size_t> order(contents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return contents[a].size > contents[b].size; });
  return order;
}

}  // namespace

std::uint64_t PackPlan::payload_size() const {
  std::uint64_t size = 0;
  std::set<bundle::Digest> seen;
  for (const PlannedEntry& entry : entries)
    if (!entry.draft.absent && seen.insert(entry.draft.sha256).second)
      size += entry.draft.encoding == Encoding::Patch ? entry.draft.stored_size : entry.draft.size;
  return size;
}

std::uint64_t PackPlan::total_size() const {
  std::uint64_t size = payload_size() + payload_size() / 100 * recovery_percent;
  for (const bundle::Companion& companion : draft.companions) size += companion.size;
  return size;
}

PackPlan plan_pack(const Lock& lock, const std::vector<Content>& contents, const Companions& companions,
                   const Cache& cache, const Repair& repair) {
  PackPlan plan{.draft = draft_of(lock),
                .profile = lock.target,
                .host_libraries = lock.host_libraries,
                .system = lock.system,
                .python = lock.python,
                .entries = {},
                .companions = {},
                .left_out = {},
                .left_out_bytecode = 0};
  std::vector<Installed> installed(contents.size());
  const std::vector<std::size_t> order = largest_first(contents);
  WheelFaults faults(contents.size());
  bundle::parallel_for(std::thread::hardware_concurrency(), order.size(), [&](std::size_t turn) {
    const std::size_t i = order[turn];
    try {
      installed[i] = read_repaired(contents[i], repair, [&] { return install_content(contents[i], cache, lock); });
    } catch (const Error& error) {
      if (contents[i].kind != Content::Kind::Wheel || !faults.keep(i, contents[i].owner, error)) throw;
    }
  });
  faults.refuse();
  PlaceClaims claims(lock);
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const fs::path file = file_of(contents[i], cache);
    claims.claim(contents[i], installed[i]);
    plan.entries.push_back({.content = contents[i], .draft = draft_of(contents[i], file, installed[i]), .file = file});
  }
  PlaceClaims::Settled settled = claims.settle_owners();
  plan.left_out = std::move(settled.left_out);
  plan.shares = std::move(settled.shares);
  plan.unused = std::move(settled.unused);
  plan.left_out_bytecode = claims.left_out_bytecode();
  plan.misdescribed = claims.misdescribed();
  std::sort(plan.entries.begin(), plan.entries.end(),
            [](const PlannedEntry& a, const PlannedEntry& b) { return a.draft.path < b.draft.path; });
  plan.draft.environment.placements = placements_of(plan);
  for (const auto& [name, file] : companions) {
    plan.draft.companions.push_back({.name = name, .size = fs::file_size(file), .sha256 = digest_of_file(file)});
    plan.companions.push_back(file);
  }
  return plan;
}

}  // namespace sealift::packager
