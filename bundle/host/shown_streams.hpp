// SPDX-License-Identifier: Apache-2.0
// Standard output and error as terminal_text, for as long as one of these lives: what a program prints by any other way
// than print() is written by the same rule. Program::parse has one, so no line of any verb goes past it.
#pragma once

#include <memory>

namespace sealift::bundle {

class ShownStreams {
 public:
  ShownStreams();
  ~ShownStreams();
  ShownStreams(const ShownStreams&) = delete;
  ShownStreams& operator=(const ShownStreams&) = delete;

 private:
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace sealift::bundle
