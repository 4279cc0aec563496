// SPDX-License-Identifier: Apache-2.0
// The plan of an epoch and a rank's part of each step.
// See sampler.hpp. A step is `global_rows` rows of the plan, cut into micro-batches that are dealt to ranks in turn.
// So what a step holds does not depend on the number of ranks, and neither does what a checkpoint must remember.
#include "trainer/data/sampler.hpp"

#include "trainer/data/shuffle.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace sealift::trainer {
namespace {

/// What the draws of one seed are for.
enum Use : std::uint64_t { kExamples = 1, kRows = 2 };

constexpr std::uint64_t kLongestRow = std::uint64_t{1} << 26;

void refuse_if(bool bad, const std::string& why) {
  if (bad) throw std::invalid_argument("the sampler: " + why);
}

/// `rows` in the order of `order`.
Rows reordered(const Rows& rows, const std::vector<std::uint32_t>& order) {
  Rows result;
  result.examples.reserve(rows.examples.size());
  result.ends.reserve(rows.size());
  for (const auto row : order) {
    result.examples.insert(result.examples.end(), rows[row].begin(), rows[row].end());
    result.ends.push_back(result.examples.size());
  }
  return result;
}

std::vector<std::uint32_t> numbers(std::uint64_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

std::string fingerprint(const std::string& data, const SamplerOptions& options) {
  return data + (options.shuffle ? ", shuffled" : ", in order") +
         (options.packing ? ", packed into rows of " + std::to_string(options.row_length) : ", not packed");
}

std::int64_t parts(std::int64_t whole, std::int64_t part) {
  return (whole + part - 1) / part;
}

}  // namespace

std::string SamplerState::text() const {
  return nlohmann::json{{"seed", seed}, {"epoch", epoch}, {"row", row}, {"data", data}}.dump();
}

SamplerState SamplerState::parse(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    SamplerState state{.seed = json.at("seed").get<std::uint64_t>(),
                       .epoch = json.at("epoch").get<std::int64_t>(),
                       .row = json.at("row").get<std::int64_t>(),
                       .data = json.at("data").get<std::string>()};
    if (state.epoch >= 0 && state.row >= 0 && state.text() == text) return state;
  } catch (const nlohmann::json::exception&) {
  }
  throw std::invalid_argument("'" + text.substr(0, 200) + "' is not what a sampler saved; the checkpoint is damaged");
}

Sampler::Sampler(std::uint64_t examples, std::function<std::uint64_t(std::uint64_t)> length, std::string data,
                 SamplerOptions options, std::int64_t rank, std::int64_t world)
    : examples_(examples), length_(std::move(length)), options_(options), rank_(rank), world_(world) {
  refuse_if(world < 1 || rank < 0 || rank >= world,
            "rank " + std::to_string(rank) + " is not one of " + std::to_string(world));
  refuse_if(examples < 1, "there are no examples");
  refuse_if(options.micro_rows < 1 || options.global_rows < 1, "a step and a micro-batch have a row at least; got " +
                                                                   std::to_string(options.global_rows) + " and " +
                                                                   std::to_string(options.micro_rows));
  refuse_if(options.global_rows % (world * options.micro_rows) != 0,
            "a step's " + std::to_string(options.global_rows) + " rows are no multiple of " + std::to_string(world) +
                " ranks times " + std::to_string(options.micro_rows) + " rows of a micro-batch");
  refuse_if(
      options.packing && (options.row_length < 1 || options.row_length > kLongestRow),
      "a packed row has 1 to " + std::to_string(kLongestRow) + " tokens; got " + std::to_string(options.row_length));
  state_ = {.seed = options.seed, .data = fingerprint(data, options)};
  refuse_if(usable(0) < 1, "an epoch has " + std::to_string(rows(0)) + " rows, less than a step of " +
                               std::to_string(options.global_rows) + ", and drop_last leaves them out; use fewer rows");
}

const Rows& Sampler::plan(std::int64_t epoch) {
  if (planned_ == epoch) return rows_;
  const auto use = [&](Use what) { return seed_of(options_.seed, static_cast<std::uint64_t>(epoch), what); };
  auto order = numbers(examples_);
  if (options_.shuffle) shuffle(order, use(kExamples));
  planned_.reset();
  rows_ = options_.packing ? packed(order) : one_each(order);
  if (options_.packing && options_.shuffle) {
    // Rows that were begun last are the emptiest, and would come last.
    auto rows = numbers(rows_.size());
    shuffle(rows, use(kRows));
    rows_ = reordered(rows_, rows);
  }
  planned_ = epoch;
  return rows_;
}

Rows Sampler::packed(const std::vector<std::uint32_t>& order) const {
  std::vector<std::uint64_t> lengths;
  lengths.reserve(order.size());
  for (const auto example : order) lengths.push_back(length_(example));
  return pack(order, lengths, options_.row_length);
}

std::int64_t Sampler::rows(std::int64_t epoch) {
  return static_cast<std::int64_t>(options_.packing ? plan(epoch).size() : examples_);
}

std::int64_t Sampler::usable(std::int64_t epoch) {
  const auto all = rows(epoch);
  return options_.drop_last ? all - all % options_.global_rows : all;
}

std::int64_t Sampler::steps(std::int64_t epoch) {
  return parts(usable(epoch), options_.global_rows);
}

StepRows Sampler::next() {
  if (state_.row >= usable(state_.epoch)) {
    ++state_.epoch;
    state_.row = 0;
  }
  const auto& rows = plan(state_.epoch);
  const auto first = state_.row, end = std::min(first + options_.global_rows, usable(state_.epoch));
  refuse_if(first >= end, "epoch " + std::to_string(state_.epoch) + " has fewer rows than a step of " +
                              std::to_string(options_.global_rows) + ", and drop_last leaves them out; use fewer rows");
  const auto all = parts(end - first, options_.micro_rows);
  StepRows step{.epoch = state_.epoch,
                .first_row = first,
                .rows = end - first,
                .micro_batches = {},
                .most_micro_batches = parts(all, world_)};
  for (auto micro = rank_; micro < all; micro += world_) {
    const auto begin = first + micro * options_.micro_rows;
    step.micro_batches.push_back(examples_of(rows, begin, std::min(begin + options_.micro_rows, end)));
  }
  state_.row = end;
  return step;
}

std::vector<std::vector<std::uint32_t>> Sampler::examples_of(const Rows& rows, std::int64_t begin,
                                                             std::int64_t end) const {
  std::vector<std::vector<std::uint32_t>> result;
  for (auto row = begin; row < end; ++row) {
    const auto examples = rows[static_cast<std::size_t>(row)];
    result.emplace_back(examples.begin(), examples.end());
  }
  return result;
}

void Sampler::resume(const SamplerState& state) {
  refuse_if(state.data != state_.data, "the checkpoint's data is " + state.data + "; this job's is " + state_.data +
                                           ", so it cannot go on from it");
  refuse_if(state.seed != state_.seed, "the checkpoint's seed is " + std::to_string(state.seed) + "; this job's is " +
                                           std::to_string(state_.seed) + ", so it cannot go on from it");
  refuse_if(state.epoch < 0 || state.row < 0 || state.row > rows(state.epoch),
            "the checkpoint is at row " + std::to_string(state.row) + " of epoch " + std::to_string(state.epoch) +
                ", which does not exist");
  state_ = state;
}

double Sampler::epochs_done() {
  return static_cast<double>(state_.epoch) +
         static_cast<double>(state_.row) / static_cast<double>(std::max<std::int64_t>(1, usable(state_.epoch)));
}

}  // namespace sealift::trainer
