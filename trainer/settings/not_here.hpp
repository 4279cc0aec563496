// SPDX-License-Identifier: Apache-2.0
// Words of ms-swift and of hubs that mean something that is not on this disk: ids of models and data, rows of a file.
// Once, before ranks start, by the verbs that fine-tune.
// Each is refused for what it is, with the way here: to be told that a file is missing helps nobody who wrote an id.
#pragma once

#include "trainer/settings/fine_tune_options.hpp"

namespace sealift::trainer {

/// Throws std::invalid_argument where model, adapters or data are ids of a hub, or files with a number of rows behind
/// them where the data are not ms-swift's; what exists is taken as it is.
void refuse_what_is_not_here(const FineTuneOptions& options);

/// The task of `swift rlhf`, by the rlhf_type of the flags or the file. Throws std::invalid_argument where there is
/// none or one that is not trained here.
Task task_of_rlhf(const FineTuneSources& sources);

}  // namespace sealift::trainer
