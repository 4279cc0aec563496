// SPDX-License-Identifier: Apache-2.0
// The golden run by Python: transformers with PyTorch's DDP and FSDP2, ms-swift, and our adapter in PEFT.
// Beside golden.hpp: where ours and the golden run differ, a second program says which of them is wrong.
// The script is carried in this program, so that both are of one version.
#pragma once

#include "verify/conduct/check_kind.hpp"

namespace sealift::verify {

/// Three checks for each of `names`: whole models by DDP and FSDP2, what it is by `swift sft`, adapters in PEFT.
std::vector<CheckKind> python_golden_checks(const std::vector<std::string>& names);

/// Rank 0: `golden`, and for each program that was run (`ddp`, `fsdp2`, `swift`) its `losses`, `norms`, `ranks` and
/// `versions` under its name.
void judge_python_golden(const std::vector<Measured>& all, Check& check);

/// Rank 0: `ours`, the evaluation's loss of sealift-train; `before` and `after`, PEFT's without and with the adapter.
void judge_adapter(const std::vector<Measured>& all, Check& check);

}  // namespace sealift::verify
