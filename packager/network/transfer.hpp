// SPDX-License-Identifier: Apache-2.0
// One file on its way into the cache: an attempt at a time, each continuing where the last one stopped. fetch.hpp
// decides how many run at once and how often each is tried; here is what one attempt means.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "packager/files/part_file.hpp"
#include "packager/network/parallel_requests.hpp"

namespace sealift::packager {

struct Download {
  std::string name;  // for messages
  std::string url;
  bundle::Digest sha256;
  std::uint64_t size = 0;  // bytes; 0 when nobody said
  std::string bearer;      // a token for this host alone: a redirect to another host does not get it
};

class Transfer {
 public:
  // `options` have to stay.
  Transfer(const Download& download, const Cache& cache, bundle::Progress& progress, const FetchOptions& options);

  // One attempt; empty when the file is now in the cache, else why to try again. Throws Network when trying again is of
  // no use, Digest (after removing the bytes) when the server has another file, and what PartFile and `check` throw.
  std::string attempt(const std::function<void()>& check);

  // Whether the last attempt brought something.
  bool moved_on() const { return part_.size() > resumed_at_; }

  // Seconds that the server wanted us to wait in the last attempt; 0: it did not say.
  std::uint64_t wanted_wait() const { return wait_; }

  // Throws Network; where the server wants a login, or limits how often it is asked, `next` says so.
  [[noreturn]] void fail(const std::string& reason) const;

 private:
  std::string decoded(const std::function<void()>& check);
  std::string finish(bool may_decode, const std::function<void()>& check);
  std::string wrong_bytes(const std::string& got);

  const Download& download_;
  const FetchOptions& options_;
  std::uint64_t most_;  // bytes of the file
  bool needs_login_ = false;
  bool is_limited_ = false;
  bool decode_ = false;  // the server compresses it on its way
  std::uint64_t wait_ = 0;
  PartFile part_;
  std::uint64_t resumed_at_ = 0;
};

}  // namespace sealift::packager
