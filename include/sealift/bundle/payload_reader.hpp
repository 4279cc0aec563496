// SPDX-License-Identifier: Apache-2.0
// Volumes seen as one stream of chunks. A chunk is read into memory once, checked there, and only then handed out:
// a medium that answers differently the second time gains nothing.
#pragma once

#include <memory>
#include <vector>

#include "sealift/bundle/byte_source.hpp"
#include "sealift/bundle/digest.hpp"
#include "sealift/bundle/manifest.hpp"

namespace sealift::bundle {

// Safe from several threads.
class PayloadReader {
 public:
  // Opens every volume and compares its size with the signed one; throws Missing or Digest naming the volume.
  PayloadReader(const std::filesystem::path& folder, Payload payload, std::vector<Digest> chunks)
      : payload_(std::move(payload)), chunks_(std::move(chunks)) {
    for (const Volume& volume : payload_.volumes) volumes_.push_back(open_volume(folder, volume));
  }

  const Payload& payload() const { return payload_; }

  // The bytes of chunk `index`, equal to what was signed; throws Digest naming volume and offset.
  Bytes chunk(std::uint64_t index) const {
    const std::uint64_t begin = index * payload_.chunk_size;
    Bytes bytes(static_cast<std::size_t>(std::min(payload_.chunk_size, payload_.size - begin)));
    const Place place = locate(begin);
    volumes_[place.volume].read_exactly(place.offset, bytes);
    if (const Digest digest = sha256(bytes); digest != chunks_.at(index))
      throw Error(ErrorCode::Digest,
                  {.what = "chunk " + std::to_string(index) + " differs from what was signed",
                   .where = describe(begin),
                   .expected = "sha256 " + chunks_[index].hex(),
                   .got = "sha256 " + digest.hex(),
                   .next = "copy " + payload_.volumes[place.volume].name + " again from its source"});
    return bytes;
  }

  // "NAME.vol002 at offset 4194304", for messages.
  std::string describe(std::uint64_t payload_offset) const {
    const Place place = locate(payload_offset);
    return volumes_[place.volume].path().string() + " at offset " + std::to_string(place.offset);
  }

 private:
  struct Place {
    std::size_t volume;
    std::uint64_t offset;
  };

  Place locate(std::uint64_t payload_offset) const {
    std::size_t volume = 0;
    while (payload_offset >= payload_.volumes[volume].size) payload_offset -= payload_.volumes[volume++].size;
    return {volume, payload_offset};
  }

  static InputFile open_volume(const std::filesystem::path& folder, const Volume& volume) {
    const std::filesystem::path path = folder / volume.name;
    std::error_code ignored;
    if (!std::filesystem::exists(std::filesystem::symlink_status(path, ignored)))
      throw Error(ErrorCode::Missing, {.what = "a volume is missing",
                                       .where = path.string(),
                                       .expected = std::to_string(volume.size) + " bytes",
                                       .next = "copy " + volume.name + " into the bundle's folder"});
    InputFile file(path);
    if (file.size() != volume.size)
      throw Error(ErrorCode::Digest,
                  {.what = file.size() < volume.size ? "a volume is cut short" : "a volume is too long",
                   .where = path.string(),
                   .expected = std::to_string(volume.size) + " bytes",
                   .got = std::to_string(file.size()) + " bytes",
                   .next = "copy " + volume.name + " again from its source"});
    return file;
  }

  Payload payload_;
  std::vector<Digest> chunks_;
  std::vector<InputFile> volumes_;
};

// A range of the payload as a source; keeps a few checked chunks, so a wheel's directory and its members do not
// fight over one.
class PayloadRange final : public ByteSource {
 public:
  PayloadRange(std::shared_ptr<const PayloadReader> reader, std::uint64_t offset, std::uint64_t size, std::string name)
      : reader_(std::move(reader)), offset_(offset), size_(size), name_(std::move(name)) {}

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
    std::uint64_t index;
    Bytes bytes;
  };

  ByteView cached(std::uint64_t index) {
    for (Slot& slot : slots_)
      if (slot.index == index) return slot.bytes;
    if (slots_.size() < kSlots)
      slots_.push_back({});
    else
      std::rotate(slots_.begin(), slots_.begin() + 1, slots_.end());
    slots_.back().index = ~std::uint64_t{0};  // nothing to find here should the chunk be refused
    slots_.back().bytes = reader_->chunk(index);
    slots_.back().index = index;
    return slots_.back().bytes;
  }

  static constexpr std::size_t kSlots = 3;

  std::shared_ptr<const PayloadReader> reader_;
  std::uint64_t offset_;
  std::uint64_t size_;
  std::string name_;
  std::vector<Slot> slots_;
};

}  // namespace sealift::bundle
