// SPDX-License-Identifier: Apache-2.0
// What the made devices do in one operation, as cards do: RMSNorm, attention without a mask, lists of tensors;
// attention by lengths (by_length_kernels.cpp). Above `kernels`; `install` (guard.cpp) registers them.
#pragma once

#include <cstdint>

namespace sealift::test::made {

/// Registers the fused kernels. Without them LibTorch makes many operations of one, and counts would be those of no
/// card.
void register_fused_kernels();
void register_by_length_kernels();

/// What autocast computes in half precision and what in fp32, as on other devices (autocast.cpp).
void register_autocast();

/// From now on the attention of dense rows is wrong, or is right again.
void break_attention(bool broken);

/// The same of heads of this width alone; 0: of none.
void break_attention_of(std::int64_t head_dim);

/// The same of attention by lengths, which may also say that it cannot run.
enum class Broken { No, Wrong, Fails };
void break_attention_by_length(Broken how);

}  // namespace sealift::test::made
