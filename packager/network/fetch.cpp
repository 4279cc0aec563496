// SPDX-License-Identifier: Apache-2.0
// cache -> space -> transfers -> one message about all that failed; see fetch.hpp.
#include "packager/network/fetch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/core/parallel_for.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// An unreadable file counts as damaged: either way it is fetched again.
bool is_intact(const fs::path& path, const Digest& digest, bundle::Progress& progress) {
  try {
    return digest_of_file(path, [&](std::uint64_t bytes) { progress.add(bytes); }) == digest;
  } catch (const Error&) {
    return false;
  }
}

// Hashes the cached files, unless they are trusted, and returns the downloads that are missing or damaged.
std::vector<const Download*> missing(const std::vector<Download>& downloads, const Cache& cache,
                                     bundle::Progress& progress, const FetchOptions& options) {
  std::uint64_t total = 0;
  std::map<Digest, const Download*> wanted;  // two packages may name one file
  for (const Download& download : downloads)
    if (wanted.emplace(download.sha256, &download).second && cache.contains(download.sha256))
      total += fs::file_size(cache.path(download.sha256));
  std::vector<const Download*> order, out;
  for (const auto& [digest, download] : wanted) (cache.contains(digest) ? order : out).push_back(download);
  if (!order.empty() && !options.trust_cache) {
    progress.begin("checking the cache", total);
    std::mutex guard;
    bundle::parallel_for(std::max(1u, options.jobs), order.size(), [&](std::size_t index) {
      const Download& download = *order[index];
      const fs::path path = cache.path(download.sha256);
      if (is_intact(path, download.sha256, progress)) return;
      progress.warn(fmt::format("{} in the cache is damaged ({}); it is fetched again", download.name, path.string()));
      std::error_code ignored;
      fs::remove(path, ignored);
      const std::lock_guard lock(guard);
      out.push_back(&download);
    });
    progress.end();
  }
  // The largest first, so that no long one is left alone at the end.
  std::sort(out.begin(), out.end(), [](const Download* a, const Download* b) {
    return a->size != b->size ? a->size > b->size : a->name < b->name;
  });
  return out;
}

// Throws one failure as it is and several as one list: an index that changed under a lock changed for many files.
[[noreturn]] void refuse_all(const std::vector<Error>& failures) {
  if (failures.size() == 1) throw failures.front();
  std::vector<std::string> lines;
  bool other_bytes = false;
  std::string logins;
  bool limited = false;
  for (const Error& failure : failures) {
    const bundle::Facts& facts = failure.facts();
    other_bytes = other_bytes || failure.code() == ErrorCode::Digest;
    limited = limited || facts.next == kLimitRemedy;
    if (facts.next.starts_with(kLoginRemedy) && logins.find(facts.next) == logins.npos)
      logins += (logins.empty() ? "" : "\n            ") + facts.next;
    lines.push_back(facts.what + ", " + facts.where + ": " +
                    (facts.expected.empty() ? "" : "expected " + facts.expected + ", got ") + facts.got);
  }
  std::sort(lines.begin(), lines.end());  // they come in random order
  std::string got;
  for (const std::string& line : lines) got += (got.empty() ? "" : "\n            ") + line;
  throw Error(
      other_bytes ? ErrorCode::Digest : ErrorCode::Network,
      {.what = fmt::format("{} downloads failed", failures.size()),
       .expected = "each file as it was when it was locked",
       .got = got,
       .next = !logins.empty() ? logins
               : limited       ? kLimitRemedy
                         : "if the index took files back or replaced them, run sealift-pack lock again; if nothing is "
                           "reached, check network, proxy (https_proxy) and certificates (SSL_CERT_FILE); what has "
                           "arrived is kept"});
}

void check_space(const std::vector<const Download*>& downloads, const Cache& cache) {
  std::uint64_t needed = 0;
  for (const Download* download : downloads) {
    std::error_code error;
    const std::uint64_t have = fs::file_size(cache.part(download->sha256), error);
    needed += download->size - std::min(download->size, error ? 0 : have);
  }
  if (const std::uint64_t free = fs::space(cache.root()).available; free < needed)
    throw Error(ErrorCode::Space, {.what = "there is not enough room for the downloads",
                                   .where = cache.root().string(),
                                   .expected = bundle::human_size(needed) + " free",
                                   .got = bundle::human_size(free) + " free",
                                   .next = "make room, or name another folder with --cache"});
}

// Attempts until the file is in the cache, or until `options.attempts` in a row brought nothing.
void bring(const Download& download, const Cache& cache, bundle::Progress& progress, const FetchOptions& options,
           const StopCheck& check) {
  Transfer transfer(download, cache, progress, options);
  for (int failures = 0;;) {
    const std::string reason = transfer.attempt(check);
    if (reason.empty()) return;
    failures = transfer.moved_on() ? 1 : failures + 1;
    if (failures >= options.attempts) transfer.fail(reason);
    const std::uint64_t wait = transfer.wanted_wait();
    if (wait > kLongestWait) transfer.fail(fmt::format("{}, and wants to be left alone for {} s", reason, wait));
    progress.warn(fmt::format("{}: {}; attempt {} of {} follows{}", download.name, reason, failures + 1,
                              options.attempts, wait > 0 ? fmt::format(" in {} s, as the server asks", wait) : ""));
    pause_before_retry(options, failures, check, wait);
  }
}

}  // namespace

std::size_t fetch(const std::vector<Download>& downloads, const Cache& cache, bundle::Progress& progress,
                  const FetchOptions& options) {
  const std::vector<const Download*> todo = missing(downloads, cache, progress, options);
  if (todo.empty()) return 0;
  check_space(todo, cache);
  std::uint64_t total = 0;
  for (const Download* download : todo) total += download->size;
  progress.begin(fmt::format("fetching {} files", todo.size()), total);
  std::vector<Error> failures;
  std::mutex guard;
  parallel_requests(options.jobs, todo.size(), [&](std::size_t index, const StopCheck& check) {
    try {
      bring(*todo[index], cache, progress, options, check);
    } catch (const Error& error) {
      // Failures of single files are reported together, after everything else has arrived.
      if (error.code() != ErrorCode::Network && error.code() != ErrorCode::Digest) throw;
      const std::lock_guard lock(guard);
      failures.push_back(error);
    }
  });
  if (!failures.empty()) refuse_all(failures);
  progress.end();
  return todo.size();
}

}  // namespace sealift::packager
