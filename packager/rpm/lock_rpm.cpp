// SPDX-License-Identifier: Apache-2.0
// resolve -> fetch by digest -> header against index -> signature -> index of these; see lock_rpm.hpp. Signatures are
// checked by rpmkeys with a keyring for each repository, so that the key of one never speaks for another's packages.
#include "packager/rpm/lock_rpm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "bundle/host/scratch_folder.hpp"
#include "packager/files/known_chunks.hpp"
#include "packager/host/process.hpp"
#include "packager/network/fetch.hpp"
#include "packager/rpm/dnf.hpp"
#include "packager/rpm/rpm_header.hpp"
#include "sealift/bundle/core/output_file.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMaxRpmKeyFile = std::uint64_t{1} << 20;

bool checks_packages(const RpmRepository& repository) {
  return repository.checked == RpmSigned::Packages || repository.checked == RpmSigned::Both;
}

void require_rpm_tool(const char* program, const char* purpose) {
  if (!find_program(program).empty()) return;
  throw Error(ErrorCode::Missing, {.what = fmt::format("{}, which {}, is not on this machine", program, purpose),
                                   .where = "PATH",
                                   .next = "apt install dnf createrepo-c rpm; `create` does not need them"});
}

void fetch_rpms(const std::vector<IndexedRpm>& rpms, const Cache& cache, bundle::Progress& progress) {
  std::vector<Download> downloads;
  for (const IndexedRpm& rpm : rpms)
    downloads.push_back({.name = rpm.file(), .url = rpm.url, .sha256 = rpm.sha256, .size = rpm.size, .bearer = {}});
  fetch(downloads, cache, progress);
}

// Equal bytes are not enough: an index may call an older, rightly signed package by a newer one's name.
void require_described(const IndexedRpm& rpm, const Cache& cache) {
  bundle::FileSource source(cache.path(rpm.sha256));
  const RpmHeader header = [&] {
    try {
      return read_rpm_header(source);
    } catch (const Error& error) {
      throw error.within("while reading " + rpm.file() + " of " + rpm.repository);
    }
  }();
  if (header.name == rpm.name && header.evr() == rpm.evr() && header.arch == rpm.arch && !header.source &&
      source.size() == rpm.size)
    return;
  throw Error(ErrorCode::Conflict,
              {.what = "a package is another than its repository's index says",
               .where = rpm.repository + ": " + rpm.url,
               .expected = fmt::format("{} {} {}, {} bytes", rpm.name, rpm.evr(), rpm.arch, rpm.size),
               .got = bundle::SafePath::printable(fmt::format("{} {} {}, {} bytes", header.name, header.evr(),
                                                              header.source ? "src" : header.arch, source.size())),
               .next = "do not use this mirror; tell its owner"});
}

// Hard links by the packages' names. Their times go into the index, which is to be the same each time.
void link_rpms(const std::vector<IndexedRpm>& rpms, const Cache& cache, const fs::path& folder) {
  fs::create_directories(folder);
  for (const IndexedRpm& rpm : rpms) {
    fs::create_hard_link(cache.path(rpm.sha256), folder / rpm.file());
    std::error_code ignored;  // somebody else's cache: then the index differs from lock to lock
    fs::last_write_time(folder / rpm.file(), std::chrono::file_clock::from_sys(std::chrono::sys_seconds{}), ignored);
  }
}

// rpmkeys with this keyring, and without its user's settings, which could ask for less.
ProcessResult run_rpmkeys(const fs::path& keyring, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {
      "rpmkeys", "--dbpath", keyring, "--define", "_pkgverify_level signature", "--define", "_pkgverify_flags 0x0"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_process(command, {{"LC_ALL", "C"}, {"HOME", keyring}});
}

// The lines that say what is wrong with one package.
std::string faults_of(const fs::path& keyring, const fs::path& file) {
  std::istringstream lines(run_rpmkeys(keyring, {"--checksig", "-v", file.string()}).out);
  std::string faults;
  for (std::string line; std::getline(lines, line);)
    if (line.ends_with("NOKEY") || line.ends_with("BAD") || line.ends_with("NOTTRUSTED"))
      faults += (faults.empty() ? "" : "; ") + line.substr(line.find_first_not_of(' '));
  return faults.empty() ? "no signature" : faults;
}

void check_rpm_signatures(const RpmRepository& repository, const std::vector<IndexedRpm>& rpms, const fs::path& folder,
                          const fs::path& keyring) {
  std::vector<std::string> files;
  for (const IndexedRpm& rpm : rpms)
    if (rpm.repository == repository.name) files.push_back(folder / rpm.file());
  if (files.empty()) return;
  fs::create_directories(keyring);
  for (const fs::path& key : repository.keys)
    if (const ProcessResult result = run_rpmkeys(keyring, {"--import", key}); result.exit_code != 0)
      throw Error(ErrorCode::CannotCheck, {.what = "rpmkeys does not take a key",
                                           .where = key.string(),
                                           .got = result.err,
                                           .next = "export it again with gpg --armor --export KEY"});
  std::vector<std::string> all = {"--checksig"};
  all.insert(all.end(), files.begin(), files.end());
  if (run_rpmkeys(keyring, all).exit_code == 0) return;
  std::string bad;
  for (const fs::path file : files)
    if (run_rpmkeys(keyring, {"--checksig", file}).exit_code != 0)
      bad += (bad.empty() ? "" : "\n            ") + file.filename().string() + ": " + faults_of(keyring, file);
  throw Error(ErrorCode::Signature,
              {.what = "packages are not signed by one of their repository's keys",
               .where = "[[rpm.repository]] " + repository.name,
               .expected = "a signature of each package by the keys of this repository",
               .got = bad,
               .next = "add the key if you trust it; where the index is signed and packages are not, say "
                       "signed = \"index\""});
}

LockedRpmIndex adopt_index(const fs::path& file, const std::string& name, const Cache& cache) {
  LockedRpmIndex locked{.file = name, .size = fs::file_size(file), .sha256 = KnownChunks(cache).learn(file)};
  cache.adopt(file, locked.sha256);
  return locked;
}

// repodata/ of these packages alone, in which nothing depends on the day or the machine.
std::vector<LockedRpmIndex> make_index(const JobRpm& job, const fs::path& folder, const Cache& cache) {
  // gzip, which each dnf and zypper reads: newer ones write zstd if they are not told.
  run_checked(
      {"createrepo_c", "--quiet", "--no-database", "--general-compress-type", "gz", "--simple-md-filenames",
       "--checksum", "sha256", "--revision", "0", "--set-timestamp-to-revision", "--workers", "1", folder.string()},
      {{"LC_ALL", "C"}});
  std::vector<LockedRpmIndex> index;
  for (const fs::directory_entry& file : fs::directory_iterator(folder / "repodata"))
    index.push_back(adopt_index(file.path(), "repodata/" + file.path().filename().string(), cache));
  std::string keys;
  for (const RpmRepository& repository : job.repositories)
    if (checks_packages(repository))
      for (const fs::path& key : repository.keys)
        if (std::string text = bundle::read_text(fs::canonical(key), kMaxRpmKeyFile); keys.find(text) == keys.npos)
          keys += text + (text.ends_with('\n') ? "" : "\n");
  if (!keys.empty()) {
    bundle::write_text(folder / "keys.asc", keys);
    index.push_back(adopt_index(folder / "keys.asc", "keys.asc", cache));
  }
  std::sort(index.begin(), index.end(),
            [](const LockedRpmIndex& a, const LockedRpmIndex& b) { return a.file < b.file; });
  return index;
}

}  // namespace

LockedRpm lock_rpm(const JobRpm& job, const std::string& arch, const Cache& cache, bundle::Progress& progress) {
  if (job.packages.empty()) return {};
  const auto& repositories = job.repositories;
  LockedRpm locked{
      .release = job.release, .packages = job.packages, .unsigned_repositories = {}, .index = {}, .rpms = {}};
  for (const RpmRepository& repository : repositories)
    if (repository.checked == RpmSigned::Nothing) {
      locked.unsigned_repositories.push_back(repository.name);
      progress.warn(fmt::format("nobody's signature is asked for in the repository {} ({}): signed = \"nothing\"",
                                repository.name, repository.url));
    }
  std::sort(locked.unsigned_repositories.begin(), locked.unsigned_repositories.end());
  require_rpm_tool("createrepo_c", "writes the index of rpm packages");
  if (std::any_of(repositories.begin(), repositories.end(), checks_packages))
    require_rpm_tool("rpmkeys", "checks the signatures of rpm packages");
  const bundle::ScratchFolder scratch("rpm", cache.scratch());
  progress.note("asking dnf for the rpm packages of release " + job.release);
  const std::vector<IndexedRpm> rpms = resolve_rpms(job, arch, scratch.path());
  fetch_rpms(rpms, cache, progress);
  for (const IndexedRpm& rpm : rpms) {
    require_described(rpm, cache);
    locked.rpms.push_back({.file = rpm.file(), .url = rpm.url, .size = rpm.size, .sha256 = rpm.sha256});
  }
  const fs::path folder = scratch / "repository";
  link_rpms(rpms, cache, folder);
  for (const RpmRepository& repository : repositories)
    if (checks_packages(repository))
      check_rpm_signatures(repository, rpms, folder, scratch / ("keys-" + repository.name));
  locked.index = make_index(job, folder, cache);
  return locked;
}

}  // namespace sealift::packager
