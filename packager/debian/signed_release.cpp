// SPDX-License-Identifier: Apache-2.0
// Origin, Label and Suite stay the same from version to version, since apt asks its user about each change of theirs.
#include "packager/debian/signed_release.hpp"

#include <fmt/format.h>

#include <ctime>

#include "packager/debian/apt_files.hpp"
#include "packager/host/gpg_key.hpp"
#include "sealift/bundle/core/time.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

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
  const GpgKey key(fingerprint, {.option = "--apt-key", .client = "apt", .indexed = "the Debian packages"}, progress);
  const std::string release = release_text(lock);
  return {release_file("Release", release), release_file("Release.gpg", key.detached_signature(release)),
          release_file("InRelease", key.clear_signed(release)), release_file("archive-key.asc", key.public_key())};
}

}  // namespace sealift::packager
