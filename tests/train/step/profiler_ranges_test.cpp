// SPDX-License-Identifier: Apache-2.0
// The ranges that a profiler sees, and that it sees them closed in the order in which profilers close them.
#include <sealift/train/step/profiler_ranges.hpp>

#include <doctest/doctest.h>

using namespace sealift::train;
using enum Activity;

namespace {

/// A profiler that can only close the newest range, as NVTX.
struct Profiler {
  static inline std::vector<std::string> log;
  static inline std::vector<at::RecordFunctionHandle> open;

  Profiler() {
    log.clear();
    open.clear();
    handle =
        at::addThreadLocalCallback(at::RecordFunctionCallback(
                                       [](const at::RecordFunction& range) -> std::unique_ptr<at::ObserverContext> {
                                         log.push_back("+ " + std::string(range.name()));
                                         open.push_back(range.handle());
                                         return nullptr;
                                       },
                                       [](const at::RecordFunction& range, at::ObserverContext*) {
                                         log.push_back("- " + std::string(range.name()));
                                         REQUIRE_FALSE(open.empty());
                                         CHECK(open.back() == range.handle());
                                         open.pop_back();
                                       })
                                       .needsIds(true)
                                       .scopes({at::RecordScope::USER_SCOPE}));
  }
  ~Profiler() { at::removeCallback(handle); }
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  at::CallbackHandle handle;
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a profiler sees forward, backward and waits of units, and no collectives in flight") {
  const Profiler profiler;
  ProfilerRanges ranges;
  ranges.begin(Forward, "root");
  ranges.begin(Gather, "layer0");
  ranges.begin(GatherWait, "layer0");
  ranges.end(GatherWait, "layer0");
  ranges.end(Gather, "layer0");
  ranges.end(Forward, "root");
  ranges.begin(Reduce, "layer0");
  ranges.end(Reduce, "layer0");
  CHECK(Profiler::log == Lines{"+ sealift::forward root", "+ sealift::gather wait layer0",
                               "- sealift::gather wait layer0", "- sealift::forward root"});
}

TEST_CASE("units that end in another order than they began are cut, so that ranges nest") {
  const Profiler profiler;
  ProfilerRanges ranges;
  ranges.begin(Backward, "left");
  ranges.begin(Backward, "right");
  ranges.end(Backward, "left");
  ranges.end(Backward, "right");
  CHECK(Profiler::log == Lines{"+ sealift::backward left", "+ sealift::backward right", "- sealift::backward right",
                               "- sealift::backward left", "+ sealift::backward right", "- sealift::backward right"});
}

TEST_CASE("the end of a step closes what a failed pass has left open") {
  const Profiler profiler;
  ProfilerRanges ranges;
  ranges.begin(Forward, "root");
  ranges.begin(Forward, "layer0");
  ranges.step_ended(1);
  CHECK(Profiler::open.empty());
  ranges.end(Forward, "root");
  CHECK(Profiler::log.size() == 4);
}

TEST_CASE("without a profiler there are no ranges, also for one that starts in the middle") {
  ProfilerRanges ranges;
  ranges.begin(Forward, "root");
  const Profiler profiler;
  ranges.end(Forward, "root");
  CHECK(Profiler::log.empty());
}
