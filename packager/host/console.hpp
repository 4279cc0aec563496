// SPDX-License-Identifier: Apache-2.0
// The names that the packager still has for bundle::Progress.
#pragma once

#include <string>

#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

using Console = bundle::Progress;
using bundle::human_size;

class Progress {
 public:
  Progress(Console& console, std::string label, std::uint64_t total) : console_(console) {
    console_.begin(std::move(label), total);
  }
  void add(std::uint64_t bytes) { console_.add(bytes); }
  void skip(std::uint64_t bytes) { console_.skip(bytes); }
  void take_back(std::uint64_t bytes) { console_.take_back(bytes); }
  void finish() { console_.end(); }

 private:
  Console& console_;
};

}  // namespace sealift::packager
