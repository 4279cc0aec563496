// SPDX-License-Identifier: Apache-2.0
// Ranks as processes, for what threads of one process cannot be: autograd has one worker thread a device and process,
// so ranks that share a GPU as threads wait for each other for ever; NCCL takes ranks of one device for several hosts
// if each has an NCCL_HOSTID of its own. (For all else ranks are threads: ranks.hpp.) The running test case is run
// again by one process a rank, which goes to the same call: what stands before a call must not depend on chance, and
// what the ranks find wrong is printed by them and fails the case.
#pragma once

#include <sealift/train/comm/groups.hpp>

#include <doctest/doctest.h>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "tests/support/temp_dir.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace sealift::test {

/// Where a rank of on_processes() trains. A program sets it before main runs its cases.
inline std::function<at::Device(std::int64_t rank)> process_device = [](std::int64_t) { return at::Device(at::kCPU); };

/// What becomes of one rank on purpose.
struct Victim {
  enum class Fate { None, Killed, Stopped };
  Fate fate = Fate::None;
  std::int64_t rank = 1;
};

namespace process {

inline std::int64_t number_of(const char* name, std::int64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoll(value) : otherwise;
}

/// The rank that this process is; -1 in the process that was started by hand.
inline std::int64_t process_rank() {
  return number_of("SEALIFT_TEST_RANK", -1);
}

inline train::World world_of_process(std::chrono::milliseconds timeout) {
  const auto rank = process_rank();
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(number_of("SEALIFT_TEST_PORT", 0));
  options.isServer = false;
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  const auto size = number_of("SEALIFT_TEST_SIZE", 1);
  store->set("up" + std::to_string(rank), std::vector<std::uint8_t>{1});  // programs start at different speeds
  for (std::int64_t other = 0; other < size; ++other) store->wait({"up" + std::to_string(other)});
  return {.store = store, .rank = rank, .size = size, .timeout = timeout, .device = process_device(rank)};
}

inline pid_t start_rank(const std::string& name, std::int64_t call, std::int64_t rank, std::int64_t size, int port,
                        const std::string& output) {
  const auto child = fork();
  if (child != 0) return child;
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  dup2(file, 1);
  dup2(file, 2);
  const auto say = [](const char* variable, const std::string& value) { setenv(variable, value.c_str(), 1); };
  say("SEALIFT_TEST_RANK", std::to_string(rank));
  say("SEALIFT_TEST_SIZE", std::to_string(size));
  say("SEALIFT_TEST_PORT", std::to_string(port));
  say("SEALIFT_TEST_CALL", std::to_string(call));
  say("NCCL_HOSTID", "sealift-test-" + std::to_string(rank));
  say("NCCL_SOCKET_IFNAME", "lo");
  say("NCCL_IB_DISABLE", "1");
  say("OMP_NUM_THREADS", "1");
  const std::string filter = "--test-case=" + name;
  const char* arguments[] = {"/proc/self/exe", filter.c_str(), "--no-skip", "--no-version", nullptr};
  execv(arguments[0], const_cast<char**>(arguments));
  _exit(127);
}

inline std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace process

/// Calls `body(world)` in `size` processes at the same time, of which `victim` may kill or stop itself, and checks that
/// each other one ends well within `limit`. The case's name must have neither commas nor asterisks: it is a filter.
template <class Body>
void on_processes(std::int64_t size, Body body, std::chrono::milliseconds timeout = std::chrono::seconds(60),
                  Victim victim = {}, std::chrono::seconds limit = std::chrono::seconds(600)) {
  static std::int64_t calls = 0;
  const auto call = ++calls;
  if (process::process_rank() >= 0) {
    if (call != process::number_of("SEALIFT_TEST_CALL", 0)) return;
    at::set_num_threads(1);
    body(process::world_of_process(timeout));
    return;
  }
  const std::string name = doctest::getContextOptions()->currentTest->m_name;
  REQUIRE(name.find_first_of(",*") == name.npos);
  const TempDir folder;
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const c10d::TCPStore store("127.0.0.1", options);
  std::vector<pid_t> children;
  for (std::int64_t rank = 0; rank < size; ++rank)
    children.push_back(process::start_rank(name, call, rank, size, store.getPort(), folder / std::to_string(rank)));
  const auto is_stopped = [&](std::size_t rank) {
    return victim.fate == Victim::Fate::Stopped && static_cast<std::int64_t>(rank) == victim.rank;
  };
  std::size_t left = children.size() - (victim.fate == Victim::Fate::Stopped ? 1 : 0);
  const auto give_up = std::chrono::steady_clock::now() + limit;
  while (left > 0 && std::chrono::steady_clock::now() < give_up) {
    for (std::size_t rank = 0; rank < children.size(); ++rank) {
      int status = 0;
      if (children[rank] == 0 || is_stopped(rank) || waitpid(children[rank], &status, WNOHANG) == 0) continue;
      children[rank] = 0;
      --left;
      INFO("rank " << rank << " said:\n" << process::text_of(folder / std::to_string(rank)));
      const bool dies = victim.fate == Victim::Fate::Killed && static_cast<std::int64_t>(rank) == victim.rank;
      CHECK((dies ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    if (children[rank] == 0) continue;
    kill(children[rank], SIGKILL);
    waitpid(children[rank], nullptr, 0);
    INFO("rank " << rank << " said:\n" << process::text_of(folder / std::to_string(rank)));
    CHECK_MESSAGE(is_stopped(rank), "rank " << rank << " did not end in " << limit.count() << " s");
  }
}

}  // namespace sealift::test
