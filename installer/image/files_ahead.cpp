// SPDX-License-Identifier: Apache-2.0
// A ring of pieces: the thread fills one, the caller empties one. A failure travels in the ring behind what was read
// before it, so that both sides see the files in one order.
#include "installer/image/files_ahead.hpp"

#include <algorithm>

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

// Ends the thread's work: the caller has gone.
struct Stopped {};

}  // namespace

FilesAhead::FilesAhead(std::vector<const Place*> files) : files_(std::move(files)) {
  thread_ = std::jthread([this] { read_all(); });
}

FilesAhead::~FilesAhead() {
  const std::lock_guard lock(guard_);
  stopped_ = true;
  changed_.notify_all();
}

void FilesAhead::read(const bundle::ByteSink& sink) {
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(guard_);
      changed_.wait(lock, [&] { return emptied_ < filled_; });
    }
    Piece& piece = pieces_[emptied_ % kPieces];
    if (piece.failure) std::rethrow_exception(piece.failure);
    last = piece.last;
    if (piece.size != 0) sink(bundle::ByteView(piece.buffer).first(piece.size));
    const std::lock_guard lock(guard_);
    ++emptied_;
    changed_.notify_all();
  }
}

void FilesAhead::read_all() {
  try {
    for (const Place* place : files_) read_place(*place);
  } catch (const Stopped&) {
  } catch (...) {
    try {
      Piece& piece = free_piece();
      piece.failure = std::current_exception();
      give();
    } catch (const Stopped&) {
    }
  }
}

void FilesAhead::read_place(const Place& place) {
  if (place.type != Place::Type::Text) return read_source(place);
  bundle::ByteView rest = bundle::as_bytes(place.text);
  do {
    Piece& piece = free_piece();
    piece.size = std::min(kPiece, rest.size());
    std::copy_n(rest.begin(), piece.size, piece.buffer.begin());
    rest = rest.subspan(piece.size);
    piece.last = rest.empty();
    give();
  } while (!rest.empty());
}

void FilesAhead::read_source(const Place& place) {
  const bundle::InputFile file(place.source());
  if (file.size() != place.file.size) refuse_changed(place, std::to_string(file.size()) + " bytes");
  bundle::Hasher hasher;
  for (std::uint64_t at = 0;;) {
    Piece& piece = free_piece();
    piece.size = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, file.size() - at));
    const std::span<std::byte> bytes = std::span(piece.buffer).first(piece.size);
    file.read_exactly(at, bytes);
    hasher.update(bytes);
    at += piece.size;
    piece.last = at == file.size();
    if (piece.last)
      if (const bundle::Digest digest = hasher.finish(); digest != place.file.sha256)
        refuse_changed(place, "sha256 " + digest.hex());
    give();
    if (at == file.size()) return;  // the piece is the caller's by now
  }
}

FilesAhead::Piece& FilesAhead::free_piece() {
  std::unique_lock lock(guard_);
  changed_.wait(lock, [&] { return stopped_ || filled_ - emptied_ < kPieces; });
  if (stopped_) throw Stopped();
  Piece& piece = pieces_[filled_ % kPieces];
  if (piece.buffer.empty()) piece.buffer.resize(kPiece);
  return piece;
}

void FilesAhead::give() {
  const std::lock_guard lock(guard_);
  ++filled_;
  changed_.notify_all();
}

}  // namespace sealift::installer
