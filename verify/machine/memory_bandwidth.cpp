// SPDX-License-Identifier: Apache-2.0
// The triad.
// See memory_bandwidth.hpp.
// Each thread touches its part first, so that the pages lie with the processor that uses them.
#include "verify/machine/memory_bandwidth.hpp"

#include "verify/wording/numbers.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace sealift::verify {

double triad_rate(std::size_t numbers, unsigned threads, int passes) {
  using Clock = std::chrono::steady_clock;
  const std::unique_ptr<double[]> a(new double[numbers]), b(new double[numbers]), c(new double[numbers]);
  std::vector<Clock::time_point> moments;
  std::barrier together(threads, [&]() noexcept { moments.push_back(Clock::now()); });
  moments.reserve(static_cast<std::size_t>(passes) + 1);  // no allocation between two passes
  const auto work = [&](unsigned thread) {
    const auto from = numbers * thread / threads, to = numbers * (thread + 1) / threads;
    for (auto i = from; i < to; ++i) a[i] = 0, b[i] = 2, c[i] = 1;
    together.arrive_and_wait();
    for (int pass = 0; pass < passes; ++pass) {
      for (auto i = from; i < to; ++i) a[i] = b[i] + 3 * c[i];
      together.arrive_and_wait();
    }
  };
  std::vector<std::thread> running;
  for (unsigned thread = 0; thread < threads; ++thread) running.emplace_back(work, thread);
  for (auto& thread : running) thread.join();
  for (std::size_t i = 0; i < numbers; ++i) {
    if (a[i] != 5)
      throw std::runtime_error("memory gave back another number than was written: 5 became " + exact_text(a[i]));
  }
  double best = 0;
  for (std::size_t i = 1; i < moments.size(); ++i) {
    const std::chrono::duration<double> seconds = moments[i] - moments[i - 1];
    best = std::max(best, 24 * static_cast<double>(numbers) / seconds.count() / 1e9);
  }
  return best;
}

}  // namespace sealift::verify
