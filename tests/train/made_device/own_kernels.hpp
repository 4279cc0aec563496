// SPDX-License-Identifier: Apache-2.0
// The trainer's own kernels on made devices: their bodies, queued on a stream as one operation each.
// Above `kernels` and `streams`; tests say while they are there.
#pragma once

namespace sealift::test::made {

/// Made devices have the trainer's own kernels while it lives.
class OwnKernels {
 public:
  OwnKernels();
  OwnKernels(const OwnKernels&) = delete;
  OwnKernels& operator=(const OwnKernels&) = delete;
  ~OwnKernels();
};

}  // namespace sealift::test::made
