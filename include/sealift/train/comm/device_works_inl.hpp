// SPDX-License-Identifier: Apache-2.0
// The bodies of device_works.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/device_works.hpp>

namespace sealift::train {

SEALIFT_BODY void DeviceWorks::add(std::size_t group, Running running) {
  const std::lock_guard lock(mutex_);
  forget_done();
  groups_[group].push_back(std::move(running));
}

SEALIFT_BODY bool DeviceWorks::contains(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  forget_done();
  for (const auto& [group, queue] : groups_) {
    for (const auto& running : queue) {
      if (running.id == id) return true;
    }
  }
  return false;
}

SEALIFT_BODY std::optional<std::pair<Label, std::string>> DeviceWorks::error() {
  const std::lock_guard lock(mutex_);
  forget_done();
  return error_;
}

SEALIFT_BODY void DeviceWorks::forget_done() {
  for (auto& [group, queue] : groups_) {
    while (!queue.empty() && is_done(queue.front())) queue.pop_front();
  }
}

SEALIFT_BODY bool DeviceWorks::is_done(const Running& running) {
  return asks(running, [&] {
    if (!running.work->isCompleted()) return false;
    if (const auto error = running.work->exception()) std::rethrow_exception(error);
    return true;
  });
}

SEALIFT_BODY bool DeviceWorks::has_inputs(const Running& running) {
  return asks(running, [&] { return !running.inputs || running.inputs->query(); });
}

template <class Question>
bool DeviceWorks::asks(const Running& running, const Question& question) {
  try {
    return question();
  } catch (const c10::Error& error) {
    note(running.label, error.what_without_backtrace());
  } catch (const std::exception& error) {
    note(running.label, error.what());
  }
  return true;
}

SEALIFT_BODY void DeviceWorks::note(const Label& label, const std::string& text) {
  if (!error_) error_ = {label, text.substr(0, text.find('\n'))};
}

}  // namespace sealift::train
