// SPDX-License-Identifier: Apache-2.0
// Which examples each rank gets, when: shuffled by a seed, packed into rows, dealt over ranks, resumable to the row.
// Between a token file's lengths and the batches; the loop asks it once for each step.
// Every rank computes the whole plan of an epoch from the same few numbers, so nothing is sent. A step's rows depend on
// the rows of a step alone, not on how many ranks share them.
#pragma once

#include "trainer/data/packing.hpp"

#include <functional>
#include <optional>
#include <string>

namespace sealift::trainer {

struct SamplerOptions {
  std::uint64_t seed = 1;
  bool shuffle = true;
  bool packing = false;
  std::uint64_t row_length = 0;  ///< tokens of a row when packing
  std::int64_t global_rows = 1;  ///< of a step, over all ranks and micro-batches
  std::int64_t micro_rows = 1;   ///< of a micro-batch on one rank
  bool drop_last = false;  ///< leave out the epoch's last rows if they are fewer than global_rows; else use join.hpp
};

/// How far a run is: what a checkpoint holds. The same whatever the number of ranks.
struct SamplerState {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;  ///< from 0
  std::int64_t row = 0;    ///< rows of this epoch that have been used, over all ranks
  std::string data = {};   ///< the plan's fingerprint: data and options that a resumed run must share

  std::string text() const;                            ///< one line, for a checkpoint's notes
  static SamplerState parse(const std::string& text);  ///< std::invalid_argument where `text` was not written by text()
};

/// A rank's part of one step.
struct StepRows {
  std::int64_t epoch = 0;
  std::int64_t first_row = 0;  ///< of the epoch's
  std::int64_t rows = 0;       ///< over all ranks; below global_rows only at an epoch's end
  /// This rank's micro-batches, each of rows of examples. Ranks may have different numbers of them at an epoch's end.
  std::vector<std::vector<std::vector<std::uint32_t>>> micro_batches;
  std::int64_t most_micro_batches = 0;  ///< of any rank
};

class Sampler {
 public:
  /// `length(example)` for each of `examples` examples; `data`: what identifies them, as a digest. `global_rows` must
  /// be a multiple of world * micro_rows. An example that is longer than a row is refused by its number.
  Sampler(std::uint64_t examples, std::function<std::uint64_t(std::uint64_t)> length, std::string data,
          SamplerOptions options, std::int64_t rank, std::int64_t world);

  /// The next step's rows; an epoch follows the other without end.
  StepRows next();

  /// Rows and steps of an epoch. Packing makes it differ from epoch to epoch by a little.
  std::int64_t rows(std::int64_t epoch);
  std::int64_t steps(std::int64_t epoch);

  /// Tokens of a packed row.
  std::uint64_t row_length() const { return options_.row_length; }

  /// Used rows of the current epoch are behind this.
  const SamplerState& state() const { return state_; }
  /// Goes on from `state`: with the same global_rows, on any number of ranks, with the steps that would have come. With
  /// another seed, data or packing: std::invalid_argument, since examples would be seen twice or never.
  void resume(const SamplerState& state);

  double epochs_done();  ///< with the part of the current one

 private:
  const Rows& plan(std::int64_t epoch);
  std::int64_t usable(std::int64_t epoch);
  Rows packed(const std::vector<std::uint32_t>& order) const;
  std::vector<std::vector<std::uint32_t>> examples_of(const Rows& rows, std::int64_t begin, std::int64_t end) const;

  std::uint64_t examples_;
  std::function<std::uint64_t(std::uint64_t)> length_;
  SamplerOptions options_;
  std::int64_t rank_, world_;
  SamplerState state_;
  std::optional<std::int64_t> planned_;
  Rows rows_;
};

}  // namespace sealift::trainer
