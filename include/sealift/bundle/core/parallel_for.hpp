// SPDX-License-Identifier: Apache-2.0
// One piece of work for each of many things, by several threads: a free one takes the next piece.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace sealift::bundle {

// Starts threads that do `work` until there are `count` of them, or fewer where the system gives no more: a limit of
// processes or memory costs time, and ends nothing.
template <class Work>
void start_threads(std::vector<std::jthread>& threads, std::size_t count, const Work& work) {
  try {
    while (threads.size() < count) threads.emplace_back(work);
  } catch (const std::system_error&) {
  }
}

// Calls work(index) for every index below `count`, begun in their order, by `threads` threads, the caller's among them.
// After a failure nothing more is begun, and the first one is thrown once all have ended.
template <class Work>
void parallel_for(unsigned threads, std::size_t count, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::mutex guard;
  std::exception_ptr failure;
  const auto take_turns = [&] {
    for (std::size_t index; (index = next.fetch_add(1)) < count;) try {
        work(index);
      } catch (...) {
        const std::lock_guard lock(guard);
        if (!failure) failure = std::current_exception();
        next = count;
      }
  };
  {
    std::vector<std::jthread> others;
    if (count > 1 && threads > 1) start_threads(others, std::min<std::size_t>(threads, count) - 1, take_turns);
    take_turns();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace sealift::bundle
