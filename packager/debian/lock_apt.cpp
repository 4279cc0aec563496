// SPDX-License-Identifier: Apache-2.0
// Calls apt-get and apt-cache with a configuration of their own; see lock_apt.hpp. apt checks the archive's signatures,
// and its package lists hold the digest of each package.
#include "packager/debian/lock_apt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "bundle/host/scratch_folder.hpp"
#include "packager/debian/apt_files.hpp"
#include "packager/debian/apt_sources.hpp"
#include "packager/files/known_chunks.hpp"
#include "packager/host/process.hpp"
#include "packager/host/trusted_certificates.hpp"
#include "packager/host/url.hpp"
#include "packager/tables/apt_toml.hpp"
#include "sealift/bundle/payload/payload_writer.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// Only how the machine reaches its mirrors (proxies, certificates); its other settings do not apply.
std::string acquire_settings() {
  std::istringstream lines(run_process({"apt-config", "dump", "Acquire"}).out);
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("Acquire::http")) kept += line + "\n";
  if (const std::string file = trusted_certificates(); !file.empty())
    kept += fmt::format("Acquire::https::CaInfo \"{}\";\n", file);
  return kept;
}

// apt with a configuration and a state of its own.
class Apt {
 public:
  Apt(const std::string& arch, const fs::path& config) {
    for (const char* folder : {"etc/apt/sources.list.d", "etc/apt/preferences.d", "etc/apt/apt.conf.d",
                               "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log/apt"})
      fs::create_directories(scratch_ / folder);
    bundle::write_text(scratch_ / "status", "");
    bundle::write_text(
        scratch_ / "apt.conf",
        fmt::format(
            "{0}Dir \"{1}\";\nDir::State::status \"{1}/status\";\n"
            "Dir::Etc::trusted \"{3}/trusted.gpg\";\nDir::Etc::trustedparts \"{3}/trusted.gpg.d/\";\n"
            "APT::Architecture \"{2}\";\nAPT::Architectures {{ \"{2}\"; }};\nAPT::Install-Recommends \"false\";\n"
            "APT::Sandbox::User \"root\";\nAPT::Cmd::Pattern-Only \"true\";\n"
            "APT::Update::Error-Mode \"any\";\nAcquire::Languages \"none\";\nAcquire::ForceHash \"sha256\";\n",
            acquire_settings(), scratch_.path().string(), debian_arch(arch), config.string()));
  }

  void set_sources(const AptSources& sources) {
    bundle::write_text(scratch_ / "etc/apt/sources.list", sources.lines);
    bundle::write_text(scratch_ / "etc/apt/sources.list.d/suite.sources", sources.stanzas);
  }

  ProcessResult run(std::vector<std::string> command) const {
    return run_process(
        command,
        {{"APT_CONFIG", (scratch_ / "apt.conf").string()}, {"LC_ALL", "C"}, {"DEBIAN_FRONTEND", "noninteractive"}},
        {.largest_file = kLargestIndex});
  }

 private:
  bundle::ScratchFolder scratch_{"sealift-apt"};
};

AptSources sources_of(const JobApt& job, const fs::path& config) {
  if (!job.sources.empty()) {
    AptSources given;
    for (const std::string& line : job.sources) given.lines += line + "\n";
    return given;
  }
  AptSources sources = find_apt_sources(config, job.suite);
  if (sources.lines.empty() && sources.stanzas.empty()) {
    std::string seen;
    for (const std::string& suite : sources.suites) seen += (seen.empty() ? "" : ", ") + suite;
    throw Error(ErrorCode::Usage, {.what = "this machine has no source of Debian packages for the target's suite",
                                   .where = config.string(),
                                   .expected = job.suite,
                                   .got = seen.empty() ? "no sources at all" : seen,
                                   .next = "correct [apt] suite, or give the suite's mirror in [apt] sources"});
  }
  return sources;
}

void update(const Apt& apt, const JobApt& job) {
  const ProcessResult result = apt.run({"apt-get", "update", "-q"});
  if (result.exit_code == 0) return;
  if (result.err.find("is expired") != std::string::npos)
    throw Error(ErrorCode::CannotCheck,
                {.what = "the lists of this suite are no longer valid, by their own date",
                 .where = job.suite.empty() ? "[apt] sources" : job.suite,
                 .expected = "lists whose Valid-Until is to come",
                 .got = result.err,
                 .next = "of a mirror that is frozen on purpose say so in the job: [apt] sources = [\"deb "
                         "[check-valid-until=no] ADDRESS SUITE COMPONENT\"]; else take a mirror that is up to date"});
  throw Error(ErrorCode::Network,
              {.what = "apt cannot read the lists of packages of this suite",
               .where = job.suite.empty() ? "[apt] sources" : job.suite,
               .expected = "lists of at most 1 GiB each, signed by a key that apt has",
               .got = result.err,
               .next = "correct [apt] suite and sources, or check network, proxy (https_proxy) and the archive's key"});
}

// "postfix, exim4-daemon-light": what apt-get names after "is a virtual package provided by:", by package.
std::map<std::string, std::string> providers_in(const std::string& said) {
  static constexpr std::string_view kVirtual = " is a virtual package provided by:";
  std::map<std::string, std::string> providers;
  std::istringstream lines(said);
  std::string of;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Package ") && line.ends_with(kVirtual)) {
      of = line.substr(8, line.size() - 8 - kVirtual.size());
    } else if (line.starts_with("  ") && !of.empty()) {
      const std::size_t begin = line.find_first_not_of(' ');
      const std::string name = line.substr(begin, line.find_first_of(" :", begin) - begin);
      providers[of] += (providers[of].empty() ? "" : ", ") + name;
    } else {
      of.clear();
    }
  }
  return providers;
}

// apt reports errors in lines that begin with "E: ", and unmet dependencies on standard output.
[[noreturn]] void refuse_packages(const ProcessResult& result, const JobApt& job) {
  static constexpr std::string_view kUnknown = "E: Unable to locate package ",
                                    kNone = "' has no installation candidate";
  std::string unknown, virtual_ones;
  const std::map<std::string, std::string> providers = providers_in(result.out);
  std::istringstream lines(result.err);
  for (std::string line; std::getline(lines, line);) {
    std::string name;
    if (line.starts_with(kUnknown)) name = line.substr(kUnknown.size());
    if (line.ends_with(kNone))
      name = line.substr(line.find('\'') + 1, line.size() - kNone.size() - line.find('\'') - 1);
    if (line.starts_with("E: Version ")) name = line.substr(3);
    if (const auto by = providers.find(name); by != providers.end())
      virtual_ones += (virtual_ones.empty() ? "" : "\n            ") + name + ": " + by->second;
    else if (!name.empty())
      unknown += (unknown.empty() ? "" : ", ") + name;
  }
  if (unknown.empty() && !virtual_ones.empty())
    throw Error(ErrorCode::Usage, {.what = "these Debian packages are virtual: several others provide them",
                                   .where = "[apt] packages",
                                   .expected = "one of its providers",
                                   .got = virtual_ones,
                                   .next = "name the package that you want in its place"});
  if (!unknown.empty())
    throw Error(ErrorCode::Usage, {.what = "the suite does not have these Debian packages",
                                   .where = "[apt] packages",
                                   .expected = "packages of " + (job.suite.empty() ? "[apt] sources" : job.suite),
                                   .got = unknown + (virtual_ones.empty() ? "" : "; virtual: " + virtual_ones),
                                   .next = "correct the names, or add the source that has them to [apt] sources"});
  throw Error(ErrorCode::Conflict, {.what = "apt cannot resolve the Debian packages",
                                    .where = "[apt] packages",
                                    .got = result.out + result.err,
                                    .next = "correct [apt] packages, or give sources that fit together"});
}

[[noreturn]] void refuse_answer(const std::string& line) {
  throw Error(ErrorCode::CannotCheck, {.what = "apt's output has a format that this version does not know",
                                       .where = "apt-get install --print-uris",
                                       .expected = "'ADDRESS' FILE SIZE SHA256:DIGEST",
                                       .got = line});
}

// The archive's name has no epoch, as a rule, and no path may have its colon: "g++_4:12.2_amd64.deb", also as %3a.
std::string without_epoch(std::string file) {
  const std::size_t version = file.find('_') + 1;
  const std::size_t end = std::min(file.find_first_not_of("0123456789", version), file.size());
  if (version == 0 || end == version) return file;
  for (const std::string_view colon : {":", "%3a", "%3A"})
    if (file.compare(end, colon.size(), colon) == 0) return file.erase(version, end + colon.size() - version);
  return file;
}

LockedDeb parse_deb(const std::string& line) {
  std::istringstream words(line);
  std::string address, name, hash;
  LockedDeb deb;
  if (!(words >> address >> name >> deb.size >> hash) || address.size() < 3 || address.front() != '\'' ||
      address.back() != '\'' || !hash.starts_with("SHA256:"))
    refuse_answer(line);
  deb.url = address.substr(1, address.size() - 2);
  const std::optional<Url> url = parse_url(deb.url);
  if (!url) refuse_answer(line);
  if (url->scheme == "file") deb.url = "file://" + url->path;  // apt writes "file:/…"
  deb.file = without_epoch(url->file_name());
  const std::optional<Digest> digest = Digest::from_hex(hash.substr(7));
  if (!digest || !is_deb_name(deb.file)) refuse_answer(line);
  deb.sha256 = *digest;
  return deb;
}

std::vector<LockedDeb> closure(const Apt& apt, const JobApt& job, std::vector<std::string>& names) {
  std::vector<std::string> command = {"apt-get", "install", "-y", "-q", "--print-uris", "--download-only"};
  command.insert(command.end(), job.packages.begin(), job.packages.end());
  const ProcessResult result = apt.run(command);
  if (result.exit_code != 0) refuse_packages(result, job);
  std::vector<LockedDeb> debs;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('\'')) continue;
    debs.push_back(parse_deb(line));
    // "g++_4%3a12.2.0-3_amd64.deb": this name has the epoch.
    const std::string file = line.substr(line.find("' ") + 2);
    const std::size_t first = file.find('_'), second = file.find('_', first + 1);
    if (second == file.npos) refuse_answer(line);
    names.push_back(file.substr(0, first) + "=" + percent_decoded(file.substr(first + 1, second - first - 1)));
  }
  std::sort(debs.begin(), debs.end(), [](const LockedDeb& a, const LockedDeb& b) { return a.file < b.file; });
  const auto twin = std::adjacent_find(debs.begin(), debs.end(),
                                       [](const LockedDeb& a, const LockedDeb& b) { return a.file == b.file; });
  if (twin != debs.end()) refuse_answer(twin->file + " twice");
  return debs;
}

// Fields about the file's place in the archive and its digests, which write_index writes itself.
bool is_of_the_archive(const std::string& field) {
  return field == "Filename" || field == "Size" || field == "MD5sum" || field == "Description-md5" ||
         field.starts_with("SHA");
}

// The stanzas of apt's lists for these packages, by the package's SHA-256.
std::map<std::string, std::string> stanzas(const Apt& apt, const std::vector<std::string>& names) {
  std::vector<std::string> command = {"apt-cache", "show"};
  command.insert(command.end(), names.begin(), names.end());
  std::istringstream lines(apt.run(command).out + "\n");
  std::map<std::string, std::string> found;
  std::string stanza, digest;
  bool kept = true;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) {
      if (!stanza.empty()) found.emplace(digest, stanza);
      stanza.clear();
      digest.clear();
      continue;
    }
    const std::string field = line.substr(0, line.find(':'));
    if (field == "SHA256") digest = line.substr(line.find_last_of(' ') + 1);
    if (line.front() != ' ' && line.front() != '\t') kept = !is_of_the_archive(field);
    if (kept) stanza += line + "\n";
  }
  return found;
}

std::string write_index(const std::vector<LockedDeb>& debs, const std::map<std::string, std::string>& stanzas) {
  std::string index;
  for (const LockedDeb& deb : debs) {
    const auto stanza = stanzas.find(deb.sha256.hex());
    if (stanza == stanzas.end()) refuse_answer("no description of " + deb.file);
    index +=
        stanza->second + fmt::format("Filename: ./{}\nSize: {}\nSHA256: {}\n\n", deb.file, deb.size, deb.sha256.hex());
  }
  return index;
}

}  // namespace

LockedApt lock_apt(const JobApt& job, const std::string& arch, const Cache& cache, bundle::Progress& progress,
                   const AptOptions& options) {
  if (job.packages.empty()) return {};
  if (find_program("apt-get").empty() || find_program("apt-cache").empty())
    throw Error(ErrorCode::Missing, {.what = "apt, which resolves Debian packages, is not on this machine",
                                     .where = "PATH",
                                     .expected = "apt-get and apt-cache",
                                     .next = "lock on Debian or Ubuntu, or install apt; `create` does not need it"});
  Apt apt(arch, options.config);
  apt.set_sources(sources_of(job, options.config));
  progress.note("asking apt for " + (job.suite.empty() ? "the Debian packages" : job.suite));
  update(apt, job);
  LockedApt locked{.suite = job.suite, .packages = job.packages, .index_size = 0, .index_sha256 = {}, .debs = {}};
  std::vector<std::string> names;
  locked.debs = closure(apt, job, names);
  const std::string index = write_index(locked.debs, stanzas(apt, names));
  locked.index_size = index.size();
  locked.index_sha256 = KnownChunks(cache).learn(bundle::as_bytes(index));
  const bundle::ScratchFolder scratch("apt", cache.scratch());
  bundle::write_text(scratch / "Packages", index);
  cache.adopt(scratch / "Packages", locked.index_sha256);
  return locked;
}

}  // namespace sealift::packager
