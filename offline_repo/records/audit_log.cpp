// SPDX-License-Identifier: Apache-2.0
// O_APPEND and one write(2) a line: readers, and a rotation under us, never see half of one, but where a disk is full;
// that half is taken away again.
#include "offline_repo/records/audit_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

#include "bundle/core/json.hpp"
#include "bundle/host/require_trusted.hpp"

namespace sealift::offline_repo {

namespace {

constexpr std::size_t kMaxText = 2'000, kMaxWaiting = 4'096;

// A new one, or one that was there and that nobody else can have put there: in a folder as /tmp another user may have
// been first, with a link to a file of ours or with a file of theirs.
bundle::Descriptor open_log(const std::filesystem::path& path) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  bundle::require_trusted_path(path, bundle::Above::Site, "another user may read or change the audit log");
  bundle::Descriptor fresh(::open(path.c_str(), kFlags | O_CREAT | O_EXCL | O_NOFOLLOW, 0640));
  if (fresh || errno != EEXIST) return fresh;
  bundle::require_trusted_path(path, bundle::Above::Site, "another user may read or change the audit log");
  return bundle::Descriptor(::open(path.c_str(), kFlags | O_CREAT, 0640));
}

std::string utc(std::chrono::system_clock::time_point time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const std::time_t seconds = std::chrono::system_clock::to_time_t(whole);
  const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(time - whole).count();
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  const std::size_t count = std::strftime(text, sizeof text, "%FT%T", &parts);
  const std::string digits = std::to_string(1000 + rest);
  return std::string(text, count) + "." + digits.substr(1) + "Z";
}

}  // namespace

std::string escaped_bytes(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, kMaxText)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\')
      out.push_back(c);
    else
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text.size() > kMaxText ? out + "\\..." : out;
}

std::string audit_line(const AnsweredRequest& request) {
  bundle::Json line = {{"time", utc(request.time)},
                       {"status", request.status},
                       {"bytes", request.bytes},
                       {"complete", request.complete},
                       {"milliseconds", request.milliseconds}};
  const auto add = [&line](const char* key, const std::string& text) {
    if (!text.empty()) line[key] = escaped_bytes(text);
  };
  add("client", request.client);
  add("user", request.user);
  add("method", request.method);
  add("target", request.target);
  add("range", request.range);
  add("user_agent", request.agent);
  add("bundle", request.bundle);
  add("entry", request.entry);
  add("sha256", request.sha256);
  return bundle::write_json(line);
}

AuditLog::AuditLog(std::filesystem::path path) : path_(std::move(path)), file_(open_log(path_)) {
  if (!file_) bundle::throw_errno("the audit log cannot be opened", path_);
}

bool AuditLog::write(std::string line) {
  line.push_back('\n');
  const std::lock_guard lock(guard_);
  if (waiting_.size() < kMaxWaiting)
    waiting_.push_back(std::move(line));
  else
    ++lost_;
  return write_waiting();
}

bool AuditLog::writable() {
  const std::lock_guard lock(guard_);
  return write_waiting();
}

bool AuditLog::reopen() {
  bundle::Descriptor fresh;
  try {
    fresh = open_log(path_);
  } catch (const bundle::Error&) {  // as one that cannot be opened: the old one stays
  }
  if (!fresh) return false;
  const std::lock_guard lock(guard_);
  file_ = std::move(fresh);
  torn_ = false;
  write_waiting();
  return true;
}

std::uint64_t AuditLog::lost() const {
  const std::lock_guard lock(guard_);
  return lost_;
}

bool AuditLog::write_waiting() {
  while (!waiting_.empty() && write_whole(waiting_.front())) waiting_.pop_front();
  return waiting_.empty();
}

bool AuditLog::write_whole(const std::string& line) {
  const std::string text = torn_ ? "\n" + line : line;
  const ssize_t count = ::write(file_.get(), text.data(), text.size());
  if (count == static_cast<ssize_t>(text.size())) return torn_ = false, true;
  if (count <= 0) return false;
  struct stat found {};
  torn_ = ::fstat(file_.get(), &found) != 0 || !S_ISREG(found.st_mode) ||
          ::ftruncate(file_.get(), found.st_size - count) != 0;
  return false;
}

}  // namespace sealift::offline_repo
