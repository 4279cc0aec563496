// SPDX-License-Identifier: Apache-2.0
// What a run leaves at its end, written again and again where the disk is full, the quota reached or the folder away.
// For results, after the last step: there is no later step to try again after, and what was computed would be lost.
// All ranks fail alike (train::SaveFailed), so all wait alike.
#pragma once

#include "trainer/failure.hpp"

#include <sealift/train.hpp>

#include <functional>
#include <thread>

namespace sealift::trainer {

/// Calls `save` until it succeeds, at most `tries` times with pauses that double from `pause` on. `says`: this rank
/// reports. Collective.
inline void save_with_patience(bool says, const std::function<void()>& save, int tries = 8,
                               std::chrono::milliseconds pause = std::chrono::seconds(1)) {
  for (int left = tries - 1;; --left) {
    try {
      return save();
    } catch (const train::SaveFailed& error) {
      if (left == 0) throw;
      if (says) {
        say(c10::str("what this run made is not saved: ", text_of(error), "; trying again in ",
                     std::chrono::duration<double>(pause).count(), " s, ", left, " more times; make room meanwhile"));
      }
    }
    std::this_thread::sleep_for(pause);
    pause *= 2;
  }
}

/// Writes `text` as `path`, which is there whole or as it was.
inline void write_whole(const std::filesystem::path& path, const std::string& text) {
  train::OutputFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace sealift::trainer
