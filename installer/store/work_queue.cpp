// SPDX-License-Identifier: Apache-2.0
// A small piece does not overtake a large one that waits for memory; it would wait for ever.
#include "installer/store/work_queue.hpp"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "sealift/bundle/core/parallel_for.hpp"

namespace sealift::installer {

void WorkQueue::add(const WorkOrder& order, std::uint64_t memory, Work work) {
  {
    const std::lock_guard lock(guard_);
    waiting_.emplace(order, Piece{.memory = memory, .work = std::move(work)});
  }
  changed_.notify_all();
}

bool WorkQueue::can_begin() const {
  if (waiting_.empty()) return false;
  return used_ == 0 || used_ + waiting_.begin()->second.memory <= memory_;
}

void WorkQueue::take_turns() {
  std::unique_lock lock(guard_);
  for (;;) {
    changed_.wait(lock, [&] { return failure_ || can_begin() || (waiting_.empty() && busy_ == 0); });
    if (failure_ || waiting_.empty()) return;
    Piece piece = std::move(waiting_.extract(waiting_.begin()).mapped());
    used_ += piece.memory;
    ++busy_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      piece.work();
    } catch (...) {
      failure = std::current_exception();
    }
    piece.work = nullptr;  // what it holds is gone before its memory is given back
    lock.lock();
    used_ -= piece.memory;
    --busy_;
    if (failure && !failure_) failure_ = failure;
    changed_.notify_all();
  }
}

void WorkQueue::run(unsigned threads) {
  {
    std::vector<std::jthread> others;
    if (threads > 1) bundle::start_threads(others, threads - 1, [this] { take_turns(); });
    take_turns();
  }
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace sealift::installer
