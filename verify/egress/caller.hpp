// SPDX-License-Identifier: Apache-2.0
// A thread that waits in a call: what is in its memory, which socket it means, which program it is.
// Below the watch.
// All of it is hostile: lengths are bounded, and what cannot be read is nothing.
#pragma once

#include "verify/egress/destination.hpp"

#include <sys/types.h>

namespace sealift::verify {

/// One datagram, or a piece of a stream.
struct Sending {
  std::optional<Destination> to;  ///< nothing: the socket's peer
  std::string start;              ///< its first bytes, at most 512: a DNS query over UDP has no more (RFC 1035, 4.2.1)
};

class Caller {
 public:
  explicit Caller(pid_t thread);

  /// `size` bytes at `address`; nothing where they cannot be read.
  std::optional<std::string> read(std::uint64_t address, std::uint64_t size) const;

  /// The arguments of the calls of these names; nothing where they cannot be read. `count` messages, at most 1024 as
  /// the kernel allows.
  std::optional<std::vector<Sending>> sendto(std::uint64_t bytes, std::uint64_t size, std::uint64_t to,
                                             std::uint64_t to_size) const;
  std::optional<std::vector<Sending>> sendmsg(std::uint64_t messages, std::uint32_t count) const;

  /// Whether a read was refused; else what could not be read is not there, and the call will fail by itself.
  bool forbidden() const { return forbidden_; }

  pid_t process() const { return process_; }
  std::string program() const;
  std::string command_line() const;  ///< with spaces, at most 500 bytes

 private:
  std::optional<Sending> message(std::uint64_t address) const;
  pid_t thread_, process_;
  mutable bool forbidden_ = false;
};

/// What a descriptor of another process is.
struct Socket {
  int type = 0;             ///< SOCK_…; 0: not known
  std::uint64_t inode = 0;  ///< the same for all descriptors of one socket
  std::optional<Destination> peer;
};
Socket socket_of(const Caller& caller, int descriptor);

/// A descriptor of `process` as one of this process; -1 and errno.
int file_of(pid_t process, int descriptor);

}  // namespace sealift::verify
