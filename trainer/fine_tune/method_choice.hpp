// SPDX-License-Identifier: Apache-2.0
// `parallel_method auto`: ddp, hsdp or fsdp, by what the job takes on a rank and what memory is there.
// Asked by `fine_tune` between connecting and making the mesh; plan/auto_method.hpp chooses.
// Activations are counted for the job's own batch, so nothing is left to a part that nobody knows.
#pragma once

#include "trainer/models/decoder_config.hpp"
#include "trainer/plan/auto_method.hpp"
#include "trainer/settings/fine_tune_options.hpp"

#include <sealift/train.hpp>

namespace sealift::trainer {

/// Chooses for the job's model among `ranks`, of which each host has `ranks_of_host`, by the memory that is free on
/// `device`. The same on all ranks. Collective.
plan::Chosen choose_method(const FineTuneOptions& options, const DecoderConfig& config, const train::World& ranks,
                           std::int64_t ranks_of_host, at::Device device);

}  // namespace sealift::trainer
