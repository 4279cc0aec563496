// SPDX-License-Identifier: Apache-2.0
// One piece of work for each of many things, by several threads: whoever is free takes the next one.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace sealift::bundle {

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
    for (std::size_t i = 1; i < std::min<std::size_t>(threads, count); ++i) others.emplace_back(take_turns);
    take_turns();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace sealift::bundle
