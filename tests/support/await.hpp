// SPDX-License-Identifier: Apache-2.0
// Waits for what another process or thread is about to do, with a bound: a test that waits for ever says nothing.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

namespace sealift::test {

// Returns once `holds()`, which it asks every two milliseconds. Throws after `time`, and names `what` was awaited.
template <class Condition>
void await(const std::string& what, const Condition& holds, std::chrono::milliseconds time = std::chrono::seconds(60)) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= until)
      throw std::runtime_error("after " + std::to_string(time.count()) + " ms this has not come: " + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace sealift::test
