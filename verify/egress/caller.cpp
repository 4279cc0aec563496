// SPDX-License-Identifier: Apache-2.0
// Reading another process: process_vm_readv, pidfd_getfd, /proc.
// See caller.hpp.
// A copy of the descriptor shows type and peer of a socket without a table of all sockets.
#include "verify/egress/caller.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace sealift::verify {
namespace {

constexpr std::uint64_t kStart = 512, kMostMessages = 1024;

std::string proc_file(pid_t process, const char* file) {
  return "/proc/" + std::to_string(process) + "/" + file;
}

/// The process that a thread belongs to.
pid_t process_of(pid_t thread) {
  std::ifstream in(proc_file(thread, "status"));
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Tgid:")) return static_cast<pid_t>(std::strtol(line.c_str() + 5, nullptr, 10));
  }
  return thread;
}

}  // namespace

Caller::Caller(pid_t thread) : thread_(thread), process_(process_of(thread)) {}

std::optional<std::string> Caller::read(std::uint64_t address, std::uint64_t size) const {
  std::string bytes(size, '\0');
  const iovec here{bytes.data(), bytes.size()}, there{reinterpret_cast<void*>(address), bytes.size()};
  if (size == 0) return bytes;
  const auto got = process_vm_readv(thread_, &here, 1, &there, 1, 0);
  if (got < 0 && errno == EPERM) forbidden_ = true;
  if (got < 0 || static_cast<std::uint64_t>(got) != size) return std::nullopt;
  return bytes;
}

std::optional<std::vector<Sending>> Caller::sendto(std::uint64_t bytes, std::uint64_t size, std::uint64_t to,
                                                   std::uint64_t to_size) const {
  Sending sending;
  if (to != 0) {
    const auto address = read(to, std::min<std::uint64_t>(to_size, 128));
    if (!address) return std::nullopt;
    sending.to = destination_of(*address);
  }
  sending.start = read(bytes, std::min(size, kStart)).value_or("");
  return std::vector{std::move(sending)};
}

std::optional<Sending> Caller::message(std::uint64_t address) const {
  const auto bytes = read(address, sizeof(msghdr));
  if (!bytes) return std::nullopt;
  msghdr header{};
  std::memcpy(&header, bytes->data(), sizeof header);
  Sending sending;
  if (header.msg_name) {
    const auto name =
        read(reinterpret_cast<std::uint64_t>(header.msg_name), std::min<std::uint64_t>(header.msg_namelen, 128));
    if (!name) return std::nullopt;
    sending.to = destination_of(*name);
  }
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(header.msg_iovlen, 16) && sending.start.size() < kStart; ++i) {
    const auto piece = read(reinterpret_cast<std::uint64_t>(header.msg_iov) + i * sizeof(iovec), sizeof(iovec));
    if (!piece) break;
    iovec part{};
    std::memcpy(&part, piece->data(), sizeof part);
    sending.start += read(reinterpret_cast<std::uint64_t>(part.iov_base),
                          std::min<std::uint64_t>(part.iov_len, kStart - sending.start.size()))
                         .value_or("");
  }
  return sending;
}

std::optional<std::vector<Sending>> Caller::sendmsg(std::uint64_t messages, std::uint32_t count) const {
  std::vector<Sending> all;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, kMostMessages); ++i) {
    auto one = message(messages + i * sizeof(mmsghdr));  // its first member is the msghdr
    if (!one) return std::nullopt;
    all.push_back(std::move(*one));
  }
  return all;
}

std::string Caller::program() const {
  std::ifstream in(proc_file(process_, "comm"));
  std::string name;
  std::getline(in, name);
  return name;
}

std::string Caller::command_line() const {
  std::ifstream in(proc_file(process_, "cmdline"), std::ios::binary);
  std::string text(500, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  while (!text.empty() && text.back() == '\0') text.pop_back();
  for (auto& letter : text) letter = letter >= '\0' && letter < ' ' ? ' ' : letter;
  return text;
}

int file_of(pid_t process, int descriptor) {
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (pidfd < 0) return -1;
  const int file = static_cast<int>(syscall(SYS_pidfd_getfd, pidfd, descriptor, 0));
  const int error = errno;
  close(pidfd);
  errno = error;
  return file;
}

Socket socket_of(const Caller& caller, int descriptor) {
  Socket socket;
  const int file = file_of(caller.process(), descriptor);
  if (file < 0) return socket;
  struct stat status {};
  socklen_t size = sizeof socket.type;
  if (fstat(file, &status) == 0) socket.inode = status.st_ino;
  if (getsockopt(file, SOL_SOCKET, SO_TYPE, &socket.type, &size) != 0) socket.type = 0;
  sockaddr_storage peer{};
  socklen_t peer_size = sizeof peer;
  if (getpeername(file, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0) {
    socket.peer = destination_of({reinterpret_cast<const char*>(&peer), std::min<std::size_t>(peer_size, sizeof peer)});
  }
  close(file);
  return socket;
}

}  // namespace sealift::verify
