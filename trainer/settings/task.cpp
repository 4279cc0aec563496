// SPDX-License-Identifier: Apache-2.0
// See task.hpp.
#include "trainer/settings/task.hpp"

namespace sealift::trainer {

std::string to_string(Task task) {
  switch (task) {
    case Task::Sft:
      return "sft";
    case Task::Dpo:
      return "dpo";
    case Task::Kto:
      return "kto";
    case Task::Reward:
      return "reward";
    case Task::Pretrain:
      return "pretrain";
  }
  return "";
}

}  // namespace sealift::trainer
