// SPDX-License-Identifier: Apache-2.0
// Greedy answers with a cache of keys and values, while all parameters are gathered.
// See samples.hpp.
// Text is made by the scripts that tokenize, in a child: what defines a model's text is its tokenizer, not a table.
#include "trainer/fine_tune/samples.hpp"

#include "trainer/failure.hpp"
#include "trainer/fine_tune/made_tokens.hpp"
#include "trainer/models/generate.hpp"
#include "trainer/ranks/patient_save.hpp"

#include <fstream>

namespace sealift::trainer {
namespace {

using Tokens = std::vector<std::int64_t>;

/// The lines of `file` before `step`; later ones are of a run that was resumed before them.
std::string lines_before(const std::filesystem::path& file, std::int64_t step) {
  std::ifstream lines(file);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.value("step", step) < step) kept += line + "\n";
  }
  return kept;
}

}  // namespace

std::vector<Tokens> sample_prompts(const TokenView& file, std::int64_t prompts) {
  std::vector<Tokens> result;
  const auto each = file.sequences_of_example();
  for (std::uint64_t example = 0;
       example < std::min<std::uint64_t>(file.examples(), static_cast<std::uint64_t>(prompts)); ++example) {
    const auto sequence = file.sequence(example * each);
    std::size_t end = 0;
    while (end < sequence.size() && !sequence.counts(end)) ++end;
    if (end == 0) end = (sequence.size() + 1) / 2;
    auto& prompt = result.emplace_back();
    for (std::size_t at = 0; at < end; ++at) prompt.push_back(sequence.token(at));
  }
  return result;
}

void write_samples(FineTuning& tuning) {
  const auto [options, training] = std::tie(tuning.options, tuning.training);
  const auto& file = tuning.evaluation ? *tuning.evaluation : tuning.data;
  const auto step = training.position.step;
  nlohmann::ordered_json samples = nlohmann::ordered_json::array();
  {
    const auto whole = training.parallel.gather_parameters();
    const auto room = tuning.model->config().max_positions;
    for (const auto& prompt : sample_prompts(file.view(), options.sample_prompts)) {
      const auto most = std::min(options.sample_tokens, room - static_cast<std::int64_t>(prompt.size()));
      const GenerateOptions how{.max_tokens = most, .ranks = training.world.world};
      const auto answer = most > 0 ? generate(tuning.model, prompt, how) : Tokens{};
      samples.push_back({{"step", step}, {"prompt", prompt}, {"answer", answer}});
    }
  }
  if (!training.place.is_first()) return;
  const auto path = std::filesystem::path(options.out) / "samples.jsonl";
  auto text = lines_before(path, step);
  for (const auto& sample : samples) text += sample.dump() + "\n";
  try {
    write_whole(path, text);
  } catch (const c10::Error& error) {
    return say("the answers of step " + std::to_string(step) + " are not written: " + text_of(error));
  }
  static bool has_texts = true;  // what was missing once is not asked for again
  has_texts = has_texts && add_texts(path, options.model);
}

}  // namespace sealift::trainer
