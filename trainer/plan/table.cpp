// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <utility>

namespace sealift::trainer::plan {
namespace {

/// Beyond three micro-batches a step takes no more memory.
constexpr std::int64_t kMicroBatchesOfMemory = 3;

struct Offloaded {
  bool parameters = false, moments = false;
};

/// The ways to cut a rank's rows of a step into micro-batches: powers of two, and all at once.
std::vector<std::pair<std::int64_t, std::int64_t>> cuts(std::int64_t rows) {
  std::vector<std::pair<std::int64_t, std::int64_t>> result;
  for (std::int64_t each = 1; each < rows; each *= 2) {
    if (rows % each == 0) result.emplace_back(each, rows / each);
  }
  result.emplace_back(rows, 1);
  return result;
}

/// The ways of `method`: which ranks shard, what is kept between passes, what is reduced when.
std::vector<Way> ways_of(Method method, const Question& question) {
  const auto ranks = question.machine.ranks();
  if (ranks == 1 && method != Method::Ddp) return {};
  if (method == Method::Hsdp && question.machine.hosts == 1) return {};
  if (method == Method::Hsdp && question.machine.cards == 1) return {};
  Way way{.method = method, .ranks = ranks};
  way.shard = method == Method::Fsdp ? ranks : method == Method::Hsdp ? question.machine.cards : 1;
  if (way.shard == 1) return {way};
  std::vector<Way> ways;
  for (const bool reshard : {true, false}) {
    for (const bool every : {false, true}) {
      way.reshard_after_forward = reshard;
      way.reduce_every_micro_batch = every;
      ways.push_back(way);
    }
  }
  return ways;
}

std::string gap_text(const RankMemory& memory, const Question& question) {
  const auto lacks = memory.sum() - question.machine.memory;
  if (lacks > 0)
    return "lacks " + gigabytes(lacks) + " of " + gigabytes(question.machine.memory) + ": " + largest_parts(memory);
  return "its host lacks memory for " + gigabytes(memory.host * question.machine.cards) + " that are offloaded";
}

bool fits(const RankMemory& memory, const Question& question) {
  const auto& machine = question.machine;
  if (memory.sum() > machine.memory) return false;
  return machine.host_memory == 0 || memory.host * machine.cards <= machine.host_memory;
}

/// Whether another way does the same in this job: with one micro-batch each way reduces once.
bool is_same_as_another(const Way& way) {
  return way.micro_batches == 1 && way.reduce_every_micro_batch;
}

}  // namespace

std::string gigabytes(std::int64_t bytes) {
  char text[32];
  const auto value = static_cast<double>(bytes) / 1e9;
  std::snprintf(text, sizeof text, value < 10 ? "%.2f GB" : "%.1f GB", value);
  return text;
}

std::string largest_parts(const RankMemory& memory) {
  std::vector<std::pair<std::int64_t, const char*>> parts{
      {memory.parameters, "parameters"},   {memory.gradients, "gradients"},     {memory.moments, "moments"},
      {memory.gathered, "gathered units"}, {memory.activations, "activations"}, {memory.logits, "logits"},
      {memory.buffers, "buffers"},         {memory.slack, "the allocator"}};
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return std::string(parts[0].second) + " " + gigabytes(parts[0].first) + ", " + parts[1].second + " " +
         gigabytes(parts[1].first);
}

Row make_row(const Candidate& candidate, const Way& given, const Question& question) {
  Row row{.tuner = candidate.tuner, .way = given, .memory = {}, .volume = {}, .time = {}, .reason = {}};
  auto& way = row.way;
  way.batch.length = question.length;
  way.batch.compute_bytes = candidate.compute_bytes;
  way.batch.kernels = question.kernels;
  const auto memory_of = [&](Way each) {
    each.micro_batches = std::min(each.micro_batches, kMicroBatchesOfMemory);
    return predict_memory(candidate.shape, each);
  };
  row.memory = memory_of(way);
  // The engine keeps units gathered where that fits; here it is the same plan with more memory.
  if (keep_fits(candidate.shape, way, question.machine.memory - row.memory.parameters - row.memory.moments)) {
    auto kept = way;
    kept.keep_gathered = true;
    if (const auto memory = memory_of(kept); fits(memory, question)) way = kept, row.memory = memory;
  }
  row.volume = volume_of(candidate.shape, way);
  row.time = step_time(candidate.shape, way, question.machine);
  row.fits = fits(row.memory, question);
  if (!row.fits) row.reason = gap_text(row.memory, question);
  row.tokens_per_second = static_cast<double>(way.batch.tokens() * way.micro_batches * way.ranks) / row.time.seconds;
  row.gpu_hours = static_cast<double>(question.tokens) / row.tokens_per_second * static_cast<double>(way.ranks) / 3600;
  return row;
}

std::vector<Row> make_table(const std::vector<Candidate>& candidates, const Question& question) {
  std::vector<Row> rows;
  const auto of_rank = std::max<std::int64_t>(1, question.rows / question.machine.ranks());
  std::vector<Offloaded> offloads{{}};
  if (question.offloads) offloads = {{}, {.moments = true}, {.parameters = true, .moments = true}};
  for (const auto& candidate : candidates) {
    for (const auto method : question.methods) {
      for (auto way : ways_of(method, question)) {
        for (const auto& [parameters, moments] : offloads) {
          for (const bool recompute : question.recompute) {
            for (const auto& [each, micro_batches] : cuts(of_rank)) {
              way.offload_parameters = parameters;
              way.offload_moments = moments;
              way.recompute = recompute;
              way.batch.rows = each;
              way.micro_batches = micro_batches;
              if (!is_same_as_another(way)) rows.push_back(make_row(candidate, way, question));
            }
          }
        }
      }
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    if (a.fits != b.fits) return a.fits;
    if (!a.fits) return a.memory.sum() < b.memory.sum();
    // Within a thousandth the smaller one.
    if (std::abs(a.time.seconds - b.time.seconds) > 1e-3 * b.time.seconds) return a.time.seconds < b.time.seconds;
    return a.memory.sum() < b.memory.sum();
  });
  return rows;
}

std::string words_of(const Row& row) {
  const auto& way = row.way;
  std::string text = row.tuner == "none" ? "full" : row.tuner;
  text += way.narrow() ? " bf16 " : " fp32 ";
  text += name_of(way.method);
  if (way.method == Method::Hsdp) text += " " + std::to_string(way.shard);
  text += ", " + std::to_string(way.batch.rows) + " rows x " + std::to_string(way.micro_batches);
  if (way.shard > 1 && !way.reshard_after_forward) text += ", no reshard";
  if (way.keep_gathered) text += ", kept gathered";
  if (way.reduce_every_micro_batch) text += ", reduce every micro-batch";
  if (way.recompute) text += ", recompute";
  if (way.offload_parameters) text += ", offload parameters";
  if (!way.offload_parameters && way.offload_moments) text += ", offload optimizer_state";
  return text;
}

std::string job_file(const Row& row, const std::string& model, const std::string& dataset) {
  const auto& way = row.way;
  const auto quoted = [](const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
    return result + '"';
  };
  std::ostringstream out;
  out << "# " << words_of(row) << ": " << gigabytes(row.memory.sum()) << " a rank, of " << way.ranks << " ranks\n";
  if (!model.empty()) out << "model = " << quoted(model) << '\n';
  if (!dataset.empty()) out << "dataset = " << quoted(dataset) << '\n';
  out << "tuner_type = " << quoted(row.tuner) << "\nprecision = " << (way.narrow() ? "\"bf16\"" : "\"fp32\"")
      << "\nparallel_method = " << quoted(name_of(way.method)) << '\n';
  if (way.method == Method::Hsdp) out << "shard_size = " << way.shard << '\n';
  if (way.shard > 1) out << "reshard_after_forward = " << (way.reshard_after_forward ? "true" : "false") << '\n';
  if (way.shard > 1 && way.micro_batches > 1) {
    out << "keep_gathered = " << (way.keep_gathered ? "true" : "false")
        << "\nreduce_every_micro_batch = " << (way.reduce_every_micro_batch ? "true" : "false") << '\n';
  }
  out << "per_device_train_batch_size = " << way.batch.rows << "\ngradient_accumulation_steps = " << way.micro_batches
      << "\nmax_length = " << way.batch.length << "\ngradient_checkpointing = " << (way.recompute ? "true" : "false")
      << '\n';
  if (way.offload_parameters) {
    out << "offload = [\"parameters\", \"optimizer_state\"]\n";
  } else if (way.offload_moments) {
    out << "offload = [\"optimizer_state\"]\n";
  }
  return out.str();
}

std::string table_text(const std::vector<Row>& rows, std::size_t most) {
  std::ostringstream out;
  char line[400];
  std::snprintf(line, sizeof line, "%-58s %9s %9s %8s %9s %9s\n", "way", "a rank", "sends", "s/step", "tokens/s",
                "GPU hours");
  out << line;
  std::size_t shown = 0;
  std::map<std::string, bool> told;
  for (const auto& row : rows) {
    if (row.fits && shown++ < most) {
      std::snprintf(line, sizeof line, "%-58s %9s %9s %8.3g %9.0f %9.1f\n", words_of(row).c_str(),
                    gigabytes(row.memory.sum()).c_str(), gigabytes(row.volume.sum()).c_str(), row.time.seconds,
                    row.tokens_per_second, row.gpu_hours);
      out << line;
    }
    const auto kind = row.tuner + name_of(row.way.method);
    if (row.fits) told[kind] = true;
    if (!row.fits && !std::exchange(told[kind], true)) out << words_of(row) << ": " << row.reason << '\n';
  }
  return out.str();
}

}  // namespace sealift::trainer::plan
