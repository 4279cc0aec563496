// SPDX-License-Identifier: Apache-2.0
// The golden run's file: the reader of all programs, and the writer.
// See golden_file.hpp; docs/verify_checks_training.md describes the format.
// The packager reads it the same way, so that what is refused here is refused before it is packed.
#include "verify/training/golden_file.hpp"

#include "sealift/bundle/core/file.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <set>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;

Golden of_file(bundle::GoldenFile file) {
  Golden golden{.name = file.name,
                .job = {.name = file.name, .verb = file.verb, .settings = std::move(file.settings)},
                .ranks = static_cast<std::int64_t>(file.ranks),
                .method = file.method,
                .rows = static_cast<std::int64_t>(file.rows),
                .losses = std::move(file.losses),
                .norms = std::move(file.norms),
                .weights = file.weights.hex(),
                .device = file.device,
                .arch = file.arch,
                .torch = file.torch,
                .threads = static_cast<std::int64_t>(file.threads),
                .by_rank = file.by_rank,
                .tolerances = std::move(file.tolerances)};
  for (const auto& [path, digest] : file.inputs) golden.inputs.emplace(path, digest.hex());
  return golden;
}

/// `read`, whose refusal is a refusal of this file to callers.
template <class Read>
Golden golden_by(const Read& read) {
  try {
    return of_file(read());
  } catch (const bundle::Error& error) {
    throw std::invalid_argument(error.what());
  }
}

std::vector<std::string> texts_of_numbers(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    texts.emplace_back(text);
  }
  return texts;
}

}  // namespace

std::string precision_of(const TrainingJob& job) {
  const auto found = job.settings.find("precision");
  if (found != job.settings.end()) return found->second;
  return "fp32";
}

double tolerance_of(const Golden& golden, const std::string& arch, const std::string& device) {
  const auto precision = precision_of(golden.job);
  double tolerance = default_tolerance(precision);
  for (const auto& key : {precision, precision + "@" + arch, precision + "@" + device}) {
    if (const auto found = golden.tolerances.find(key); found != golden.tolerances.end()) tolerance = found->second;
  }
  return tolerance;
}

Golden golden_from(const Json& json, const std::string& where) {
  return golden_by([&] { return bundle::parse_golden(json.dump(), where); });
}

Golden read_golden(const std::filesystem::path& file) {
  return golden_by(
      [&] { return bundle::parse_golden(bundle::read_text(file, bundle::kMaxGoldenBytes), file.string()); });
}

nlohmann::ordered_json to_json(const Golden& golden) {
  std::map<std::string, std::string> tolerances;
  for (const auto& [key, value] : golden.tolerances) tolerances[key] = texts_of_numbers({value}).front();
  nlohmann::ordered_json json{{"format", "sealift.golden"},
                              {"version", 1},
                              {"name", golden.name},
                              {"verb", golden.job.verb},
                              {"settings", golden.job.settings},
                              {"rows", golden.rows},
                              {"steps", golden.losses.size()},
                              {"inputs", golden.inputs},
                              {"losses", texts_of_numbers(golden.losses)},
                              {"norms", texts_of_numbers(golden.norms)},
                              {"weights", golden.weights},
                              {"device", golden.device},
                              {"arch", golden.arch},
                              {"torch", golden.torch},
                              {"threads", golden.threads},
                              {"tolerances", tolerances}};
  if (!golden.by_rank.empty()) json["by_rank"] = golden.by_rank;
  if (golden.ranks > 1) json.update({{"ranks", golden.ranks}, {"method", golden.method}});
  return json;
}

}  // namespace sealift::verify
