// SPDX-License-Identifier: Apache-2.0
// What a fine-tuning job trains towards; each verb that fine-tunes is one.
// Below the settings and the tables of other projects' keys, which both go by it.
// Apart from the settings, so that a table of keys need not know them.
#pragma once

#include <string>

namespace sealift::trainer {

/// Which verb reads the settings; each has a few defaults of its own.
enum class Task { Sft, Dpo, Kto, Reward, Pretrain };

/// The verb of a task.
std::string to_string(Task task);

}  // namespace sealift::trainer
