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
    if (one.contents) held_.push_back(one.contents->in);
}

void Scrub::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const std::vector<InBundle> all = bundles();
    for (const InBundle& in : all)
      for (std::uint64_t chunk = 0; chunk < in->manifest().payload.chunk_count() && is_held(in); ++chunk) {
        if (stop.stop_requested()) return;
        read(in, chunk);
        rest(stop, in->manifest().payload.chunk_size);
      }
    if (!all.empty()) ++counts_.rounds;
    rest(stop, rate_);  // a second, where there is little or nothing to read
  }
}

std::vector<Scrub::InBundle> Scrub::bundles() {
  const std::lock_guard lock(guard_);
  return held_;
}

bool Scrub::is_held(const InBundle& in) {
  const std::lock_guard lock(guard_);
  return std::find(held_.begin(), held_.end(), in) != held_.end();
}

void Scrub::read(const InBundle& in, std::uint64_t chunk) {
  try {
    memory_ = in->payload().chunk(chunk, std::move(memory_));
    counts_.bytes += memory_.size();
    if (!rotten_.of(in).contains(chunk)) return;
    rotten_.remove(in, chunk);
  } catch (const bundle::Error&) {
    memory_ = {};
    ++counts_.failures;
    if (!rotten_.add(in, chunk)) return;
  }
  on_change_();
}

void Scrub::rest(const std::stop_token& stop, std::uint64_t bytes) {
  std::mutex guard;
  std::unique_lock lock(guard);
  std::condition_variable_any never;
  const auto time = std::chrono::microseconds(bytes * 1'000'000 / std::max<std::uint64_t>(rate_, 1));
  never.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace sealift::offline_repo
