// SPDX-License-Identifier: Apache-2.0
// gpg's own settings of algorithms do not count: a SHA-1 signature would be refused where it is needed.
#include "packager/host/gpg_key.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "bundle/core/text_parts.hpp"
#include "bundle/host/scratch_folder.hpp"
#include "packager/host/own_variables.hpp"
#include "packager/host/process.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/core/time.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMaxSignedText = std::uint64_t{1} << 20;

// gpg finds keys and agent by these two; nothing else of ours reaches it.
ProcessResult run_gpg(std::vector<std::string> arguments) {
  std::map<std::string, std::string> environment{{"LC_ALL", "C.UTF-8"}};
  for (const char* name : {"GNUPGHOME", "GPG_TTY"})
    if (const std::optional<std::string> value = own_variable(name)) environment[name] = *value;
  arguments.insert(arguments.begin(), {"gpg", "--batch", "--yes"});
  return run_process(arguments, environment);
}

std::string checked_gpg(std::vector<std::string> arguments, const std::string& fingerprint, const GpgUse& use) {
  ProcessResult result = run_gpg(std::move(arguments));
  if (result.exit_code == 0) return std::move(result.out);
  throw Error(ErrorCode::Io, {.what = "gpg did not sign the index of " + use.indexed,
                              .where = fingerprint,
                              .got = result.err,
                              .next = "try `gpg --local-user " + fingerprint + " --clearsign` by hand"});
}

bool is_fingerprint(const std::string& text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos;
}

// When the first signing key with this primary key ends; 0: none ends.
std::int64_t first_end(const std::string& listing) {
  std::int64_t first = 0;
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string_view> fields = bundle::split(line, ':');
    if (fields.size() < 12 || (fields[0] != "sec" && fields[0] != "ssb") || fields[11].find('s') == std::string::npos)
      continue;
    const std::int64_t end = std::atoll(std::string(fields[6]).c_str());
    if (end > 0 && (first == 0 || end < first)) first = end;
  }
  return first;
}

}  // namespace

GpgKey::GpgKey(std::string fingerprint, GpgUse use, bundle::Progress& progress)
    : fingerprint_(std::move(fingerprint)), use_(std::move(use)) {
  if (!is_fingerprint(fingerprint_))
    throw Error(ErrorCode::Usage, {.what = "this is not the fingerprint of an OpenPGP key",
                                   .where = use_.option,
                                   .expected = "40 hexadecimal digits, as `gpg --list-secret-keys` prints them",
                                   .got = fingerprint_});
  if (find_program("gpg").empty())
    throw Error(ErrorCode::Missing, {.what = "gpg, which signs for " + use_.client + ", is not on this machine",
                                     .where = "PATH",
                                     .next = "install it (Debian: apt install gpg), or leave " + use_.option + " out"});
  const ProcessResult listed = run_gpg({"--with-colons", "--list-secret-keys", fingerprint_});
  if (listed.exit_code != 0)
    throw Error(ErrorCode::Missing,
                {.what = "gpg has no secret key with this fingerprint",
                 .where = use_.option,
                 .expected = "one of `gpg --list-secret-keys`",
                 .got = fingerprint_,
                 .next = "import it or plug its card in, set GNUPGHOME, or make one: gpg --quick-generate-key "
                         "'Packages of SITE' ed25519 sign never"});
  if (const std::int64_t end = first_end(listed.out); end > 0)
    progress.warn(use_.client + " refuses the packages of this bundle from " +
                  bundle::write_time(bundle::Time(std::chrono::seconds(end))) + " on, when the OpenPGP key " +
                  fingerprint_ + " ends");
}

std::string GpgKey::signed_text(const std::string& text, const char* how) const {
  const bundle::ScratchFolder scratch("sealift-gpg");
  const fs::path given = scratch / "text", made = scratch / "signed";
  bundle::write_text(given, text);
  checked_gpg({"--local-user", fingerprint_, "--digest-algo", "SHA512", "--armor", "--output", made.string(), how,
               given.string()},
              fingerprint_, use_);
  return bundle::read_text(made, kMaxSignedText);
}

std::string GpgKey::detached_signature(const std::string& text) const {
  return signed_text(text, "--detach-sign");
}

std::string GpgKey::clear_signed(const std::string& text) const {
  return signed_text(text, "--clear-sign");
}

std::string GpgKey::public_key() const {
  return checked_gpg({"--armor", "--export-options", "export-minimal", "--export", fingerprint_}, fingerprint_, use_);
}

}  // namespace sealift::packager
