// SPDX-License-Identifier: Apache-2.0
// Lock and cache -> plan; see pack_plan.hpp.
#include "packager/pack/pack_plan.hpp"

#include <algorithm>
#include <set>

#include "packager/debian/apt_files.hpp"
#include "packager/job/path_owners.hpp"
#include "packager/models/model_files.hpp"
#include "packager/native/carried_runtime.hpp"
#include "sealift/bundle/archive/tar.hpp"
#include "sealift/bundle/wheel/installed_path.hpp"
#include "sealift/bundle/wheel/package_owners.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Encoding;
using bundle::EntryKind;
using bundle::Error;
using bundle::ErrorCode;
using bundle::SafePath;

namespace {

constexpr std::uint64_t kBlock = 4096;  // what a file takes at least on the usual file systems

// A wheel's file below site-packages, to be claimed for its package once it is known who owns it.
struct PackagedPath {
  std::string place;  // below the root
  std::string path;   // below site-packages
  const std::string& wheel;
};

// Counts what an entry becomes once it is installed, and claims its paths.
class Installed {
 public:
  Installed(PathOwners& owners, std::string owner) : owners_(owners), owner_(std::move(owner)) {}

  void folder(const std::string& path) {
    if (folders_.insert(path).second) size_ += kBlock;
  }
  void file(const std::string& path, std::uint64_t size) {
    for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
      folder(path.substr(0, slash));
    owners_.claim(path, owner_);
    ++files_;
    size_ += (size + kBlock - 1) / kBlock * kBlock;
  }
  void put_into(bundle::Entry& entry) const {
    entry.installed_size = size_;
    entry.installed_files = files_ + folders_.size();
  }

 private:
  PathOwners& owners_;
  std::string owner_;
  std::set<std::string> folders_;
  std::uint64_t files_ = 0;
  std::uint64_t size_ = 0;
};

PlannedEntry plan_wheel(const LockedWheel& locked, const Lock& lock, const Cache& cache, PathOwners& owners,
                        std::vector<PackagedPath>& packages, std::set<std::string>& libraries) {
  PlannedEntry planned{.draft = {}, .file = cache.path(locked.sha256)};
  bundle::FileSource source(planned.file);
  const bundle::Wheel wheel(source, locked.file_name);
  bundle::Entry& entry = planned.draft;
  entry.path = SafePath::parse("wheels/" + locked.file_name, "lock");
  entry.kind = EntryKind::Wheel;
  entry.size = source.size();
  entry.sha256 = locked.sha256;
  Installed installed(owners, locked.file_name);
  for (const bundle::WheelFile& file : wheel.files()) {
    const std::string place =
        bundle::installed_path(file.scheme, file.path, wheel.dist_info(), bundle::site_packages_of(lock.python));
    installed.file(place, file.member.size);
    if (file.scheme == bundle::Scheme::SitePackages)
      packages.push_back({.place = place, .path = file.path, .wheel = locked.file_name});
    libraries.insert(fs::path(file.path).filename().string());
  }
  for (const bundle::EntryPoint& point : wheel.entry_points()) installed.file("bin/" + point.script, 1);
  const std::string info = "lib/python" + lock.python + "/site-packages/" + wheel.dist_info();
  installed.file(info + "/RECORD", wheel.files().size() * 160);
  if (std::none_of(wheel.files().begin(), wheel.files().end(),
                   [&](const bundle::WheelFile& file) { return file.path == wheel.dist_info() + "/INSTALLER"; }))
    installed.file(info + "/INSTALLER", 1);
  installed.put_into(entry);
  return planned;
}

PlannedEntry plan_interpreter(const Lock& lock, const Cache& cache, PathOwners& owners) {
  const LockedInterpreter& locked = lock.interpreter;
  PlannedEntry planned{.draft = {}, .file = cache.path(locked.sha256)};
  if (const bundle::Digest digest = digest_of_file(planned.file); digest != locked.sha256)
    throw Error(ErrorCode::Digest, {.what = "the interpreter in the cache is damaged",
                                    .where = planned.file.string(),
                                    .expected = "sha256 " + locked.sha256.hex(),
                                    .got = "sha256 " + digest.hex(),
                                    .next = "remove it and run sealift-pack lock again"});
  bundle::Entry& entry = planned.draft;
  entry.path = SafePath::parse("python/cpython-" + locked.version + ".tar", "lock");
  entry.kind = EntryKind::Tree;
  entry.size = locked.size;
  entry.sha256 = locked.sha256;
  entry.encoding = Encoding::Zstd;
  Installed installed(owners, "the interpreter");
  bool carries_runtime = false;
  bundle::TarReader reader({.begin =
                                [&](const bundle::TarMember& member) {
                                  carries_runtime = carries_runtime || is_runtime_file(member.path);
                                  if (member.type == bundle::TarType::Folder)
                                    installed.folder(member.path);
                                  else
                                    installed.file(member.path, member.size);
                                },
                            .data = [](bundle::ByteView) {}},
                           planned.file.string());
  bundle::FileSource source(planned.file);
  for (std::uint64_t offset = 0; offset < source.size();) {
    const bundle::ByteView piece = source.view(offset, std::size_t{1} << 20);
    reader.feed(piece);
    offset += piece.size();
  }
  reader.finish();
  if (carries_runtime != lock.runtime.has_value())
    throw Error(ErrorCode::Format, {.what = "lock and interpreter do not agree whether glibc is carried",
                                    .where = planned.file.string(),
                                    .expected = lock.runtime ? "a glibc" : "no glibc",
                                    .next = "run sealift-pack lock again"});
  installed.put_into(entry);
  return planned;
}

PlannedEntry plan_program(const LockedProgram& locked, PathOwners& owners) {
  PlannedEntry planned{.draft = {}, .file = locked.source};
  if (const bundle::Digest digest = digest_of_file(locked.source); digest != locked.sha256)
    throw Error(ErrorCode::Digest, {.what = "a program changed after it was locked",
                                    .where = locked.source.string(),
                                    .expected = "sha256 " + locked.sha256.hex(),
                                    .got = "sha256 " + digest.hex(),
                                    .next = "run sealift-pack lock again"});
  bundle::Entry& entry = planned.draft;
  entry.path = SafePath::parse("programs/" + locked.into, "lock");
  entry.kind = EntryKind::File;
  entry.size = locked.size;
  entry.sha256 = locked.sha256;
  entry.encoding = Encoding::Zstd;
  entry.executable = locked.executable;
  Installed installed(owners, "the program " + locked.into);
  installed.file(locked.into, locked.size);
  installed.put_into(entry);
  return planned;
}

// Stored as it is: weights and Debian packages do not shrink. Its digest is checked while it is written, so that it is
// read only once.
PlannedEntry plan_placed_file(const PlacedFile& placed, const std::string& owner, PathOwners& owners) {
  PlannedEntry planned{.draft = {}, .file = placed.source};
  bundle::Entry& entry = planned.draft;
  entry.path = SafePath::parse("files/" + placed.into, "lock");
  entry.kind = EntryKind::File;
  entry.size = placed.file.size;
  entry.sha256 = placed.file.sha256;
  Installed installed(owners, owner);
  installed.file(placed.into, placed.file.size);
  installed.put_into(entry);
  return planned;
}

// A file that is left out is nobody's guest.
void check_packages(const std::vector<PackagedPath>& files, const LeftOut& left_out) {
  bundle::PackageOwners packages;
  for (const PackagedPath& file : files)
    if (const auto out = left_out.find(file.wheel); out == left_out.end() || !out->second.contains(file.place))
      packages.claim(file.path, file.wheel);
  packages.check();
}

void check_libraries(const Lock& lock, const std::set<std::string>& from_wheels) {
  for (const LockedProgram& program : lock.programs)
    for (const std::string& library : program.from_wheels)
      if (!from_wheels.contains(library))
        throw Error(
            ErrorCode::Missing,
            {.what = "a program needs a library that nothing brings",
             .where = program.source.string(),
             .expected = library + " in one of the wheels or on the packing machine",
             .next = "require the package that has it, or install the library and run sealift-pack lock again"});
}

}  // namespace

std::uint64_t PackPlan::size() const {
  std::uint64_t size = 0;
  std::set<bundle::Digest> seen;
  for (const PlannedEntry& entry : entries)
    if (!entry.draft.absent && seen.insert(entry.draft.sha256).second) size += entry.draft.size;
  return size;
}

void require_inputs(const Lock& lock, const Cache& cache) {
  if (!cache.contains(lock.interpreter.sha256))
    throw Error(ErrorCode::Missing,
                {.what = "the interpreter that was locked is not in the cache",
                 .where = cache.path(lock.interpreter.sha256).string(),
                 .expected = lock.interpreter.description + ", sha256 " + lock.interpreter.sha256.hex(),
                 .next = "run sealift-pack lock again with the same --cache"});
  for (const LockedProgram& program : lock.programs)
    if (!fs::is_regular_file(program.source))
      throw Error(ErrorCode::Missing, {.what = "a program that was locked is gone",
                                       .where = program.source.string(),
                                       .expected = "sha256 " + program.sha256.hex(),
                                       .next = "build it and run sealift-pack lock again"});
  require_folders(lock.models);
  require_index(lock.apt, cache);
}

PackPlan plan_pack(const Lock& lock, const Cache& cache, const Companions& companions) {
  require_inputs(lock, cache);
  PackPlan plan;
  PathOwners owners;
  std::vector<PackagedPath> packages;
  std::set<std::string> libraries;
  owners.claim(std::string(bundle::kGenerationRecord), "the installer's own record");
  plan.entries.push_back(plan_interpreter(lock, cache, owners));
  for (const LockedWheel& wheel : lock.wheels)
    plan.entries.push_back(plan_wheel(wheel, lock, cache, owners, packages, libraries));
  for (const LockedProgram& program : lock.programs) plan.entries.push_back(plan_program(program, owners));
  for (const LockedModel& model : lock.models)
    for (const PlacedFile& placed : place_files(model, cache))
      plan.entries.push_back(plan_placed_file(placed, model.spec.title(), owners));
  for (const PlacedFile& placed : place_files(lock.apt, cache))
    plan.entries.push_back(plan_placed_file(placed, "the Debian packages", owners));
  const std::string site_packages = "lib/python" + lock.python + "/site-packages";
  plan.left_out = settle(owners, lock.owners, site_packages);
  owners.check();
  check_packages(packages, plan.left_out);
  check_libraries(lock, libraries);
  std::sort(plan.entries.begin(), plan.entries.end(),
            [](const PlannedEntry& a, const PlannedEntry& b) { return a.draft.path < b.draft.path; });

  bundle::Manifest& draft = plan.draft;
  draft.name = lock.name;
  draft.channel = lock.channel;
  draft.version = lock.version;
  draft.created = lock.created;
  draft.rollback_floor = lock.rollback_floor;
  draft.payload.digest = lock.payload_digest;
  draft.target = {.arch = lock.target.arch, .glibc = lock.target.glibc};  // what a manifest carries
  draft.glibc_floor = lock.glibc_floor;
  draft.environment.interpreter = SafePath::parse("bin/python" + lock.python, "lock");
  draft.environment.site_packages = SafePath::parse(site_packages, "lock");
  draft.environment.imports = lock.imports;
  draft.environment.runtime = lock.runtime;
  for (const PlannedEntry& entry : plan.entries) {
    const std::string path = entry.draft.path.text();
    const bool program = entry.draft.kind == EntryKind::File;
    draft.environment.placements.push_back(
        {.entry = entry.draft.path, .into = program ? path.substr(path.find('/') + 1) : ""});
    if (entry.draft.kind != EntryKind::Wheel) continue;
    if (const auto out = plan.left_out.find(path.substr(path.rfind('/') + 1)); out != plan.left_out.end())
      for (const std::string& place : out->second)
        draft.environment.placements.back().left_out.push_back(SafePath::parse(place, "lock"));
  }
  for (const auto& [name, file] : companions) {
    draft.companions.push_back({.name = name, .size = fs::file_size(file), .sha256 = digest_of_file(file)});
    plan.companions.push_back(file);
  }
  return plan;
}

}  // namespace sealift::packager
