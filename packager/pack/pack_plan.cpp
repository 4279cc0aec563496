// SPDX-License-Identifier: Apache-2.0
// Lock, contents and cache -> plan; see pack_plan.hpp.
#include "packager/pack/pack_plan.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include "packager/files/parallel_requests.hpp"
#include "packager/files/remote_file.hpp"
#include "packager/job/path_owners.hpp"
#include "packager/native/carried_runtime.hpp"
#include "packager/pack/wheel_faults.hpp"
#include "sealift/bundle/archive/tar.hpp"
#include "sealift/bundle/core/parallel_for.hpp"
#include "sealift/bundle/wheel/installed_path.hpp"
#include "sealift/bundle/wheel/package_owners.hpp"
#include "sealift/bundle/wheel/wheel.hpp"
#include "sealift/bundle/wheel/wheel_places.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Encoding;
using bundle::EntryKind;
using bundle::Error;
using bundle::ErrorCode;
using bundle::SafePath;

namespace {

constexpr unsigned kLooksAtOnce = 8;
constexpr std::uint64_t kBlock = 4096;  // what a file takes at least on the usual file systems

// What an entry becomes once it is installed: its paths, and the room that they take.
struct Installed {
  struct File {
    std::string place;                          // below the generation's root
    std::string packaged = {};                  // of a wheel's file in site-packages: its path there
    bool empty = false;                         // of that: it has no bytes
    std::optional<bundle::Digest> sha256 = {};  // of a wheel's file
  };

  std::vector<File> files;
  bundle::StartupEffects startup;    // of a wheel
  std::vector<std::string> may_run;  // its .pth files that the job allows
  std::size_t left_out_bytecode = 0;
  std::set<std::string> folders;
  std::uint64_t size = 0;

  void folder(const std::string& path) {
    if (folders.insert(path).second) size += kBlock;
  }
  void file(std::string path, std::uint64_t bytes) { file(File{.place = std::move(path)}, bytes); }
  void file(File one, std::uint64_t bytes) {
    const std::string& path = one.place;
    for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
      folder(path.substr(0, slash));
    size += (bytes + kBlock - 1) / kBlock * kBlock;
    files.push_back(std::move(one));
  }
};

Installed install_wheel(const Content& content, bundle::ByteSource& source, const std::string& site_packages) {
  const bundle::Wheel wheel(source, content.name, content.startup_files);
  Installed installed;
  installed.startup = wheel.startup();
  installed.may_run = wheel.allowed_startup_files();
  installed.left_out_bytecode = wheel.left_out_bytecode();
  for (const bundle::WheelFile& member : wheel.files())
    installed.file({.place = bundle::installed_path(member.scheme, member.path, wheel.dist_info(), site_packages),
                    .packaged = member.scheme == bundle::Scheme::SitePackages ? member.path : "",
                    .empty = member.member.size == 0,
                    .sha256 = member.python_script ? std::nullopt : std::optional(member.sha256)},
                   member.member.size);
  for (const bundle::EntryPoint& point : wheel.entry_points()) installed.file("bin/" + point.script, 1);
  const std::string info = site_packages + "/" + wheel.dist_info();
  installed.file(info + "/RECORD", wheel.files().size() * 160);
  if (std::none_of(wheel.files().begin(), wheel.files().end(),
                   [&](const bundle::WheelFile& member) { return member.path == wheel.dist_info() + "/INSTALLER"; }))
    installed.file(info + "/INSTALLER", 1);
  return installed;
}

// Compares the files of a tree with the digests that it says of them: installers take them as they are.
class TreeDigests {
 public:
  explicit TreeDigests(const fs::path& file) : file_(file) {}

  void begin(const bundle::TarMember& member) {
    end();
    path_ = member.path;
    said_ = bundle::digest_of_comment(member.comment);
  }
  void take(bundle::ByteView piece) {
    if (said_) hasher_.update(piece);
  }
  void end() {
    if (!said_) return;
    if (const bundle::Digest digest = hasher_.finish(); digest != *said_)
      throw Error(ErrorCode::Digest, {.what = "a tree's tar says another digest of a file than it has",
                                      .where = file_.string() + ", " + path_,
                                      .expected = "sha256 " + said_->hex(),
                                      .got = "sha256 " + digest.hex(),
                                      .next = "remove it and run sealift-pack lock again"});
    said_.reset();
  }

 private:
  const fs::path& file_;
  std::string path_;
  std::optional<bundle::Digest> said_;
  bundle::Hasher hasher_;
};

Installed install_tree(const Content& content, const fs::path& file, bool carries_runtime) {
  if (const bundle::Digest digest = digest_of_file(file); digest != content.sha256)
    throw Error(ErrorCode::Digest, {.what = content.name + " in the cache is damaged",
                                    .where = file.string(),
                                    .expected = "sha256 " + content.sha256.hex(),
                                    .got = "sha256 " + digest.hex(),
                                    .next = "remove it and run sealift-pack lock again"});
  Installed installed;
  bool has_runtime = false;
  TreeDigests digests(file);
  bundle::TarReader reader({.begin =
                                [&](const bundle::TarMember& member) {
                                  digests.begin(member);
                                  has_runtime = has_runtime || is_runtime_file(member.path);
                                  if (member.type == bundle::TarType::Folder)
                                    installed.folder(member.path);
                                  else
                                    installed.file(member.path, member.size);
                                },
                            .data = [&](bundle::ByteView piece) { digests.take(piece); }},
                           file.string());
  bundle::FileSource source(file);
  for (std::uint64_t offset = 0; offset < source.size();) {
    const bundle::ByteView piece = source.view(offset, std::size_t{1} << 20);
    reader.feed(piece);
    offset += piece.size();
  }
  reader.finish();
  digests.end();
  if (has_runtime != carries_runtime)
    throw Error(ErrorCode::Format, {.what = "lock and interpreter do not agree whether glibc is carried",
                                    .where = file.string(),
                                    .expected = carries_runtime ? "a glibc" : "no glibc",
                                    .next = "run sealift-pack lock again"});
  return installed;
}

Installed install_program(const Content& content, const fs::path& file) {
  if (const bundle::Digest digest = digest_of_file(file); digest != content.sha256)
    throw Error(ErrorCode::Digest, {.what = "a program changed after it was locked",
                                    .where = file.string(),
                                    .expected = "sha256 " + content.sha256.hex(),
                                    .got = "sha256 " + digest.hex(),
                                    .next = "run sealift-pack lock again"});
  Installed installed;
  installed.file(content.into, content.size);
  return installed;
}

// Weights and Debian packages do not shrink. Their digests are checked while they are written, so that they are read
// only once.
Installed install_file(const Content& content) {
  Installed installed;
  if (content.is_installed()) installed.file(content.into, content.size);
  return installed;
}

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

// Makes entries, and sees to it that what they install fits together.
class Planner {
 public:
  Planner(const Lock& lock, const Cache& cache, const Repair& repair)
      : lock_(lock), cache_(cache), repair_(repair), site_packages_(bundle::site_packages_of(lock.python)) {
    owners_.claim(std::string(bundle::kGenerationRecord), "the installer's own record");
  }

  // Reads the content. Safe from several threads.
  Installed look(const Content& content) const {
    return read_repaired(content, repair_, [&] { return install(content, file_of(content, cache_)); });
  }

  // The same without the bytes of a wheel that is not here: its directory and small members are asked of its server.
  // Nothing where that cannot be done.
  std::optional<Installed> look_ahead(const Content& content, const StopCheck& check) const {
    const fs::path file = file_of(content, cache_);
    if (fs::exists(file) || content.kind == Content::Kind::File) return install(content, file);
    const auto* server = std::get_if<FromServer>(&content.origin);
    if (std::holds_alternative<FromText>(content.origin)) return install_file(content);
    if (content.kind != Content::Kind::Wheel || server == nullptr || content.size == 0) return std::nullopt;
    try {
      RemoteFile source(server->url, content.size, check);
      return install_wheel(content, source, site_packages_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Network) throw;
      return std::nullopt;
    }
  }

  PlannedEntry add(const Content& content, const Installed& installed) {
    const fs::path file = file_of(content, cache_);
    claim(content, installed);
    return {.content = content, .draft = draft_of(content, file, installed), .file = file};
  }

  void claim(const Content& content, const Installed& installed) {
    for (const Installed::File& one : installed.files) {
      owners_.claim(one.place, content.owner, one.sha256);
      if (content.kind != Content::Kind::Wheel) require_place(content, one.place);
      if (content.kind != Content::Kind::Wheel) continue;
      libraries_.insert(one.place.substr(one.place.rfind('/') + 1));
      if (!one.packaged.empty()) packaged_.push_back({one, content.owner});
    }
    startup_.emplace_back(installed.startup, content.owner);
    used_startup_files_ += installed.may_run.size();
    left_out_bytecode_ += installed.left_out_bytecode;
  }

  std::size_t left_out_bytecode() const { return left_out_bytecode_; }

  // Of all that was added. Throws Conflict when a path or package has two owners, Missing when nothing brings a
  // library.
  LeftOut settle_owners() {
    LeftOut left_out = settle(owners_, lock_.owners, site_packages_);
    owners_.check();
    bundle::PackageOwners packages;
    for (const auto& [file, wheel] : packaged_)  // a file that is left out makes nobody a second owner
      if (const auto out = left_out.find(wheel); out == left_out.end() || !out->second.contains(file.place))
        packages.claim(file.packaged, wheel, file.empty);
    for (const auto& [startup, wheel] : startup_) packages.claim(startup, wheel);
    packages.check();
    require_libraries();
    require_startup_files();
    return left_out;
  }

 private:
  Installed install(const Content& content, const fs::path& file) const {
    switch (content.kind) {
      case Content::Kind::Interpreter:
        return install_tree(content, file, lock_.runtime.has_value());
      case Content::Kind::Tree:
        return install_tree(content, file, false);
      case Content::Kind::Wheel:
        return install_wheel_file(content, file);
      case Content::Kind::Program:
        return install_program(content, file);
      case Content::Kind::File:
        break;
    }
    return install_file(content);
  }

  Installed install_wheel_file(const Content& content, const fs::path& file) const {
    bundle::FileSource source(file);
    return install_wheel(content, source, site_packages_);
  }

  // What a job places where only wheels, the interpreter or the runtime may: the installer refuses it too.
  void require_place(const Content& content, const std::string& place) const {
    std::optional<bundle::PlaceFault> fault;
    if (content.kind != Content::Kind::Interpreter)
      fault = bundle::fault_of_entry_place(place, "bin/python" + lock_.python);
    else if (place.starts_with(site_packages_ + "/"))
      fault = bundle::PlaceFault{
          .code = ErrorCode::Conflict, .why = "site-packages belongs to wheels", .next = "run lock again"};
    if (!fault) return;
    throw Error(fault->code, {.what = "something would lie where it must not: " + fault->why,
                              .where = content.owner,
                              .got = SafePath::printable(place),
                              .next = fault->next});
  }

  void require_startup_files() const {
    if (used_startup_files_ >= lock_.startup_files.size()) return;
    throw Error(ErrorCode::Usage, {.what = "a start-up file is allowed that its package does not have",
                                   .where = "[[startup]] of the job file",
                                   .expected = "a .pth file of that package with that SHA-256",
                                   .got = std::to_string(used_startup_files_) + " of " +
                                          std::to_string(lock_.startup_files.size()) + " were found",
                                   .next = "look at the package's .pth file again, correct the job and lock again"});
  }

  void require_libraries() const {
    for (const LockedProgram& program : lock_.programs)
      for (const std::string& library : program.from_wheels)
        if (!libraries_.contains(library))
          throw Error(
              ErrorCode::Missing,
              {.what = "a program needs a library that nothing brings",
               .where = program.source.string(),
               .expected = library + " in one of the wheels or on the packing machine",
               .next = "require the package that has it, or install the library and run sealift-pack lock again"});
  }

  const Lock& lock_;
  const Cache& cache_;
  const Repair& repair_;
  std::string site_packages_;
  PathOwners owners_;
  std::vector<std::pair<Installed::File, std::string>> packaged_;  // files of site-packages, and their wheels
  std::vector<std::pair<bundle::StartupEffects, std::string>> startup_;
  std::size_t used_startup_files_ = 0, left_out_bytecode_ = 0;
  std::set<std::string> libraries_;  // names of the wheels' files
};

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
  draft.environment.interpreter = SafePath::parse("bin/python" + lock.python, "lock");
  draft.environment.site_packages = SafePath::parse(bundle::site_packages_of(lock.python), "lock");
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
      for (const std::string& place : out->second) placements.back().left_out.push_back(SafePath::parse(place, "lock"));
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
                .system = lock.system,
                .python = lock.python,
                .entries = {},
                .companions = {},
                .left_out = {},
                .left_out_bytecode = 0};
  Planner planner(lock, cache, repair);
  std::vector<Installed> installed(contents.size());
  const std::vector<std::size_t> order = largest_first(contents);
  WheelFaults faults(contents.size());
  bundle::parallel_for(std::thread::hardware_concurrency(), order.size(), [&](std::size_t turn) {
    const std::size_t i = order[turn];
    try {
      installed[i] = planner.look(contents[i]);
    } catch (const Error& error) {
      if (contents[i].kind != Content::Kind::Wheel || !faults.keep(i, error)) throw;
    }
  });
  faults.refuse();
  for (std::size_t i = 0; i < contents.size(); ++i) plan.entries.push_back(planner.add(contents[i], installed[i]));
  plan.left_out = planner.settle_owners();
  plan.left_out_bytecode = planner.left_out_bytecode();
  std::sort(plan.entries.begin(), plan.entries.end(),
            [](const PlannedEntry& a, const PlannedEntry& b) { return a.draft.path < b.draft.path; });
  plan.draft.environment.placements = placements_of(plan);
  for (const auto& [name, file] : companions) {
    plan.draft.companions.push_back({.name = name, .size = fs::file_size(file), .sha256 = digest_of_file(file)});
    plan.companions.push_back(file);
  }
  return plan;
}

bool check_ahead(const Lock& lock, const std::vector<Content>& contents, const Cache& cache) {
  const Repair no_repair;
  Planner planner(lock, cache, no_repair);
  std::vector<std::optional<Installed>> seen(contents.size());
  WheelFaults faults(contents.size());
  parallel_requests(kLooksAtOnce, contents.size(), [&](std::size_t i, const StopCheck& check) {
    try {
      seen[i] = planner.look_ahead(contents[i], check);
    } catch (const Error& error) {
      if (contents[i].kind != Content::Kind::Wheel || !faults.keep(i, error)) throw;
    }
  });
  faults.refuse();
  const bool all = std::all_of(seen.begin(), seen.end(), [](const auto& one) { return one.has_value(); });
  if (!all) return false;  // what nobody has seen may own a path
  for (std::size_t i = 0; i < contents.size(); ++i) planner.claim(contents[i], *seen[i]);
  planner.settle_owners();
  return true;
}

}  // namespace sealift::packager
