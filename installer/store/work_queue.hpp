// SPDX-License-Identifier: Apache-2.0
// Pieces of work of known size and memory, done by several threads: the largest first, so that no thread is left alone
// with one at the end, and never more at a time than fit into the memory. A queue and not a parallel_for: opening a
// wheel tells of its members, which are pieces of their own.
#pragma once

#include <compare>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>

namespace sealift::installer {

// Which piece is begun before another one; all in bytes.
struct WorkOrder {
  std::uint64_t whole = 0;  // of what the piece is a part of: the larger first
  std::uint64_t part = 0;   // of the piece itself: the larger first
  std::uint64_t place = 0;  // in the payload: the earlier first

  auto operator<=>(const WorkOrder& other) const {
    if (const auto by_whole = other.whole <=> whole; by_whole != 0) return by_whole;
    if (const auto by_part = other.part <=> part; by_part != 0) return by_part;
    return place <=> other.place;
  }
};

class WorkQueue {
 public:
  using Work = std::function<void()>;

  // A piece that needs more than `memory` bytes is done alone.
  explicit WorkQueue(std::uint64_t memory) : memory_(memory) {}
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Before run(), or from a piece of work, whose thread goes on to the first piece when it returns.
  void add(const WorkOrder& order, std::uint64_t memory, Work work);

  // Returns once nothing is left, with `threads` threads, the caller's among them. After a failure nothing more is
  // begun, and the first one is thrown once all have ended.
  void run(unsigned threads);

 private:
  struct Piece {
    std::uint64_t memory;
    Work work;
  };

  bool can_begin() const;
  void take_turns();

  const std::uint64_t memory_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::multimap<WorkOrder, Piece> waiting_;
  std::uint64_t used_ = 0;
  unsigned busy_ = 0;
  std::exception_ptr failure_;
};

}  // namespace sealift::installer
