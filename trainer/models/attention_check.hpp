// SPDX-License-Identifier: Apache-2.0
// Whether a device's attention computes what the CPU's does, asked before a job trusts it.
// A cuDNN of which a part is missing, or a kernel that is wrong on a new card, shows here and not in the first step.
#pragma once

#include "trainer/models/decoder_config.hpp"
#include "trainer/ranks/place.hpp"

#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace sealift::trainer {

/// What a job's rows ask of attention beside causal order.
struct RowsOfJob {
  bool packed = false;       ///< several sequences in a row
  std::int64_t longest = 0;  ///< tokens of the longest row: shorter windows and chunks hide some of them
};

/// Computes a small attention and its gradients in `dtype` on `device`, with the heads, caps, sinks, windows and chunks
/// of each kind of layer that `config` has, over a plain row and, where `rows` says so, a packed one. Switches off, for
/// the process, each way that fails or gives other numbers than the CPU: the next one is taken. A line for each; none
/// on the CPU. Throws where the last way is wrong, too. Before the first forward.
std::vector<std::string> check_attention(c10::Device device, at::ScalarType dtype, const DecoderConfig& config,
                                         const RowsOfJob& rows = {});

/// The same for the device of a rank and what it computes in; prints the lines.
void check_attention(const Place& place, const DecoderConfig& config, const RowsOfJob& rows);

}  // namespace sealift::trainer
