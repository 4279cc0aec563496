// SPDX-License-Identifier: Apache-2.0
// How a fine-tuning job's ranks share the work: a method that is left open is settled here, once, and then the policy.
// Asked by `fine_tune` first; what comes after reads settled options and knows of no `auto`. plan/auto_method.hpp
// chooses.
// Activations are counted for the job's own batch, so nothing is left to a part that nobody knows.
#pragma once

#include "trainer/models/decoder_config.hpp"
#include "trainer/ranks/place.hpp"
#include "trainer/settings/fine_tune_options.hpp"

namespace sealift::trainer {

/// Whether `options` say `parallel_method auto`: then ranks meet before anything else, to say what memory they have.
bool leaves_method_open(const FineTuneOptions& options);

/// `options`, which leave their method open, with ddp, hsdp or fsdp, by what the job takes on a rank and what memory is
/// free on all of `ranks`. The same on all ranks; the first says why. Collective.
FineTuneOptions with_method(FineTuneOptions options, const DecoderConfig& config, const Rank& rank,
                            const train::World& ranks, const train::Launch& launch);

/// The job in a world of so many ranks as the core's policy. Its method is settled.
train::Policy policy_of(const FineTuneOptions& options, std::int64_t world_size);

}  // namespace sealift::trainer
