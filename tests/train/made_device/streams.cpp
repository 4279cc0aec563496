// SPDX-License-Identifier: Apache-2.0
#include "tests/train/made_device/streams.hpp"

#include <array>
#include <map>
#include <random>
#include <thread>
#include <utility>

namespace sealift::test::made {

namespace {

constexpr std::int64_t kStreams = 32;

std::mutex error_mutex;
std::exception_ptr first_error;

void note_error() {
  const std::lock_guard lock(error_mutex);
  if (!first_error) first_error = std::current_exception();
}

void throw_error() {
  const std::lock_guard lock(error_mutex);
  if (first_error) std::rethrow_exception(std::exchange(first_error, nullptr));
}

/// All streams. Never destroyed: their threads run until the process ends.
struct Streams {
  std::mutex mutex;
  std::array<std::map<std::int64_t, std::unique_ptr<Queue>>, kDevices> queues;
  std::array<std::int64_t, kDevices> given{};

  static Streams& instance() {
    static auto* streams = new Streams;
    return *streams;
  }
};

}  // namespace

Queue::Queue(std::uint64_t seed) {
  std::thread([this, seed] { work(seed); }).detach();
}

std::uint64_t Queue::push(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
  return ++pushed_;
}

std::uint64_t Queue::pushed() {
  const std::lock_guard lock(mutex_);
  return pushed_;
}

bool Queue::is_done(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  return done_ >= number;
}

void Queue::wait_for(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= number; });
}

void Queue::work(std::uint64_t seed) {
  std::minstd_rand dice(static_cast<unsigned>(seed));
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !tasks_.empty(); });
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    if (dice() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(dice() % 200));
    try {
      task();
    } catch (...) {
      note_error();
    }
    task = nullptr;
    const std::lock_guard lock(mutex_);
    ++done_;
    changed_.notify_all();
  }
}

Queue& queue(std::int8_t device, std::int64_t id) {
  auto& streams = Streams::instance();
  const std::lock_guard lock(streams.mutex);
  auto& made = streams.queues.at(static_cast<std::size_t>(device))[id];
  if (!made) made = std::make_unique<Queue>(1 + static_cast<std::uint64_t>(id * kDevices + device));
  return *made;
}

std::int64_t next_stream(std::int8_t device) {
  auto& streams = Streams::instance();
  const std::lock_guard lock(streams.mutex);
  return 1 + streams.given.at(static_cast<std::size_t>(device))++ % kStreams;
}

Mark record(Queue& queue) {
  auto when = std::make_shared<std::chrono::steady_clock::time_point>();
  const auto number = queue.push([when] { *when = std::chrono::steady_clock::now(); });
  return {&queue, number, std::move(when)};
}

void block(Queue& waiting, const Mark& mark) {
  if (!mark.queue || mark.queue == &waiting) return;
  waiting.push([from = mark.queue, number = mark.number] { from->wait_for(number); });
}

void synchronize(std::int8_t device) {
  std::map<std::int64_t, std::unique_ptr<Queue>>* queues;
  std::vector<Queue*> all;
  {
    auto& streams = Streams::instance();
    const std::lock_guard lock(streams.mutex);
    queues = &streams.queues.at(static_cast<std::size_t>(device));
    for (const auto& [id, each] : *queues) all.push_back(each.get());
  }
  for (auto* each : all) each->wait_for(each->pushed());
  throw_error();
}

void synchronize(Queue& queue) {
  queue.wait_for(queue.pushed());
  throw_error();
}

void synchronize(const Mark& mark) {
  if (mark.queue) mark.queue->wait_for(mark.number);
  throw_error();
}

std::int8_t& current_device() {
  thread_local std::int8_t device = 0;
  return device;
}

std::int64_t& current_stream(std::int8_t device) {
  thread_local std::array<std::int64_t, kDevices> streams{};
  return streams.at(static_cast<std::size_t>(device));
}

}  // namespace sealift::test::made
