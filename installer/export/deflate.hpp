// SPDX-License-Identifier: Apache-2.0
// Bytes -> the deflate stream that Python's zipfile and most others write, by the one door to zlib. Only to make an
// archive again whose digest is known: what comes out is right or it is not, and nobody relies on it.
#pragma once

#include <memory>

#include "sealift/bundle/core/byte_source.hpp"

namespace sealift::installer {

// A raw stream of level 6, as one call of zlib's after the other makes it. Gives `sink` what is ready.
class Deflate {
 public:
  explicit Deflate(bundle::ByteSink sink);
  Deflate(const Deflate&) = delete;
  Deflate& operator=(const Deflate&) = delete;
  ~Deflate();

  void feed(bundle::ByteView bytes);
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sealift::installer
