// SPDX-License-Identifier: Apache-2.0
// What is left of a fine-tuning job: the best model taken back, what was trained as files, result.json.
// After the loop, which trains; called by fine_tune at its end.
#pragma once

#include "trainer/fine_tune/fine_tuning.hpp"
#include "trainer/fine_tune/job_model.hpp"

namespace sealift::trainer {

/// The model of the least evaluation loss in place of the last, where the job says so. Collective.
void take_best(FineTuning& tuning);

/// Writes what was trained; what and where. Collective.
std::string save_result(FineTuning& tuning, const FirstValues& values);

/// The content of result.json, without the monitor's part. `saved`: what save_result said.
nlohmann::ordered_json report(const FineTuning& tuning, const ModelSize& size, const std::string& saved,
                              double seconds);

}  // namespace sealift::trainer
