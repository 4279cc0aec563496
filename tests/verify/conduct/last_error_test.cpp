// SPDX-License-Identifier: Apache-2.0
// Why a program failed is its last error, and neither its banner nor what followed.
#include "verify/conduct/last_error.hpp"

#include <doctest/doctest.h>

using namespace sealift::verify;

TEST_CASE("why a program failed is its last error, and neither its banner nor what followed from it") {
  CHECK(last_error("sealift-train: starting 2 ranks: the host of all 2 ranks (--ranks)\n"
                   "sealift-train: rank 0 of 2, store at 127.0.0.1:42825 served by the launcher\n"
                   "step 1/100  loss 4.19096\n"
                   "sealift-train: rank 1: no room for a batch\n"
                   "sealift-train: rank 1 exited with 1; ending the other ranks\n") == "rank 1: no room for a batch");
  CHECK(last_error("sealift-install: a file is damaged\n  where:    /a\n  expected: b\n\n") ==
        "a file is damaged; where:    /a; expected: b");
  CHECK(last_error("Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n"
                   "    import swift\nModuleNotFoundError: No module named 'swift'\n"
                   "/usr/lib/resource_tracker.py: UserWarning: leaked\n  warnings.warn('x')\n") ==
        "ModuleNotFoundError: No module named 'swift'");
  CHECK(last_error("[rank0]: torch.distributed.DistBackendError: NCCL error\n") ==
        "torch.distributed.DistBackendError: NCCL error");
  CHECK(last_error("bash: x: not found\n\n") == "bash: x: not found");
  CHECK(last_error("\n \n").empty());
  CHECK(last_error("x: " + std::string(2000, 'a')).size() < 610);
}
