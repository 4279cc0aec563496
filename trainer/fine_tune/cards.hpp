// SPDX-License-Identifier: Apache-2.0
// What people are told of what was trained: a model card in each folder that was written, a training card beside them.
// After the result, of which they are made; the last files of a job but result.json.
// Text for people: programs read result.json, which has the same numbers.
#pragma once

#include "trainer/fine_tune/fine_tuning.hpp"

namespace sealift::trainer {

/// What the cards say beside the result.
struct CardFacts {
  std::string base;                              ///< the folder of the model that training began with
  std::string family;                            ///< its model_type
  std::map<std::string, std::string> data;       ///< SHA-256 of what was trained and evaluated on, by setting
  std::map<std::string, std::int64_t> examples;  ///< ... and how many examples it has
};

/// README.md of a folder, as Hugging Face has it: a head in YAML and a page. `is_adapter`: PEFT's, over the base.
std::string model_card(const nlohmann::ordered_json& result, const CardFacts& facts, bool is_adapter);

/// The page of the training: data, settings, losses, where it ran.
std::string training_card(const nlohmann::ordered_json& result, const CardFacts& facts);

/// Writes them into what the job has written. Collective.
void write_cards(FineTuning& tuning, const nlohmann::ordered_json& result);

}  // namespace sealift::trainer
