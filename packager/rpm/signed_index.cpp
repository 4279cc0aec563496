// SPDX-License-Identifier: Apache-2.0
// The cache is not trusted: only what the lock pins is signed.
#include "packager/rpm/signed_index.hpp"

#include <algorithm>

#include "packager/host/gpg_key.hpp"
#include "packager/rpm/rpm_files.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr char kRepomd[] = "repodata/repomd.xml";
constexpr std::uint64_t kMaxRepomd = std::uint64_t{1} << 20;

std::string locked_repomd(const LockedRpm& rpm, const Cache& cache) {
  const auto index =
      std::find_if(rpm.index.begin(), rpm.index.end(), [](const LockedRpmIndex& one) { return one.file == kRepomd; });
  if (index == rpm.index.end())
    throw Error(ErrorCode::Usage, {.what = "there are no rpm packages whose index could be signed",
                                   .where = "--rpm-key",
                                   .next = "leave it out, or name packages in the job's [rpm] and lock again"});
  const std::string text = bundle::read_text(cache.path(index->sha256), kMaxRepomd);
  const bundle::Digest found = bundle::sha256(bundle::as_bytes(text));
  if (found == index->sha256) return text;
  throw Error(ErrorCode::Digest, {.what = "the index of the rpm packages is another than was locked",
                                  .where = cache.path(index->sha256).string(),
                                  .expected = "sha256 " + index->sha256.hex(),
                                  .got = "sha256 " + found.hex(),
                                  .next = "remove this file, and lock again"});
}

}  // namespace

std::vector<Content> signed_index(const Lock& lock, const std::string& fingerprint, const Cache& cache,
                                  bundle::Progress& progress) {
  const std::string repomd = locked_repomd(lock.rpm, cache);
  const GpgKey key(fingerprint, {.option = "--rpm-key", .client = "dnf", .indexed = "the rpm packages"}, progress);
  return {made_rpm_content(std::string(kRepomd) + ".asc", key.detached_signature(repomd)),
          made_rpm_content(std::string(kRepomd) + ".key", key.public_key())};
}

}  // namespace sealift::packager
