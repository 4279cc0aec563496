// SPDX-License-Identifier: Apache-2.0
// Ranks as threads: what a test of the training core runs its body in.
// One ProcessGroupGloo per thread over loopback and one shared store, so a whole world is one process under one
// debugger. An error in any rank is rethrown to the test, after all ranks are done; a short timeout turns a hang into
// an error.
#pragma once

#include <sealift/train/comm/groups.hpp>

#include <cstdlib>
#include <exception>
#include <thread>

namespace sealift::test {

/// c10d's flight recorder is one per process and adds groups to a map without a lock. Off before main, since it is made
/// with the first group, and ranks are threads here.
inline const int kFlightRecorderOff = setenv("TORCH_FR_BUFFER_SIZE", "0", 1);

/// Calls `body(world)` once per rank, at the same time; throws the first error of the lowest rank that had one.
template <class Body>
void on_ranks(std::int64_t size, Body body, std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (std::int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      // Ranks are the parallelism: more threads than cores would only wait for each other.
      at::set_num_threads(1);
      try {
        body(train::World{.store = store, .rank = rank, .size = size, .timeout = timeout});
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace sealift::test
