// SPDX-License-Identifier: Apache-2.0
#include "bundle/payload/reed_solomon.hpp"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <span>

#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle {
namespace {

constexpr std::size_t kTable = 32;  // bytes of ISA-L's table for one factor

// One row for each piece and each recovery chunk of a group: a unit row, or 1 / (row xor column).
std::vector<unsigned char> group_matrix(std::uint64_t pieces, std::uint64_t parity) {
  std::vector<unsigned char> matrix(static_cast<std::size_t>((pieces + parity) * pieces));
  gf_gen_cauchy1_matrix(matrix.data(), static_cast<int>(pieces + parity), static_cast<int>(pieces));
  return matrix;
}

std::vector<unsigned char> rows_of(const std::vector<unsigned char>& matrix, std::uint64_t columns,
                                   const std::vector<std::uint64_t>& rows) {
  std::vector<unsigned char> out;
  for (const std::uint64_t row : rows) {
    const auto begin = matrix.begin() + static_cast<std::ptrdiff_t>(row * columns);
    out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(columns));
  }
  return out;
}

}  // namespace

PieceSums PieceSums::recovery_chunks(std::uint64_t pieces, std::uint64_t parity, std::size_t size) {
  std::vector<unsigned char> matrix = group_matrix(pieces, parity);
  matrix.erase(matrix.begin(), matrix.begin() + static_cast<std::ptrdiff_t>(pieces * pieces));
  return {pieces, parity, std::move(matrix), size};
}

PieceSums PieceSums::lost_pieces(std::uint64_t pieces, std::uint64_t parity, const std::vector<std::uint64_t>& there,
                                 const std::vector<std::uint64_t>& lost, std::size_t size) {
  std::vector<unsigned char> known = rows_of(group_matrix(pieces, parity), pieces, there);
  std::vector<unsigned char> inverse(known.size());
  if (there.size() != pieces || gf_invert_matrix(known.data(), inverse.data(), static_cast<int>(pieces)) != 0)
    throw Error(ErrorCode::Usage, {.what = "these pieces do not determine the others"});  // no such choice exists
  return {pieces, lost.size(), rows_of(inverse, pieces, lost), size};
}

PieceSums::PieceSums(std::uint64_t inputs, std::uint64_t results, std::vector<unsigned char> factors, std::size_t size)
    : inputs_(inputs), tables_(kTable * static_cast<std::size_t>(inputs * results)) {
  ec_init_tables(static_cast<int>(inputs), static_cast<int>(results), factors.data(), tables_.data());
  for (std::uint64_t i = 0; i < results; ++i) {
    results_.emplace_back(size);
    std::ranges::fill(results_.back().resize(size), std::byte{0});
  }
}

void PieceSums::add(std::uint64_t number, std::size_t offset, ByteView bytes) {
  std::vector<unsigned char*> at;
  for (ChunkBuffer& result : results_)
    at.push_back(reinterpret_cast<unsigned char*>(result.all().subspan(offset, bytes.size()).data()));
  // ISA-L only reads what it takes as not const.
  auto* const input = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
  ec_encode_data_update(static_cast<int>(bytes.size()), static_cast<int>(inputs_), static_cast<int>(at.size()),
                        static_cast<int>(number), tables_.data(), input, at.data());
}

}  // namespace sealift::bundle
