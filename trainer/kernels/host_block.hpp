// SPDX-License-Identifier: Apache-2.0
// A block of threads on the host: each phase of a body runs for one thread after the other, in any order.
// Above nothing; HostLauncher runs kernels with it, and tests hold bodies to ATen by it. A body whose answer depends on
// the order of threads within a phase, or of blocks, has a race. What a phase leaves in shared memory is seen by the
// next one alone, since a barrier ends each phase.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace sealift::trainer::kernels {

/// In which order threads and blocks run.
enum class Order { Given, Reversed, Drawn };

/// 0 to count - 1 in an order; drawn by `random`.
inline std::vector<unsigned> in_order(unsigned count, Order order, std::mt19937& random) {
  std::vector<unsigned> all(count);
  std::iota(all.begin(), all.end(), 0U);
  if (order == Order::Reversed) std::reverse(all.begin(), all.end());
  if (order == Order::Drawn) std::shuffle(all.begin(), all.end(), random);
  return all;
}

/// How many blocks of how many threads, and their order on a host.
struct HostGrid {
  unsigned blocks = 0, threads = 0;
  Order order = Order::Given;
};

class HostBlock {
 public:
  static constexpr unsigned kWarp = 32;

  HostBlock(unsigned index, const HostGrid& grid, std::mt19937& random) : index_(index), grid_(grid), random_(random) {}

  unsigned index() const { return index_; }
  unsigned threads() const { return grid_.threads; }

  /// A value of each thread, which it keeps from phase to phase. Not initialized: all bits are set, which is NaN.
  template <class T>
  std::vector<T> per_thread() const {
    std::vector<T> all(grid_.threads);
    std::memset(static_cast<void*>(all.data()), 0xff, all.size() * sizeof(T));
    return all;
  }

  /// Memory of the block, the same at each call for one type and count; not initialized likewise.
  template <class T, unsigned kCount>
  T* shared() {
    shared_.assign(sizeof(T) * kCount, std::byte{0xff});
    return reinterpret_cast<T*>(shared_.data());
  }

  /// A phase: every thread runs it with its number, then all wait for each other.
  template <class Phase>
  void each(Phase phase) const {
    if (grid_.order == Order::Given) {
      for (unsigned thread = 0; thread < grid_.threads; ++thread) phase(thread);
      return;
    }
    for (const auto thread : in_order(grid_.threads, grid_.order, random_)) phase(thread);
  }

  /// The last one, after which nobody waits.
  template <class Phase>
  void last(Phase phase) const {
    each(phase);
  }

  /// Merges the values of each 32 threads into every one of them: with the value 16 lanes away, then 8, 4, 2, 1.
  /// `merge` gives the same in either order.
  template <class T, class Merge>
  void over_warp(std::vector<T>& values, Merge merge) const {
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
      const auto before = values;
      for (unsigned i = 0; i < values.size(); ++i) values[i] = merge(before[i], before[i ^ distance]);
    }
  }

 private:
  unsigned index_;
  const HostGrid& grid_;
  std::mt19937& random_;
  std::vector<std::byte> shared_;
};

/// Runs a body for all blocks of a grid.
template <class Args, void (*kBody)(HostBlock&, const Args&)>
void run_on_host(const HostGrid& grid, const void* args) {
  std::mt19937 random(7);
  for (const auto index : in_order(grid.blocks, grid.order, random)) {
    HostBlock block(index, grid, random);
    kBody(block, *static_cast<const Args*>(args));
  }
}

}  // namespace sealift::trainer::kernels
