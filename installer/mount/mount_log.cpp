// SPDX-License-Identifier: Apache-2.0
// A line is one write, so that several servers may share a file.
#include "installer/mount/mount_log.hpp"

#include <fcntl.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>

#include "sealift/bundle/core/time.hpp"

namespace sealift::installer {

MountLog::MountLog(const std::filesystem::path& file) {
  if (file.empty()) {
    ::openlog("sealift-install", LOG_PID | LOG_NDELAY, LOG_DAEMON);
    return;
  }
  file_ =
      bundle::Descriptor(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0644));
  if (!file_) bundle::throw_errno("the log cannot be opened", file);
}

void MountLog::say(const std::string& text) {
  std::string line = text;
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 127; }, ' ');
  const std::lock_guard lock(guard_);
  if (said_.size() >= kMostSaid || !said_.insert(line).second) return;
  if (!file_) return ::syslog(LOG_ERR, "%s", line.c_str());
  line = bundle::write_time(bundle::system_time()) + " " + line + "\n";
  (void)!::write(file_.get(), line.data(), line.size());
}

}  // namespace sealift::installer
