// SPDX-License-Identifier: Apache-2.0
// Shows units in LibTorch's profiler: forward, backward and waits as user ranges around the operators that they run.
// An observer of `Parallel`; does nothing while no profiler runs.
// Gathers and reductions in flight overlap all else, so they have no range here; their waits have one.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/observer.hpp>

#include <ATen/record_function.h>

namespace sealift::train {

/// Ranges are named "sealift::forward layer0". NVTX and Kineto close the newest range first, whatever is asked for:
/// when units end in another order, as parallel branches do in backward, newer ones are cut in two.
class ProfilerRanges final : public Observer {
 public:
  SEALIFT_BODY void begin(Activity activity, const std::string& unit) override;

  SEALIFT_BODY void end(Activity activity, const std::string& unit) override;

  /// Closes what a failed pass has left open.
  SEALIFT_BODY void step_ended(std::int64_t) override;

 private:
  struct Range {
    std::string name;
    std::unique_ptr<at::RecordFunction> record;
  };

  void open(const std::string& name);

  static std::string name_of(Activity activity, const std::string& unit);

  /// Closes the newest range and returns its name.
  std::string close();

  std::vector<Range> ranges_;
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/step/profiler_ranges_inl.hpp>
#endif
