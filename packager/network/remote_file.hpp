// SPDX-License-Identifier: Apache-2.0
// A file on a server as a source of bytes, of which only the parts that are looked at are fetched. The readers of zip
// and wheel work on it, so that a wheel's directory and small members are known without its gigabytes. Nothing here is
// held to a digest: what is read this way may refuse early, and never vouches for what is carried.
#pragma once

#include <cstdint>
#include <string>

#include "packager/network/parallel_requests.hpp"
#include "sealift/bundle/core/byte_source.hpp"

namespace sealift::packager {

class RemoteFile final : public bundle::ByteSource {
 public:
  // `size` is that of the file. `check`, if there is one, is called while a request waits.
  RemoteFile(std::string url, std::uint64_t size, HttpLogins logins = {}, StopCheck check = {})
      : url_(std::move(url)), size_(size), logins_(std::move(logins)), check_(std::move(check)), end_begin_(size) {}

  std::uint64_t size() const override { return size_; }
  std::string name() const override;
  // Throws Network when the server does not send that part, or when more is asked for than a look is worth.
  bundle::ByteView view(std::uint64_t offset, std::size_t wanted) override;

 private:
  bundle::Bytes fetch(std::uint64_t from, std::uint64_t count);
  [[noreturn]] void fail(const std::string& why) const;

  std::string url_;
  std::uint64_t size_;
  HttpLogins logins_;
  StopCheck check_;
  std::uint64_t fetched_ = 0;
  bundle::Bytes end_;  // of the file, from end_begin_ on
  std::uint64_t end_begin_;
  bundle::Bytes page_;  // a piece further up
  std::uint64_t page_begin_ = 0;
};

}  // namespace sealift::packager
