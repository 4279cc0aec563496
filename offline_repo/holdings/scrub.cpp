// SPDX-License-Identifier: Apache-2.0
// It rests after each chunk for as long as the rate gives it, whatever the medium could do.
#include "offline_repo/holdings/scrub.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>

namespace sealift::offline_repo {

void Scrub::take(const Held& held) {
  const std::lock_guard lock(guard_);
  held_.clear();
  for (const HeldBundle& one : held)
    if (one.contents) held_.push_back(one.contents);
}

void Scrub::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const std::vector<Contents> all = bundles();
    for (const Contents& one : all) {
      if (read_all(one->in, stop)) one->check->note_read();
      if (stop.stop_requested()) return;
    }
    if (!all.empty()) ++counts_.rounds;
    rest(stop, rate_);  // a second, where there is little or nothing to read
  }
}

bool Scrub::read_all(const InBundle& in, const std::stop_token& stop) {
  bool right = true;
  for (std::uint64_t chunk = 0; chunk < in->manifest().payload.chunk_count(); ++chunk) {
    if (stop.stop_requested() || !is_held(in)) return false;
    if (!read(in, chunk)) right = false;
    rest(stop, in->manifest().payload.chunk_size);
  }
  return right;
}

std::vector<Contents> Scrub::bundles() {
  const std::lock_guard lock(guard_);
  return held_;
}

bool Scrub::is_held(const InBundle& in) {
  const std::lock_guard lock(guard_);
  return std::any_of(held_.begin(), held_.end(), [&](const Contents& one) { return one->in == in; });
}

// Whether the chunk is right.
bool Scrub::read(const InBundle& in, std::uint64_t chunk) {
  bool right = true, known = true;
  try {
    memory_ = in->payload().chunk(chunk, std::move(memory_));
    counts_.bytes += memory_.size();
    known = !rotten_.of(in).contains(chunk);
    if (!known) rotten_.remove(in, chunk);
  } catch (const bundle::Error&) {
    memory_ = {};
    ++counts_.failures;
    right = false;
    known = !rotten_.add(in, chunk);
  }
  if (!known) on_change_();
  return right;
}

void Scrub::rest(const std::stop_token& stop, std::uint64_t bytes) {
  std::mutex guard;
  std::unique_lock lock(guard);
  std::condition_variable_any never;
  const auto time = std::chrono::microseconds(bytes * 1'000'000 / std::max<std::uint64_t>(rate_, 1));
  never.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace sealift::offline_repo
