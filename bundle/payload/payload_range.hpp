// SPDX-License-Identifier: Apache-2.0
// A range of the payload as a ByteSource: how a verified bundle hands out an entry. It keeps a few checked chunks (one,
// where chunks are large), so that reading a wheel's directory and its members by turns does not read chunks twice.
// What it holds of chunks that others expect too goes to them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/payload/payload_reader.hpp"

namespace sealift::bundle {

// What was announced of it with PayloadReader::expect.
struct PayloadPart {
  std::uint64_t begin = 0;  // bytes from the beginning of the range
  std::uint64_t size = 0;
  // Read forwards: what lies behind the reader is left to the others at once. If not, the last chunk was announced once
  // more, as a zip is read from its end and then from its beginning.
  bool forwards = false;
};

class PayloadRange final : public ByteSource {
 public:
  // `size` bytes from `offset` of the payload; `name` is for messages. Keeps chunks up to `memory` bytes, one at least.
  PayloadRange(std::shared_ptr<const PayloadReader> reader, std::uint64_t offset, std::uint64_t size, std::string name,
               std::uint64_t memory = kRangeMemory);
  // The same, of which this reader wants `part` only; reads outside of it are allowed.
  PayloadRange(std::shared_ptr<const PayloadReader> reader, std::uint64_t offset, std::uint64_t size, std::string name,
               std::uint64_t memory, const PayloadPart& part);
  PayloadRange(const PayloadRange&) = delete;
  PayloadRange& operator=(const PayloadRange&) = delete;
  ~PayloadRange() override;

  std::uint64_t size() const override { return size_; }
  std::string name() const override { return name_; }
  ByteView view(std::uint64_t offset, std::size_t wanted) override;

 private:
  struct Slot {
    std::uint64_t index = 0;
    ChunkBuffer own{};
    std::shared_ptr<const ChunkBuffer> shared{};

    ByteView bytes() const { return shared ? shared->view() : own.view(); }
  };

  bool has(std::uint64_t index) const;
  ByteView cached(std::uint64_t index);
  void leave_before(std::uint64_t payload_offset);

  std::shared_ptr<const PayloadReader> reader_;
  std::uint64_t offset_;
  std::uint64_t size_;
  std::string name_;
  std::uint64_t memory_;
  std::uint64_t begin_, end_;  // of what was announced and not yet left, in the payload
  bool forwards_;
  std::vector<Slot> slots_;
};

}  // namespace sealift::bundle
