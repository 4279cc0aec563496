// SPDX-License-Identifier: Apache-2.0
// The bodies of in_flight.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/in_flight.hpp>

namespace sealift::train {

namespace detail {

SEALIFT_BODY InFlight::~InFlight() {
  // A stream must wait even after an error, or the device would write into memory that is something else by then.
  if (works.empty() || (engine != Engine::Device && std::uncaught_exceptions() > 0)) return;
  try {
    wait();
  } catch (const std::exception&) {
    // The watch keeps the failure for the next collective.
  }
}

SEALIFT_BODY void InFlight::send(const at::Tensor& part, std::int64_t peer) {
  std::vector<at::Tensor> tensors{part};
  works.push_back(channel->world->gloo->send(tensors, world_rank(peer), tag));
}

SEALIFT_BODY void InFlight::receive(const at::Tensor& part, std::int64_t peer) {
  std::vector<at::Tensor> tensors{part};
  works.push_back(channel->world->gloo->recv(tensors, world_rank(peer), tag));
}

SEALIFT_BODY void InFlight::wait() {
  const auto waited = std::exchange(works, {});
  if (!waited.empty()) {
    if (engine == Engine::Device) {
      // Not `wait`, which would block this thread. The stream waits whether or not the rank has failed.
      issue([&] {
        for (const auto& work : waited) work->synchronize();
      });
      if (const auto error = channel->watch->issued().device_error()) {
        channel->watch->broken(error->first, error->second);
      }
      channel->watch->issued().check(label);
    } else {
      wait_watched(waited);
    }
  }
  if (auto call = std::exchange(finish, nullptr)) call();
  if (buffer.defined()) channel->give_buffer(std::move(buffer));
}

SEALIFT_BODY void InFlight::wait_watched(const IssuedCollectives::Works& waited) {
  auto& watch = *channel->watch;
  const auto since = RankWatch::Clock::now();
  // The watch decides when to give up; later than this only a watch whose store hangs has not decided.
  const auto limit = watch.timeout() + std::chrono::milliseconds(200);
  const auto left = [&] {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(since + limit - RankWatch::Clock::now());
    return std::max(rest, std::chrono::milliseconds(1));
  };
  bool done = true;
  try {
    const IssuedCollectives::Waiting waiting(watch.issued(), label, group, number,
                                             engine == Engine::PointToPoint ? &waited : nullptr);
    for (const auto& work : waited) {
      if (engine == Engine::PointToPoint) {
        done = done && work->wait(left());
        continue;
      }
      while (done && !work->isCompleted()) {
        try {
          work->wait(std::min<std::chrono::milliseconds>(left(), std::chrono::milliseconds(100)));
        } catch (const std::exception&) {
          // Either a slice timed out, and this kind of work can be waited for again; or it broke, and throws again
          // below.
          done = !watch.issued().has_failed() && left().count() > 1;
        }
      }
      if (done) work->wait();
    }
  } catch (const std::exception& error) {
    done = false;
    if (left() > std::chrono::milliseconds(1)) broken(error);
  }
  if (!done) watch.give_up(label);
  if (engine == Engine::Worker) --channel->lines->in_worker;
}

SEALIFT_BODY void InFlight::broken(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  text = text.substr(0, text.find('\n'));
  if (text.starts_with("[")) text.erase(0, text.find("] ") + 2);  // the place in Gloo's source
  channel->watch->broken(label, text);
}

}  // namespace detail

}  // namespace sealift::train
