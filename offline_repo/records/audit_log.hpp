// SPDX-License-Identifier: Apache-2.0
// Who took what: one line of strict JSON for each answered request, appended to a file by one write each.
// Clients say what they like, so each of their texts is escaped to printable ASCII and cut; the way back is unique.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>

#include "sealift/bundle/core/file.hpp"

namespace sealift::offline_repo {

// What is known of one request once its answer has ended; empty texts are left out of its line.
struct AnsweredRequest {
  std::chrono::system_clock::time_point time;  // when its head was there
  std::string client;                          // an address
  std::string user;                            // the name of its token
  std::string method, target, range, agent;    // as they were sent
  unsigned status = 0;
  std::uint64_t bytes = 0;    // of the body that left
  bool complete = true;       // the whole answer left
  std::string bundle, entry;  // NAME-VERSION and the entry's path, when bytes of a bundle's file were given
  std::string sha256;         // of that file
  std::int64_t milliseconds = 0;
};

// Printable ASCII: a backslash and every other byte become \xNN; what is longer than 2,000 bytes ends in "\...".
std::string escaped_bytes(std::string_view text);

// One JSON object without a line break at its end.
std::string audit_line(const AnsweredRequest& request);

// Safe from several threads. Never waits for a reader of a pipe.
class AuditLog {
 public:
  // Opens the file for appending, or makes it with mode 0640. Throws Io and the like.
  explicit AuditLog(std::filesystem::path path);

  // Writes what waits and then this line. What cannot be written waits, 4,096 lines at most; later ones are counted as
  // lost. False: this line was not written.
  bool write(std::string line);
  // Whether the latest line was written; otherwise it is tried again, so that this tells when there is room again.
  bool writable();
  // Closes the file and opens the file that has its name now; false, and the old one stays, when it cannot be opened.
  bool reopen();
  std::uint64_t lost() const;

 private:
  bool write_waiting();
  bool write_whole(const std::string& line);

  const std::filesystem::path path_;
  mutable std::mutex guard_;  // of what follows
  bundle::Descriptor file_;
  std::deque<std::string> waiting_;
  std::uint64_t lost_ = 0;
  bool torn_ = false;  // the file ends within a line
};

}  // namespace sealift::offline_repo
