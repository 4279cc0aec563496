// SPDX-License-Identifier: Apache-2.0
// The streams and events of the made devices: queues of tasks, each with a thread of its own.
// Above `memory`; `allocator` and `kernels` queue tasks here, `guard` shows the streams to c10.
// A stream sleeps before some of its tasks, so that what a program did not order comes in another order: a wait that
// was forgotten shows in the values.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

namespace sealift::test::made {

inline constexpr std::int8_t kDevices = 4;

/// One stream. Lives until the process ends.
class Queue {
 public:
  explicit Queue(std::uint64_t seed);

  /// Returns the task's number: the first is 1. Tasks run in the order of their numbers.
  std::uint64_t push(std::function<void()> task);

  std::uint64_t pushed();
  bool is_done(std::uint64_t number);
  void wait_for(std::uint64_t number);

 private:
  void work(std::uint64_t seed);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::uint64_t pushed_ = 0, done_ = 0;
};

/// Stream `id` of device `device`: 0 is the default one. Made at the first call.
Queue& queue(std::int8_t device, std::int64_t id);

/// The id of a stream beside the default one, another at each call until 32 are out.
std::int64_t next_stream(std::int8_t device);

/// A place in a stream; passes when all tasks before it are done.
struct Mark {
  Queue* queue = nullptr;  ///< null: never recorded, has passed
  std::uint64_t number = 0;
  std::shared_ptr<std::chrono::steady_clock::time_point> when;

  bool has_passed() const { return !queue || queue->is_done(number); }
};

Mark record(Queue& queue);

/// What is pushed on `waiting` from now on starts after `mark`.
void block(Queue& waiting, const Mark& mark);

/// Returns when all tasks of all streams of `device` are done; throws the first error of a task since the last call, as
/// all waits below do.
void synchronize(std::int8_t device);
void synchronize(Queue& queue);
void synchronize(const Mark& mark);

/// The calling thread's device, and its stream of `device`.
std::int8_t& current_device();
std::int64_t& current_stream(std::int8_t device);
inline Queue& current_queue(std::int8_t device) {
  return queue(device, current_stream(device));
}

}  // namespace sealift::test::made
