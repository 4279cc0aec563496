// SPDX-License-Identifier: Apache-2.0
#include "installer/export/deflate.hpp"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <vector>

namespace sealift::installer {

struct Deflate::State {
  z_stream stream{};
  bundle::ByteSink sink;
  std::vector<std::byte> output = std::vector<std::byte>(std::size_t{1} << 18);

  void run(int flush) {
    do {
      stream.next_out = reinterpret_cast<Bytef*>(output.data());
      stream.avail_out = static_cast<uInt>(output.size());
      ::deflate(&stream, flush);  // fails only for a broken state
      if (const std::size_t made = output.size() - stream.avail_out; made != 0)
        sink(bundle::ByteView(output).first(made));
    } while (stream.avail_out == 0);
  }
};

Deflate::Deflate(bundle::ByteSink sink) : state_(std::make_unique<State>()) {
  state_->sink = std::move(sink);
  constexpr int kLevel = 6, kRawWindow = -15, kMemory = 8;
  if (::deflateInit2(&state_->stream, kLevel, Z_DEFLATED, kRawWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
}

Deflate::~Deflate() {
  ::deflateEnd(&state_->stream);
}

void Deflate::feed(bundle::ByteView bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // zlib counts in 32 bits
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), kMost))) {
    const bundle::ByteView piece = bytes.first(std::min(bytes.size(), kMost));
    state_->stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(piece.data()));
    state_->stream.avail_in = static_cast<uInt>(piece.size());
    state_->run(Z_NO_FLUSH);
  }
}

void Deflate::finish() {
  state_->stream.avail_in = 0;
  state_->run(Z_FINISH);
}

}  // namespace sealift::installer
