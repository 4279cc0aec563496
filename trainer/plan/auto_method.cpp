// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/auto_method.hpp"

#include <algorithm>

namespace sealift::trainer::plan {
namespace {

/// Times that differ by less are no reason: the simulator is held to about that.
constexpr double kIndistinct = 1.1;

std::string mebibytes(std::int64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

std::string line_of(const Row& row, const Row& chosen, std::int64_t budget, const Batch& batch) {
  const auto name = name_of(row.way.method);
  auto text = "parallel_method auto: " + name + " takes " + mebibytes(row.memory.sum()) + " a rank (" +
              largest_parts(row.memory) + ") and sends " + mebibytes(row.volume.sum()) + " a step";
  if (&row == &chosen) {
    const auto of = budget == 0 ? std::string("an unknown amount of memory") : mebibytes(budget);
    return text + ": chosen, of " + of + ", for " + std::to_string(batch.rows) + " x " + std::to_string(batch.length) +
           " tokens";
  }
  if (budget == 0) return text + ": memory is unknown";
  return text + (row.fits ? ": fits, and is " +
                                std::string(row.time.seconds > chosen.time.seconds ? "slower" : "hardly faster")
                          : ": does not fit");
}

/// The first that fits and is no slower than the fastest that does, as far as the simulator can tell; null: none fits.
const Row* best_of(const std::vector<Row>& rows) {
  double least = 0;
  for (const auto& row : rows) {
    if (row.fits && (least == 0 || row.time.seconds < least)) least = row.time.seconds;
  }
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const Row& row) { return row.fits && row.time.seconds <= kIndistinct * least; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

Chosen choose_method(const Candidate& candidate, const Way& asked, const Machine& machine, Kernels kernels) {
  if (machine.ranks() == 1) return {.method = "none", .lines = {"parallel_method auto: none, since there is one rank"}};
  Question question{.machine = machine, .kernels = kernels, .length = asked.batch.length};
  question.machine.memory = static_cast<std::int64_t>(kPlannedPart * static_cast<double>(machine.memory));
  std::vector<Row> rows;
  for (const auto method : {Method::Ddp, Method::Hsdp, Method::Fsdp}) {
    if (method == Method::Hsdp && (machine.hosts == 1 || machine.cards == 1)) continue;
    auto way = asked;
    way.method = method;
    way.ranks = machine.ranks();
    way.shard = method == Method::Fsdp ? way.ranks : method == Method::Hsdp ? machine.cards : 1;
    rows.push_back(make_row(candidate, way, question));
  }
  const auto* best = best_of(rows);
  // Where none fits, or nobody knows, what takes least.
  if (machine.memory == 0 || !best) best = &rows.back();
  Chosen chosen{.method = name_of(best->way.method), .lines = {}};
  if (best->way.method == Method::Hsdp) chosen.shard_size = best->way.shard;
  chosen.lines.push_back(line_of(*best, *best, question.machine.memory, best->way.batch));
  for (const auto& row : rows) {
    if (&row != best) chosen.lines.push_back(line_of(row, *best, question.machine.memory, row.way.batch));
  }
  return chosen;
}

}  // namespace sealift::trainer::plan
