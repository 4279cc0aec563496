// SPDX-License-Identifier: Apache-2.0
// Settings first, then what hands them on: a run that is killed between the two is finished by the same command, by
// `switch` and by the next `apply`.
#include "installer/upkeep/set_repository.hpp"

#include "installer/activation/activation.hpp"
#include "installer/activation/modulefiles.hpp"
#include "installer/activation/variables.hpp"
#include "installer/prefix/prefix_lock.hpp"
#include "installer/prefix/small_files.hpp"
#include "installer/store/store.hpp"
#include "installer/upkeep/status.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::uint64_t kMaxCertificates = 4 << 20;

std::string certificates_in(const fs::path& file) {
  const std::string text = bundle::read_text(file, kMaxCertificates);
  const bool has_certificate = text.find("-----BEGIN CERTIFICATE-----") != text.npos;
  const bool has_key = text.find("PRIVATE KEY-----") != text.npos;
  if (has_certificate && !has_key) return text;
  throw Error(ErrorCode::Format, {.what = "these are no certificates to hand on",
                                  .where = file.string(),
                                  .expected = "PEM with certificates, and no private key",
                                  .got = has_key ? "a private key" : "no certificate"});
}

// What all shells and modules of this prefix read; the generations' own modules too, whichever is current.
SmallFiles files_that_hand_on(const Prefix& prefix) {
  SmallFiles files;
  const Status status = status_of(prefix);
  for (const Status::Generation& generation : status.generations) {
    if (!generation.record) continue;
    const SmallFiles more = generation.number == status.current
                                ? activation_files(prefix, *generation.record)
                                : modulefiles_of(prefix, *generation.record, variables_for(prefix, *generation.record));
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

}  // namespace

SiteSettings set_repository(const Prefix& prefix, const std::string& url, const fs::path& certificates, Disk& disk) {
  const std::string parsed = url.empty() ? "" : parse_repository(url);
  const std::string pem = certificates.empty() ? "" : certificates_in(certificates);
  status_of(prefix);  // throws Missing before the prefix lock makes a prefix
  const PrefixLock lock(prefix, disk, "site");
  sweep(prefix, disk);
  disk.make_folder(prefix.staging());
  if (parsed.empty()) disk.remove_tree(prefix.site());
  if (pem.empty()) disk.remove_tree(certificates_file(prefix));
  SmallFiles own;
  if (!parsed.empty()) own.emplace_back(repository_file(prefix), parsed + "\n");
  if (!pem.empty()) own.emplace_back(certificates_file(prefix), pem);
  replace_small_files(own, prefix, prefix.staging(), disk);
  replace_small_files(files_that_hand_on(prefix), prefix, prefix.staging(), disk);
  sweep(prefix, disk);
  return site_settings(prefix);
}

}  // namespace sealift::installer
