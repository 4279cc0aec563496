// SPDX-License-Identifier: Apache-2.0
// NCCL as c10d makes it, set up so that the watch of `rank_watch`, and nothing else, decides when a rank has failed.
// Registers itself with `engines`; the only header that includes CUDA's.
// c10d's own watchdog would end the process when a collective times out, before any rank could say why.
#pragma once

#include <sealift/train/comm/engines.hpp>

#ifdef USE_C10D_NCCL

#include <c10/util/env.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace sealift::train {

namespace detail {

/// c10d reads these where it makes a communicator. What the user has set stays.
inline void set_nccl_defaults() {
  // No watchdog thread, and so no monitor that aborts the process. `wait()` would block the host then, so works are
  // waited for by `synchronize()`.
  c10::utils::set_env("TORCH_NCCL_BLOCKING_WAIT", "1", /*overwrite=*/false);
  // Where a user turned that off: the watchdog neither throws nor lets its monitor end the process.
  c10::utils::set_env("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", false);
  c10::utils::set_env("TORCH_NCCL_ENABLE_MONITORING", "0", false);
  // The flight recorder keeps pointers to events that only the watchdog retires.
  c10::utils::set_env("TORCH_FR_BUFFER_SIZE", "0", false);
}

}  // namespace detail

/// c10d's NCCL, whose works keep their outputs alive.
class Nccl final : public c10d::ProcessGroupNCCL, public LightWorks {
 public:
  using c10d::ProcessGroupNCCL::ProcessGroupNCCL;

  /// c10d's watchdog keeps the same kind of copy.
  c10::intrusive_ptr<c10d::Work> without_tensors(const c10d::Work& work) const override {
    return c10::make_intrusive<WorkNCCL>(dynamic_cast<const WorkNCCL&>(work));
  }
};

/// A communicator of c10d's NCCL for `request`, connected. Blocks until all ranks have asked.
inline c10::intrusive_ptr<c10d::Backend> make_nccl(const EngineRequest& request) {
  static const bool defaults_are_set = (detail::set_nccl_defaults(), true);
  static_cast<void>(defaults_are_set);
  auto options = c10d::ProcessGroupNCCL::Options::create(request.high_priority);
  options->timeout = request.timeout;
  options->group_name = request.name;
  options->group_desc = request.name;
  options->global_ranks_in_group.assign(request.ranks.begin(), request.ranks.end());
  if (request.split_from) {
    options->split_from = c10::dynamic_intrusive_pointer_cast<c10d::ProcessGroupNCCL>(request.split_from);
    options->split_color = request.color;
  }
  auto backend = c10::make_intrusive<Nccl>(request.store, request.rank, request.size, std::move(options));
  backend->setGroupDesc(request.name);
  backend->setBoundDeviceId(request.device);
  backend->eagerConnectSingleDevice(request.device);
  return backend;
}

namespace detail {

/// A program or plug-in that includes this header has NCCL.
inline const bool nccl_is_registered = (register_engine(at::kCUDA, "nccl", make_nccl), true);

}  // namespace detail

}  // namespace sealift::train

#endif  // USE_C10D_NCCL
