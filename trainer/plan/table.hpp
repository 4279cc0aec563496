// SPDX-License-Identifier: Apache-2.0
// Every way to train a model on a machine: what it takes, what it sends, how long it lasts; the fastest that fits.
// Above memory and step_shape; the verb `plan` prints it, `parallel_method auto` takes its first line.
// Asked by numbers, not by rules of thumb: each row that does not fit says which bytes are too many.
#pragma once

#include "trainer/plan/step_shape.hpp"

#include <functional>
#include <map>
#include <optional>

namespace sealift::trainer::plan {

/// The tuners that a table compares, each a model of its own: none, lora, qlora; with the compute bytes (2 or 4) that
/// the shape is of.
struct Candidate {
  std::string tuner;
  std::int64_t compute_bytes = 2;
  ModelShape shape;
};

/// What is asked.
struct Question {
  Machine machine;
  Kernels kernels = Kernels::Cuda;
  std::int64_t length = 2048;  ///< tokens of a row
  std::int64_t rows = 16;      ///< of a step, over all ranks
  std::int64_t tokens = 0;     ///< of the data set, all epochs; 0: unknown
  bool offloads = true;        ///< whether offloading is tried
  std::vector<Method> methods = {Method::Ddp, Method::Hsdp, Method::Fsdp};
  std::vector<bool> recompute = {false, true};
};

struct Row {
  std::string tuner;
  Way way;
  RankMemory memory;
  Volume volume;
  StepTime time;
  bool fits = false;
  std::string reason;  ///< why it does not fit
  double tokens_per_second = 0;
  double gpu_hours = 0;  ///< of the data set
};

/// All ways, the fitting ones first, by seconds of a step; then the others, by how much they lack.
std::vector<Row> make_table(const std::vector<Candidate>& candidates, const Question& question);

/// The row of one way.
Row make_row(const Candidate& candidate, const Way& way, const Question& question);

/// Where the most bytes are, as "activations 12.3 GB, parameters 7.1 GB".
std::string largest_parts(const RankMemory& memory);

/// "12.3 GB"
std::string gigabytes(std::int64_t bytes);

/// The name of `way` in one line: fsdp 8, recompute, 2 rows x 4.
std::string words_of(const Row& row);

/// The row as a job file for `sealift-train sft --config`, of `model` and a row length.
std::string job_file(const Row& row, const std::string& model, const std::string& dataset);

/// The rows as the verb prints them: `most` of the fitting ones, and of the rest the best of each method with its
/// reason.
std::string table_text(const std::vector<Row>& rows, std::size_t most);

}  // namespace sealift::trainer::plan
