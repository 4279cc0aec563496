// SPDX-License-Identifier: Apache-2.0
// Origin, Label and Suite stay the same from version to version, since apt asks its user about each change of theirs.
#include "packager/debian/signed_release.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <sstream>

#include "packager/debian/apt_files.hpp"
#include "packager/host/process.hpp"
#include "packager/host/scratch_folder.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/core/time.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMaxSignedText = std::uint64_t{1} << 20;

// As Release files write it; by hand, since strftime(3) would write the days in the user's language.
std::string release_date(const std::string& created) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds = bundle::parse_time(created).value_or(bundle::Time{}).time_since_epoch().count();
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} UTC", kDays[parts.tm_wday], parts.tm_mday,
                     kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// gpg finds keys and agent by these two; nothing else of ours reaches it.
ProcessResult run_gpg(std::vector<std::string> arguments) {
  std::map<std::string, std::string> environment{{"LC_ALL", "C.UTF-8"}};
  for (const char* name : {"GNUPGHOME", "GPG_TTY"})
    if (const char* value = std::getenv(name)) environment[name] = value;
  arguments.insert(arguments.begin(), {"gpg", "--batch", "--yes"});
  return run_process(arguments, environment);
}

std::string checked_gpg(std::vector<std::string> arguments, const std::string& fingerprint) {
  ProcessResult result = run_gpg(std::move(arguments));
  if (result.exit_code == 0) return std::move(result.out);
  throw Error(ErrorCode::Io, {.what = "gpg did not sign the index of the Debian packages",
                              .where = fingerprint,
                              .got = result.err,
                              .next = "try `gpg --local-user " + fingerprint + " --clearsign` by hand"});
}

bool is_fingerprint(const std::string& text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream words(line);
  for (std::string field; std::getline(words, field, ':');) fields.push_back(field);
  return fields;
}

// Of the keys with this primary one that may sign the one that ends first; 0: none ends.
std::int64_t first_end(const std::string& listing) {
  std::int64_t first = 0;
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() < 12 || (fields[0] != "sec" && fields[0] != "ssb") || fields[11].find('s') == std::string::npos)
      continue;
    const std::int64_t end = std::atoll(fields[6].c_str());
    if (end > 0 && (first == 0 || end < first)) first = end;
  }
  return first;
}

void check_apt_key(const std::string& fingerprint, bundle::Progress& progress) {
  const ProcessResult listed = run_gpg({"--with-colons", "--list-secret-keys", fingerprint});
  if (listed.exit_code != 0)
    throw Error(ErrorCode::Missing,
                {.what = "gpg has no secret key with this fingerprint",
                 .where = "--apt-key",
                 .expected = "one of `gpg --list-secret-keys`",
                 .got = fingerprint,
                 .next = "import it or plug its card in, set GNUPGHOME, or make one: gpg --quick-generate-key "
                         "'Packages of SITE' ed25519 sign never"});
  if (const std::int64_t end = first_end(listed.out); end > 0)
    progress.warn("apt refuses the packages of this bundle from " +
                  bundle::write_time(bundle::Time(std::chrono::seconds(end))) + " on, when the OpenPGP key " +
                  fingerprint + " ends");
}

Content release_file(const std::string& name, const std::string& text) {
  return {.name = "apt/" + name,
          .owner = "the Debian packages",
          .entry = "files/apt/" + name,
          .into = "apt/" + name,
          .size = text.size(),
          .sha256 = bundle::sha256(bundle::as_bytes(text)),
          .origin = FromText{text}};
}

}  // namespace

std::string release_text(const Lock& lock) {
  return fmt::format(
      "Origin: Sealift\nLabel: {}\nSuite: {}\nDate: {}\nArchitectures: {}\nAcquire-By-Hash: yes\n"
      "Description: Debian packages of the bundle {}\nSHA256:\n {} {} Packages\n",
      lock.name, lock.channel, release_date(lock.created), debian_arch(lock.target.arch), lock.stem(),
      lock.apt.index_sha256.hex(), lock.apt.index_size);
}

std::vector<Content> signed_release(const Lock& lock, const std::string& fingerprint, bundle::Progress& progress) {
  if (lock.apt.debs.empty())
    throw Error(ErrorCode::Usage, {.what = "there are no Debian packages whose index could be signed",
                                   .where = "--apt-key",
                                   .next = "leave it out, or name packages in the job's [apt] and lock again"});
  if (!is_fingerprint(fingerprint))
    throw Error(ErrorCode::Usage, {.what = "this is not the fingerprint of an OpenPGP key",
                                   .where = "--apt-key",
                                   .expected = "40 hexadecimal digits, as `gpg --list-secret-keys` prints them",
                                   .got = fingerprint});
  if (find_program("gpg").empty())
    throw Error(ErrorCode::Missing, {.what = "gpg, which signs for apt, is not on this machine",
                                     .where = "PATH",
                                     .next = "install it (Debian: apt install gpg), or leave --apt-key out"});
  check_apt_key(fingerprint, progress);
  const ScratchFolder scratch("sealift-release");
  const std::string release = release_text(lock), text = (scratch / "Release").string();
  bundle::write_text(text, release);
  const auto signed_by = [&](const char* how, const char* name) {
    const fs::path made = scratch / name;
    checked_gpg(
        {"--local-user", fingerprint, "--digest-algo", "SHA512", "--armor", "--output", made.string(), how, text},
        fingerprint);
    return release_file(name, bundle::read_text(made, kMaxSignedText));
  };
  const std::string key =
      checked_gpg({"--armor", "--export-options", "export-minimal", "--export", fingerprint}, fingerprint);
  return {release_file("Release", release), signed_by("--detach-sign", "Release.gpg"),
          signed_by("--clear-sign", "InRelease"), release_file("archive-key.asc", key)};
}

}  // namespace sealift::packager
