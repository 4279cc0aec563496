// SPDX-License-Identifier: Apache-2.0
// A command under the egress watch, which refuses what leads outside: prints JSON with its exit code, the end of what
// it wrote, and the attempts. For tests that are scripts.
//   watched FOLDER SECONDS COMMAND...
#include "verify/egress/watch.hpp"

#include <cstdio>

using namespace sealift::verify;

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const auto result = run_watched({argv + 3, argv + argc}, {}, std::chrono::seconds(std::stol(argv[2])), argv[1],
                                  Allowed({}, own_addresses(), "thishost"));
  const nlohmann::json said{{"code", result.child.code},   {"timed_out", result.child.timed_out},
                            {"out", result.child.out},     {"err", result.child.err},
                            {"fault", result.fault},       {"attempts", attempts_json(result.attempts)},
                            {"io_uring", result.io_uring}, {"left", result.left}};
  std::puts(said.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return 0;
}
