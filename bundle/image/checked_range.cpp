// SPDX-License-Identifier: Apache-2.0
// A chunk is read outside of the lock, so that others are served meanwhile from what is kept.
#include "bundle/image/checked_range.hpp"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>

namespace sealift::bundle {

namespace {

constexpr unsigned kMostReading = 16;  // chunks that a medium which does not answer may owe

}  // namespace

CheckedRange::CheckedRange(const PayloadReader& payload, std::uint64_t offset, std::uint64_t size, std::uint64_t memory,
                           std::chrono::milliseconds patience)
    : payload_(payload), offset_(offset), size_(size), memory_(memory), patience_(patience) {}

CheckedRange::~CheckedRange() {
  std::unique_lock lock(guard_);
  changed_.wait(lock, [&] { return reading_ == 0; });
}

void CheckedRange::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const std::uint64_t at = offset_ + offset, index = payload_.layout().at(at);
    const Chunk bytes = chunk(index);
    const auto inside = static_cast<std::size_t>(at - payload_.layout().begin_of(index));
    const std::size_t count = std::min(out.size(), bytes->size() - inside);
    std::memcpy(out.data(), bytes->view().data() + inside, count);
    out = out.subspan(count);
    offset += count;
  }
}

std::uint64_t CheckedRange::chunks_read() const {
  const std::lock_guard lock(guard_);
  return reads_;
}

std::vector<std::uint64_t> CheckedRange::chunks_in_order() const {
  const std::lock_guard lock(guard_);
  return order_;
}

CheckedRange::Chunk CheckedRange::chunk(std::uint64_t index) const {
  const auto until = std::chrono::steady_clock::now() + patience_;
  std::unique_lock lock(guard_);
  const bool first = !kept_.contains(index);
  if (first) {
    if (reading_ >= kMostReading) refuse_silence(index);
    kept_.emplace(index, std::make_shared<Kept>());
  }
  const std::shared_ptr<Kept> wanted = kept_.at(index);  // it may be forgotten while this one waits
  if (first) {
    lock.unlock();
    begin_reading(index);
    lock.lock();
  }
  const auto answered = [&] { return wanted->bytes || wanted->failure; };
  if (patience_ == patience_.zero())
    changed_.wait(lock, answered);
  else if (!changed_.wait_until(lock, until, answered))
    refuse_silence(index);
  if (wanted->failure) std::rethrow_exception(wanted->failure);
  wanted->used = ++clock_;
  return wanted->bytes;
}

// A thread of its own for who has patience: a read of a network file system cannot be broken off.
void CheckedRange::begin_reading(std::uint64_t index) const {
  if (patience_ == patience_.zero()) return read_chunk(index);
  {
    const std::lock_guard lock(guard_);
    ++reading_;
  }
  const auto work = [this, index] {
    read_chunk(index);
    const std::lock_guard lock(guard_);
    --reading_;
    changed_.notify_all();
  };
  try {
    std::thread(work).detach();
  } catch (const std::system_error&) {  // no more threads: without patience
    work();
  }
}

void CheckedRange::read_chunk(std::uint64_t index) const {
  Chunk bytes;
  std::exception_ptr failure;
  try {
    bytes = std::make_shared<const ChunkBuffer>(payload_.chunk(index));
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(guard_);
  const std::shared_ptr<Kept> there = kept_.at(index);
  if (failure) {
    there->failure = failure;
    kept_.erase(index);
  } else {
    there->bytes = bytes;
    there->used = ++clock_;
    bytes_ += bytes->size();
    ++reads_;
    if (known_.insert(index).second) order_.push_back(index);
    forget_oldest();
  }
  changed_.notify_all();
}

void CheckedRange::refuse_silence(std::uint64_t index) const {
  throw Error(ErrorCode::Io, {.what = "the medium does not answer",
                              .where = payload_.describe(payload_.layout().begin_of(index)),
                              .expected = "an answer within " + std::to_string(patience_.count() / 1000) + " s",
                              .next = "look whether its server is reachable; what comes late is read all the same"});
}

// With the lock held. What somebody copies from right now lives on until they are done.
void CheckedRange::forget_oldest() const {
  while (bytes_ > memory_) {
    auto oldest = kept_.end();
    std::size_t whole = 0;
    for (auto one = kept_.begin(); one != kept_.end(); ++one) {
      if (!one->second->bytes) continue;
      ++whole;
      if (oldest == kept_.end() || one->second->used < oldest->second->used) oldest = one;
    }
    if (whole < 2) return;
    bytes_ -= oldest->second->bytes->size();
    kept_.erase(oldest);
  }
}

}  // namespace sealift::bundle
