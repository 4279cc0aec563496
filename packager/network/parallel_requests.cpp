// SPDX-License-Identifier: Apache-2.0
// parallel_for with a way to stop what has begun; see parallel_requests.hpp.
#include "packager/network/parallel_requests.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "sealift/bundle/core/parallel_for.hpp"
#include "sealift/bundle/host/interrupt.hpp"

namespace sealift::packager {

namespace {

struct OtherFailed {};

}  // namespace

void parallel_requests(unsigned jobs, std::size_t count,
                       const std::function<void(std::size_t, const StopCheck&)>& work) {
  std::atomic<bool> failed{false};
  const StopCheck check = [&failed] {
    bundle::stop_if_interrupted();
    if (failed) throw OtherFailed{};
  };
  bundle::parallel_for(std::max(1u, jobs), count, [&](std::size_t index) {
    try {
      check();
      work(index, check);
    } catch (const OtherFailed&) {  // parallel_for throws what the other one threw
    } catch (...) {
      failed = true;
      throw;
    }
  });
}

void pause_before_retry(const FetchOptions& options, int failures, const StopCheck& check, std::uint64_t wanted) {
  constexpr std::chrono::milliseconds kSlice{100};
  const std::chrono::milliseconds least = std::chrono::seconds(std::min(wanted, kLongestWait));
  const auto end = std::chrono::steady_clock::now() + std::max(options.first_pause * (1 << (failures - 1)), least);
  for (auto now = std::chrono::steady_clock::now(); now < end; now = std::chrono::steady_clock::now()) {
    check();
    std::this_thread::sleep_for(std::min<std::chrono::steady_clock::duration>(kSlice, end - now));
  }
}

}  // namespace sealift::packager
