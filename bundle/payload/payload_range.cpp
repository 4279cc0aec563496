// SPDX-License-Identifier: Apache-2.0
#include "bundle/payload/payload_range.hpp"

#include <algorithm>
#include <utility>

namespace sealift::bundle {

PayloadRange::PayloadRange(std::shared_ptr<const PayloadReader> reader, std::uint64_t offset, std::uint64_t size,
                           std::string name, std::uint64_t memory)
    : PayloadRange(std::move(reader), offset, size, std::move(name), memory, {.begin = 0, .size = size}) {}

PayloadRange::PayloadRange(std::shared_ptr<const PayloadReader> reader, std::uint64_t offset, std::uint64_t size,
                           std::string name, std::uint64_t memory, const PayloadPart& part)
    : reader_(std::move(reader)),
      offset_(offset),
      size_(size),
      name_(std::move(name)),
      memory_(memory),
      begin_(offset + part.begin),
      end_(offset + part.begin + part.size),
      forwards_(part.forwards) {}

PayloadRange::~PayloadRange() {
  if (!forwards_ && begin_ < end_) reader_->leave(end_ - 1, 1);
  leave_before(end_);
  try {
    for (Slot& slot : slots_)
      if (!slot.own.empty() && slot.index != ~std::uint64_t{0}) reader_->keep(slot.index, std::move(slot.own));
  } catch (const std::bad_alloc&) {  // then they are read again
  }
}

// Ranges share chunks, so only whole chunks are left, but for the last one.
void PayloadRange::leave_before(std::uint64_t payload_offset) {
  const std::uint64_t end = std::min(payload_offset, end_);
  if (begin_ < end) reader_->leave(begin_, end - begin_);
  begin_ = std::max(begin_, end);
}

ByteView PayloadRange::view(std::uint64_t offset, std::size_t wanted) {
  const std::uint64_t position = offset_ + offset;
  const std::uint64_t index = reader_->layout().at(position);
  const ByteView chunk = cached(index);
  const ByteView rest = chunk.subspan(static_cast<std::size_t>(position - reader_->layout().begin_of(index)));
  return rest.first(static_cast<std::size_t>(std::min<std::uint64_t>({wanted, rest.size(), size_ - offset})));
}

bool PayloadRange::has(std::uint64_t index) const {
  return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.index == index; });
}

ByteView PayloadRange::cached(std::uint64_t index) {
  for (Slot& slot : slots_)
    if (slot.index == index) return slot.bytes();
  if (slots_.empty() || (slots_.size() + 1) * reader_->payload().chunk_size <= memory_)
    slots_.push_back({});
  else
    std::rotate(slots_.begin(), slots_.begin() + 1, slots_.end());
  if (forwards_) leave_before(reader_->layout().begin_of(index));
  if (reader_->layout().begin_of(index + 1) < end_ && !has(index + 1)) reader_->will_need(index + 1);
  Slot& slot = slots_.back();
  slot.index = ~std::uint64_t{0};  // nothing can be found here if the chunk is refused
  slot.shared.reset();
  slot.shared = reader_->kept(index, slot.own);
  slot.own = slot.shared ? ChunkBuffer() : reader_->chunk(index, std::move(slot.own));  // one chunk of memory a slot
  slot.index = index;
  return slot.bytes();
}

}  // namespace sealift::bundle
