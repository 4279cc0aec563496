// SPDX-License-Identifier: Apache-2.0
// Volumes seen as one stream of chunks. A chunk is read into memory once, checked there, and only then handed out:
// a medium that answers differently the second time gains nothing. No mmap: a failing disc would kill the process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/manifest/manifest.hpp"
#include "sealift/bundle/payload/read_ahead.hpp"
#include "sealift/bundle/payload/volumes.hpp"

namespace sealift::bundle {

// Safe from several threads.
class PayloadReader {
 public:
  // Opens every volume and compares its size with the signed one; throws Missing or Digest naming the volume, unless
  // there is somebody to ask for it.
  PayloadReader(VolumeSources sources, Payload payload, std::vector<Digest> chunks)
      : payload_(std::move(payload)), chunks_(std::move(chunks)), volumes_(std::move(sources), payload_.volumes) {}
  PayloadReader(const std::filesystem::path& folder, Payload payload, std::vector<Digest> chunks)
      : PayloadReader(VolumeSources{.folders = {folder}}, std::move(payload), std::move(chunks)) {}

  const Payload& payload() const { return payload_; }
  // Whether every volume was there at the beginning; where not, who reads in order asks for each disc once.
  bool all_there() const { return volumes_.all_there(); }

  // The bytes of chunk `index`, equal to what was signed; throws Digest or Io naming volume and offset, once nobody
  // has a better volume. `memory` is where they are put: who reads many chunks hands the last one back, and whoever
  // catches has no unchecked bytes.
  ChunkBuffer chunk(std::uint64_t index, ChunkBuffer memory = {}) const {
    const Place place = locate(index * payload_.chunk_size);
    for (;;) {
      Volumes::File file = volumes_.get(place.volume);
      try {
        return read(*file, place, index, std::move(memory));
      } catch (const Error& fault) {
        volumes_.replace(place.volume, std::move(file), fault);
      }
    }
  }

  // Says that a range will be read once, and that it has been. The chunks at its ends, which its neighbours have bytes
  // in as well, are kept from the first of their readers to the last, so that the medium is asked for them once.
  void expect(std::uint64_t offset, std::uint64_t size) const {
    const std::lock_guard lock(guard_);
    for (const std::uint64_t index : ends_of(offset, size)) {
      std::shared_ptr<Kept>& kept = kept_[index];
      if (!kept) kept = std::make_shared<Kept>();
      ++kept->readers;
    }
  }
  void leave(std::uint64_t offset, std::uint64_t size) const {
    const std::lock_guard lock(guard_);
    for (const std::uint64_t index : ends_of(offset, size)) {
      const auto kept = kept_.find(index);
      if (kept == kept_.end() || --kept->second->readers != 0) continue;
      if (kept->second->bytes) kept_bytes_ -= kept->second->bytes->size();
      kept_.erase(kept);
    }
  }
  // The chunk if it stands at the end of an expected range; who comes second gets the bytes of the first. `memory` is
  // taken for it if it has to be read.
  std::shared_ptr<const ChunkBuffer> kept(std::uint64_t index, ChunkBuffer& memory) const {
    std::unique_lock lock(guard_);
    const auto found = kept_.find(index);
    if (found == kept_.end()) return nullptr;
    const std::shared_ptr<Kept> kept = found->second;
    lock.unlock();
    const std::lock_guard reading(kept->reading);  // one reads, the others wait for it
    lock.lock();
    if (kept->bytes) return kept->bytes;
    kept->begun = true;
    lock.unlock();
    auto bytes = std::make_shared<const ChunkBuffer>(chunk(index, std::move(memory)));
    lock.lock();
    if (kept->readers > 1 && kept_bytes_ + bytes->size() <= kMaxKept) {
      kept->bytes = bytes;
      kept_bytes_ += bytes->size();
    }
    return bytes;
  }

  // Says that chunk `index`, if there is one, is wanted soon.
  void will_need(std::uint64_t index) const {
    if (index >= payload_.chunk_count() || is_kept(index)) return;
    const Place place = locate(index * payload_.chunk_size);
    Volumes::File file = volumes_.if_open(place.volume);
    if (!file) return;
    if (file->passes_the_cache(place.offset, size_of(index)))
      ahead_.want(index, std::move(file), place.offset, size_of(index));
    else
      file->will_need(place.offset, size_of(index));
  }

  // "NAME.vol002 at offset 4194304", for messages.
  std::string describe(std::uint64_t payload_offset) const {
    const Place place = locate(payload_offset);
    const Volumes::File file = volumes_.if_open(place.volume);
    return (file ? file->path().string() : payload_.volumes[place.volume].name) + " at offset " +
           std::to_string(place.offset);
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{256} << 10;  // read and hashed while the processor's cache has it
  static constexpr std::uint64_t kMaxAhead = std::uint64_t{24} << 20;
  static constexpr std::uint64_t kMaxKept = std::uint64_t{32} << 20;  // beyond it, a chunk is read again

  struct Kept {
    std::mutex reading;
    bool begun = false;  // then nobody need read ahead
    std::shared_ptr<const ChunkBuffer> bytes;
    std::uint64_t readers = 0;  // that have not left
  };

  // The last chunk counts twice where it is not the first: a zip is read from its end, then from its start.
  std::vector<std::uint64_t> ends_of(std::uint64_t offset, std::uint64_t size) const {
    if (size == 0) return {};
    const std::uint64_t first = offset / payload_.chunk_size, last = (offset + size - 1) / payload_.chunk_size;
    if (first == last) return {first};
    return {first, last, last};
  }

  struct Place {
    std::size_t volume;
    std::uint64_t offset;
  };

  Place locate(std::uint64_t payload_offset) const {
    std::size_t volume = 0;
    while (payload_offset >= payload_.volumes[volume].size) payload_offset -= payload_.volumes[volume++].size;
    return {volume, payload_offset};
  }

  std::size_t size_of(std::uint64_t index) const {
    return static_cast<std::size_t>(std::min(payload_.chunk_size, payload_.size - index * payload_.chunk_size));
  }

  bool is_kept(std::uint64_t index) const {
    const std::lock_guard lock(guard_);
    const auto found = kept_.find(index);
    return found != kept_.end() && found->second->begun;
  }

  // The chunk, or its beginning, where it was read ahead or can be read past the system's cache.
  ReadAhead::Chunk first_read(const VolumeInput& file, const Place& place, std::uint64_t index,
                              ChunkBuffer memory) const {
    if (std::optional<ReadAhead::Chunk> ready = ahead_.take(index, memory)) return std::move(*ready);
    memory.resize(size_of(index));
    const bool past = file.passes_the_cache(place.offset, memory.size());
    const std::size_t filled = past ? file.read_past_the_cache(place.offset, memory) : 0;
    return {.bytes = std::move(memory), .filled = filled};
  }

  ChunkBuffer read(const VolumeInput& file, const Place& place, std::uint64_t index, ChunkBuffer memory) const {
    auto [bytes, filled] = first_read(file, place, index, std::move(memory));
    const std::span<std::byte> all = bytes.all();
    Hasher hasher(payload_.digest);
    for (std::size_t done = 0; done < all.size(); done += kPiece) {
      const std::size_t end = std::min(done + kPiece, all.size()), from = std::clamp(filled, done, end);
      if (from < end) file.read_exactly(place.offset + from, all.subspan(from, end - from));
      hasher.update(all.subspan(done, end - done));
    }
    if (const Digest digest = hasher.finish(); digest != chunks_.at(index))
      throw Error(ErrorCode::Digest,
                  {.what = "chunk " + std::to_string(index) + " differs from what was signed",
                   .where = file.path().string() + " at offset " + std::to_string(place.offset),
                   .expected = name_of(payload_.digest) + " " + chunks_[index].hex(),
                   .got = name_of(payload_.digest) + " " + digest.hex(),
                   .next = "copy " + payload_.volumes[place.volume].name + " again from its source"});
    return std::move(bytes);
  }

  Payload payload_;
  std::vector<Digest> chunks_;
  mutable Volumes volumes_;
  mutable ReadAhead ahead_{static_cast<std::size_t>(std::max<std::uint64_t>(1, kMaxAhead / payload_.chunk_size))};
  mutable std::mutex guard_;
  mutable std::map<std::uint64_t, std::shared_ptr<Kept>> kept_;
  mutable std::uint64_t kept_bytes_ = 0;
};

// A range of the payload as a source; keeps a few checked chunks (one, where they are large), so a wheel's directory
// and its members do not fight over one.
class PayloadRange final : public ByteSource {
 public:
  // `memory`: bytes of all chunks that it keeps; one chunk in any case.
  PayloadRange(std::shared_ptr<const PayloadReader> reader, std::uint64_t offset, std::uint64_t size, std::string name,
               std::uint64_t memory = 3 * kDefaultChunkSize)
      : reader_(std::move(reader)), offset_(offset), size_(size), name_(std::move(name)), memory_(memory) {}
  PayloadRange(const PayloadRange&) = delete;
  PayloadRange& operator=(const PayloadRange&) = delete;
  ~PayloadRange() override { reader_->leave(offset_, size_); }

  std::uint64_t size() const override { return size_; }
  std::string name() const override { return name_; }
  ByteView view(std::uint64_t offset, std::size_t wanted) override {
    const std::uint64_t position = offset_ + offset;
    const std::uint64_t chunk_size = reader_->payload().chunk_size;
    const ByteView chunk = cached(position / chunk_size);
    const ByteView rest = chunk.subspan(static_cast<std::size_t>(position % chunk_size));
    return rest.first(static_cast<std::size_t>(std::min<std::uint64_t>({wanted, rest.size(), size_ - offset})));
  }

 private:
  struct Slot {
    std::uint64_t index = 0;
    ChunkBuffer own{};
    std::shared_ptr<const ChunkBuffer> shared{};

    ByteView bytes() const { return shared ? shared->view() : own.view(); }
  };

  bool has(std::uint64_t index) const {
    return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.index == index; });
  }

  ByteView cached(std::uint64_t index) {
    for (Slot& slot : slots_)
      if (slot.index == index) return slot.bytes();
    if (slots_.empty() || (slots_.size() + 1) * reader_->payload().chunk_size <= memory_)
      slots_.push_back({});
    else
      std::rotate(slots_.begin(), slots_.begin() + 1, slots_.end());
    if ((index + 1) * reader_->payload().chunk_size < offset_ + size_ && !has(index + 1)) reader_->will_need(index + 1);
    Slot& slot = slots_.back();
    slot.index = ~std::uint64_t{0};  // nothing to find here should the chunk be refused
    slot.shared.reset();
    slot.shared = reader_->kept(index, slot.own);
    slot.own =
        slot.shared ? ChunkBuffer() : reader_->chunk(index, std::move(slot.own));  // a slot is one chunk of memory
    slot.index = index;
    return slot.bytes();
  }

  std::shared_ptr<const PayloadReader> reader_;
  std::uint64_t offset_;
  std::uint64_t size_;
  std::string name_;
  std::uint64_t memory_;
  std::vector<Slot> slots_;
};

}  // namespace sealift::bundle
