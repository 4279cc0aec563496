// SPDX-License-Identifier: Apache-2.0
// The curl door: one loop over a multi handle, at most `jobs` transfers in it; see fetch.hpp.
// A part file is locked while it is written, so two packers can share a cache.
#include "packager/files/fetch.hpp"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <thread>

#include "packager/host/trusted_certificates.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/host/interrupt.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;
using Clock = std::chrono::steady_clock;

namespace {

struct EasyCloser {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct MultiCloser {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
using Easy = std::unique_ptr<CURL, EasyCloser>;
using Multi = std::unique_ptr<CURLM, MultiCloser>;

// libcurl honours proxy variables by itself, but these only through its command line tool.
void use_environment(CURL* easy) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
  };
  if (const std::string file = trusted_certificates(); !file.empty())
    curl_easy_setopt(easy, CURLOPT_CAINFO, file.c_str());
  if (const char* folder = variable("SSL_CERT_DIR")) curl_easy_setopt(easy, CURLOPT_CAPATH, folder);
}

Easy new_handle(const std::string& url) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  Easy easy(started == CURLE_OK ? curl_easy_init() : nullptr);
  if (!easy) throw Error(ErrorCode::Network, {.what = "libcurl did not start"});
  curl_easy_setopt(easy.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy.get(), CURLOPT_PROTOCOLS_STR, "http,https,file");
  curl_easy_setopt(easy.get(), CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(easy.get(), CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_CONNECTTIMEOUT, 30L);
  curl_easy_setopt(easy.get(), CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_LOW_SPEED_TIME, 60L);
  // A connection each: large files gain more from several connections than from one that is shared.
  curl_easy_setopt(easy.get(), CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy.get(), CURLOPT_USERAGENT, "sealift-pack");
  use_environment(easy.get());
  return easy;
}

// As an option of libcurl and not as a header of ours, so that a redirect to another host does not get it.
void use_bearer(CURL* easy, const std::string& bearer) {
  if (bearer.empty()) return;
  curl_easy_setopt(easy, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
  curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, bearer.c_str());
}

// Whether asking again may help.
bool is_final(CURLcode result, long status) {
  return (result == CURLE_HTTP_RETURNED_ERROR && status < 500 && status != 408 && status != 416 && status != 425 &&
          status != 429) ||
         result == CURLE_URL_MALFORMAT || result == CURLE_UNSUPPORTED_PROTOCOL ||
         result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CACERT_BADFILE ||
         result == CURLE_FILE_COULDNT_READ_FILE;
}

// Runs all easy handles that `next` yields (nullptr: none now) and reports each one that ended.
template <class Next, class Done>
void run_all(const Next& next, const Done& done, unsigned jobs) {
  const Multi multi(curl_multi_init());
  unsigned running = 0;
  for (;;) {
    bundle::stop_if_interrupted();
    while (running < std::max(1u, jobs)) {
      CURL* easy = next(running);
      if (easy == nullptr) break;
      curl_multi_add_handle(multi.get(), easy);
      ++running;
    }
    if (running == 0) return;
    int active = 0, left = 0;
    curl_multi_perform(multi.get(), &active);
    while (const CURLMsg* message = curl_multi_info_read(multi.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      CURL* easy = message->easy_handle;
      const CURLcode result = message->data.result;
      curl_multi_remove_handle(multi.get(), easy);
      --running;
      done(easy, result);
    }
    if (running > 0) curl_multi_poll(multi.get(), nullptr, 0, 200, nullptr);
  }
}

// One file on its way. Bytes go to its part file and into its hash in the same order.
class Transfer {
 public:
  Transfer(const Download& download, const Cache& cache, Progress& progress)
      : download_(download), cache_(cache), progress_(progress), part_(cache.part(download.sha256)) {}

  const Download& download() const { return download_; }
  Clock::time_point not_before;
  int failures = 0;  // in a row, without a byte between them

  // Whether the last attempt brought something.
  bool moved_on() const { return have_ > resumed_at_; }

  CURL* begin() {
    open_part();
    error_[0] = '\0';
    write_errno_ = 0;
    too_long_ = false;
    easy_ = new_handle(download_.url);
    curl_easy_setopt(easy_.get(), CURLOPT_WRITEFUNCTION, &Transfer::on_data);
    curl_easy_setopt(easy_.get(), CURLOPT_WRITEDATA, this);
    curl_easy_setopt(easy_.get(), CURLOPT_ERRORBUFFER, error_);
    use_bearer(easy_.get(), download_.bearer);
    resumed_at_ = have_;
    if (have_ > 0) curl_easy_setopt(easy_.get(), CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(have_));
    return easy_.get();
  }

  // Empty when the file is now in the cache, else why to try again. Throws when trying again is of no use.
  std::string end(CURLcode result) {
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    easy_.reset();
    if (write_errno_ != 0) bundle::throw_errno("a download cannot be written", part_, write_errno_);
    if (too_long_) return wrong_bytes(fmt::format("more than {} bytes", download_.size));
    if (result == CURLE_OK || (result == CURLE_HTTP_RETURNED_ERROR && status == 416 && have_ == download_.size))
      return finish();
    const std::string reason = error_[0] != '\0' ? error_ : curl_easy_strerror(result);
    // The server cannot continue where we stopped, or continues something else.
    if (result == CURLE_RANGE_ERROR || status == 416 || result == CURLE_BAD_DOWNLOAD_RESUME) discard();
    if (is_final(result, status)) fail(reason);
    file_ = bundle::Descriptor();
    return reason;
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(ErrorCode::Network,
                {.what = "a download failed: " + download_.name,
                 .where = download_.url,
                 .got = reason,
                 .next = "check network, proxy (https_proxy) and certificates (SSL_CERT_FILE), then run the same "
                         "command again; what has arrived is kept"});
  }

 private:
  void open_part() {
    file_ = bundle::Descriptor(::open(part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!file_) bundle::throw_errno("a download cannot be written", part_);
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0)
      throw Error(ErrorCode::Conflict, {.what = "another process is fetching this file into the same cache",
                                        .where = part_.string(),
                                        .next = "wait for it, then run the same command again"});
    const std::uint64_t before = std::exchange(have_, 0);
    hasher_ = bundle::Hasher();
    bundle::FileSource source(part_);
    while (have_ < source.size()) {
      const bundle::ByteView piece = source.view(have_, std::size_t{1} << 20);
      hasher_.update(piece);
      have_ += piece.size();
    }
    progress_.take_back(before);
    progress_.skip(have_);
    ::lseek(file_.get(), 0, SEEK_END);
    if (download_.size != 0 && have_ > download_.size) discard();
  }

  void discard() {
    if (::ftruncate(file_.get(), 0) != 0) bundle::throw_errno("a download cannot be started anew", part_);
    ::lseek(file_.get(), 0, SEEK_SET);
    progress_.take_back(std::exchange(have_, 0));
    hasher_ = bundle::Hasher();
  }

  static std::size_t on_data(char* data, std::size_t, std::size_t count, void* self) {
    return static_cast<Transfer*>(self)->write(data, count) ? count : 0;
  }
  bool write(const char* data, std::size_t count) {
    if (download_.size != 0 && have_ + count > download_.size) {
      too_long_ = true;
      return false;
    }
    hasher_.update(std::as_bytes(std::span(data, count)));
    for (std::size_t done = 0; done < count;) {
      const ssize_t written = ::write(file_.get(), data + done, count - done);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        write_errno_ = errno;
        return false;
      }
      done += static_cast<std::size_t>(written);
    }
    have_ += count;
    progress_.add(count);
    return true;
  }

  std::string finish() {
    if (download_.size != 0 && have_ < download_.size)
      return fmt::format("the connection ended after {} of {} bytes", have_, download_.size);
    if (const Digest digest = hasher_.finish(); digest != download_.sha256)
      return wrong_bytes(fmt::format("{} bytes, sha256 {}", have_, digest.hex()));
    if (::fsync(file_.get()) != 0) bundle::throw_errno("a download cannot be synced", part_);
    cache_.adopt(part_, download_.sha256);
    file_ = bundle::Descriptor();
    return {};
  }

  // A part from an earlier run may be what is wrong, so a resumed file gets one fresh start.
  std::string wrong_bytes(const std::string& got) {
    discard();
    if (resumed_at_ > 0) return "what was resumed is not the locked file; starting anew";
    file_ = bundle::Descriptor();
    std::error_code ignored;
    fs::remove(part_, ignored);
    throw Error(ErrorCode::Digest,
                {.what = "a download is not the file that was locked: " + download_.name,
                 .where = download_.url,
                 .expected = (download_.size != 0 ? fmt::format("{} bytes, ", download_.size) : "") + "sha256 " +
                             download_.sha256.hex(),
                 .got = got,
                 .next = "it was not kept; ask the index for another mirror, or lock again if the file was replaced"});
  }

  const Download& download_;
  const Cache& cache_;
  Progress& progress_;
  fs::path part_;
  bundle::Descriptor file_;
  bundle::Hasher hasher_;
  std::uint64_t have_ = 0;
  std::uint64_t resumed_at_ = 0;
  Easy easy_;
  char error_[CURL_ERROR_SIZE] = {};
  int write_errno_ = 0;
  bool too_long_ = false;
};

// A small document on its way, kept in memory.
class Question {
 public:
  Question(std::string url, std::uint64_t max_size, Answer& answer)
      : url_(std::move(url)), max_size_(max_size), answer_(answer) {}

  const std::string& url() const { return url_; }
  Clock::time_point not_before;
  int failures = 0;

  CURL* begin(const std::string& bearer) {
    answer_ = {};
    error_[0] = '\0';
    too_long_ = false;
    easy_ = new_handle(url_);
    curl_easy_setopt(easy_.get(), CURLOPT_WRITEFUNCTION, &Question::on_data);
    curl_easy_setopt(easy_.get(), CURLOPT_WRITEDATA, this);
    curl_easy_setopt(easy_.get(), CURLOPT_ERRORBUFFER, error_);
    use_bearer(easy_.get(), bearer);
    return easy_.get();
  }

  // Empty when the answer is there, else why not; `final` says that asking again does not help.
  std::string end(CURLcode result, bool& final) {
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    curl_header* link = nullptr;
    if (curl_easy_header(easy_.get(), "Link", 0, CURLH_HEADER, -1, &link) == CURLHE_OK) answer_.link = link->value;
    easy_.reset();
    final = too_long_ || is_final(result, status);
    if (too_long_) return fmt::format("more than {} bytes", max_size_);
    return result == CURLE_OK ? "" : error_[0] != '\0' ? error_ : curl_easy_strerror(result);
  }

 private:
  static std::size_t on_data(char* data, std::size_t, std::size_t count, void* self) {
    Question& question = *static_cast<Question*>(self);
    question.too_long_ = question.answer_.body.size() + count > question.max_size_;
    if (question.too_long_) return 0;
    question.answer_.body.append(data, count);
    return count;
  }

  std::string url_;
  std::uint64_t max_size_;
  Answer& answer_;
  Easy easy_;
  char error_[CURL_ERROR_SIZE] = {};
  bool too_long_ = false;
};

// Unreadable is as good as damaged: either way it is fetched again.
bool is_intact(const fs::path& path, const Digest& digest, Progress& progress) {
  try {
    return digest_of_file(path, [&](std::uint64_t bytes) { progress.add(bytes); }) == digest;
  } catch (const Error&) {
    return false;
  }
}

// Hashes what is cached, unless it is trusted, and returns what has to be fetched.
std::vector<const Download*> missing(const std::vector<Download>& downloads, const Cache& cache, Console& console,
                                     const FetchOptions& options) {
  std::uint64_t total = 0;
  std::map<Digest, const Download*> wanted;  // two packages may name one file
  for (const Download& download : downloads)
    if (wanted.emplace(download.sha256, &download).second && cache.contains(download.sha256))
      total += fs::file_size(cache.path(download.sha256));
  std::vector<const Download*> order, out;
  for (const auto& [digest, download] : wanted) (cache.contains(digest) ? order : out).push_back(download);
  if (!order.empty() && !options.trust_cache) {
    Progress progress(console, "checking the cache", total);
    std::atomic<std::size_t> next{0};
    std::mutex guard;
    const auto work = [&] {
      for (std::size_t i; (i = next.fetch_add(1)) < order.size();) {
        const Download& download = *order[i];
        const fs::path path = cache.path(download.sha256);
        if (is_intact(path, download.sha256, progress)) continue;
        console.warn(fmt::format("{} in the cache is damaged ({}); it is fetched again", download.name, path.string()));
        std::error_code ignored;
        fs::remove(path, ignored);
        const std::lock_guard lock(guard);
        out.push_back(&download);
      }
    };
    std::vector<std::future<void>> workers;
    for (unsigned i = 0; i < std::max(1u, options.jobs); ++i) workers.push_back(std::async(std::launch::async, work));
    for (std::future<void>& worker : workers) worker.get();
    progress.finish();
  }
  // The largest first, so that no long one is left alone at the end.
  std::sort(out.begin(), out.end(), [](const Download* a, const Download* b) {
    return a->size != b->size ? a->size > b->size : a->name < b->name;
  });
  return out;
}

// The one of `waiting` that may begin now; null when there is none and something runs meanwhile, or none at all.
template <class Item>
std::unique_ptr<Item> soonest(std::deque<std::unique_ptr<Item>>& waiting, unsigned running) {
  if (waiting.empty()) return nullptr;
  const auto first = std::min_element(waiting.begin(), waiting.end(),
                                      [](const auto& a, const auto& b) { return a->not_before < b->not_before; });
  if ((*first)->not_before > Clock::now()) {
    if (running > 0) return nullptr;
    std::this_thread::sleep_until((*first)->not_before);
  }
  std::unique_ptr<Item> item = std::move(*first);
  waiting.erase(first);
  return item;
}

// One failure is told as it is, several as one list: an index that changed under a lock changed for many files.
[[noreturn]] void refuse_all(const std::vector<Error>& failures) {
  if (failures.size() == 1) throw failures.front();
  std::vector<std::string> lines;
  bool other_bytes = false;
  for (const Error& failure : failures) {
    const bundle::Facts& facts = failure.facts();
    other_bytes = other_bytes || failure.code() == ErrorCode::Digest;
    lines.push_back(facts.what + ", " + facts.where + ": " +
                    (facts.expected.empty() ? "" : "expected " + facts.expected + ", got ") + facts.got);
  }
  std::sort(lines.begin(), lines.end());  // arrival is by chance
  std::string got;
  for (const std::string& line : lines) got += (got.empty() ? "" : "\n            ") + line;
  throw Error(other_bytes ? ErrorCode::Digest : ErrorCode::Network,
              {.what = fmt::format("{} downloads failed", failures.size()),
               .expected = "each file as it was when it was locked",
               .got = got,
               .next = "if the index took files back or replaced them, run sealift-pack lock again; if nothing is "
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
                                   .expected = human_size(needed) + " free",
                                   .got = human_size(free) + " free",
                                   .next = "make room, or name another folder with --cache"});
}

}  // namespace

std::size_t fetch(const std::vector<Download>& downloads, const Cache& cache, Console& console,
                  const FetchOptions& options) {
  const std::vector<const Download*> todo = missing(downloads, cache, console, options);
  if (todo.empty()) return 0;
  check_space(todo, cache);
  std::uint64_t total = 0;
  for (const Download* download : todo) total += download->size;
  Progress progress(console, fmt::format("fetching {} files", todo.size()), total);
  std::deque<std::unique_ptr<Transfer>> waiting;
  std::map<CURL*, std::unique_ptr<Transfer>> active;
  for (const Download* download : todo) waiting.push_back(std::make_unique<Transfer>(*download, cache, progress));
  std::vector<Error> failures;
  const auto next = [&](unsigned running) -> CURL* {
    std::unique_ptr<Transfer> transfer = soonest(waiting, running);
    if (!transfer) return nullptr;
    CURL* easy = transfer->begin();
    active.emplace(easy, std::move(transfer));
    return easy;
  };
  const auto done = [&](CURL* easy, CURLcode result) {
    std::unique_ptr<Transfer> transfer = std::move(active.extract(easy).mapped());
    std::string reason;
    try {
      reason = transfer->end(result);
      if (reason.empty()) return;
      transfer->failures = transfer->moved_on() ? 1 : transfer->failures + 1;
      if (transfer->failures >= options.attempts) transfer->fail(reason);
    } catch (const Error& error) {
      // What is wrong with one file is said together with what is wrong with the others.
      if (error.code() != ErrorCode::Network && error.code() != ErrorCode::Digest) throw;
      failures.push_back(error);
      return;
    }
    console.warn(fmt::format("{}: {}; attempt {} of {} follows", transfer->download().name, reason,
                             transfer->failures + 1, options.attempts));
    transfer->not_before = Clock::now() + options.first_pause * (1 << (transfer->failures - 1));
    waiting.push_back(std::move(transfer));
  };
  run_all(next, done, options.jobs);
  if (!failures.empty()) refuse_all(failures);
  progress.finish();
  return todo.size();
}

std::vector<Answer> ask(const std::vector<std::string>& urls, const std::string& bearer, std::uint64_t max_size,
                        const FetchOptions& options, const std::string& what, const std::string& hint) {
  std::vector<Answer> answers(urls.size());
  std::deque<std::unique_ptr<Question>> waiting;
  std::map<CURL*, std::unique_ptr<Question>> active;
  for (std::size_t i = 0; i < urls.size(); ++i)
    waiting.push_back(std::make_unique<Question>(urls[i], max_size, answers[i]));
  const auto next = [&](unsigned running) -> CURL* {
    std::unique_ptr<Question> question = soonest(waiting, running);
    if (!question) return nullptr;
    CURL* easy = question->begin(bearer);
    active.emplace(easy, std::move(question));
    return easy;
  };
  const auto done = [&](CURL* easy, CURLcode result) {
    std::unique_ptr<Question> question = std::move(active.extract(easy).mapped());
    bool final = false;
    const std::string reason = question->end(result, final);
    if (reason.empty()) return;
    if (final || ++question->failures >= options.attempts)
      throw Error(ErrorCode::Network, {.what = what, .where = question->url(), .got = reason, .next = hint});
    question->not_before = Clock::now() + options.first_pause * (1 << (question->failures - 1));
    waiting.push_back(std::move(question));
  };
  run_all(next, done, options.jobs);
  return answers;
}

std::vector<std::uint64_t> remote_sizes(const std::vector<std::string>& urls, unsigned jobs) {
  std::vector<std::uint64_t> sizes(urls.size());
  std::map<CURL*, std::pair<Easy, std::size_t>> active;
  std::size_t started = 0;
  const auto next = [&](unsigned) -> CURL* {
    if (started == urls.size()) return nullptr;
    Easy easy = new_handle(urls[started]);
    CURL* raw = easy.get();
    curl_easy_setopt(raw, CURLOPT_NOBODY, 1L);
    active.emplace(raw, std::pair(std::move(easy), started++));
    return raw;
  };
  const auto done = [&](CURL* easy, CURLcode result) {
    curl_off_t size = -1;
    if (result == CURLE_OK) curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size);
    if (size > 0) sizes[active.at(easy).second] = static_cast<std::uint64_t>(size);
    active.erase(easy);
  };
  run_all(next, done, jobs);
  return sizes;
}

}  // namespace sealift::packager
