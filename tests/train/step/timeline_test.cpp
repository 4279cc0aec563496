// SPDX-License-Identifier: Apache-2.0
// What a timeline writes down, on the CPU and on a device whose stream is simulated.
#include <sealift/train/step/timeline.hpp>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <doctest/doctest.h>

using namespace sealift::train;
using enum Activity;

namespace {

/// A device whose stream lags behind: an event is recorded at a time that the test sets, and the host's clock is not
/// it.
struct SimulatedDevice final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::PrivateUse1> {
  static inline double stream_ms = 0;  ///< where the stream is when an event is recorded
  static inline int waits = 0, made = 0;
  static inline bool done = false;  ///< the stream has come to its end

  c10::DeviceIndex deviceCount() const noexcept override { return 0; }  // or autograd would start threads for it
  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag flag) const override {
    CHECK(flag == c10::EventFlag::BACKEND_DEFAULT);  // others have no times
    if (!*event) {
      *event = new double;
      ++made;
    }
    *static_cast<double*>(*event) = stream_ms;
  }
  bool queryEvent(void*) const override { return done; }
  void synchronizeEvent(void*) const override {
    ++waits;
    done = true;
  }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const override {
    REQUIRE(done);
    return *static_cast<double*>(to) - *static_cast<double*>(from);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<double*>(event); }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, SimulatedDevice);

}  // namespace

TEST_CASE("a timeline gives what began and ended since the last time, in the order of beginnings") {
  Timeline timeline;
  const auto before = timeline.now();
  timeline.begin(Forward, "root");
  timeline.begin(Gather, "layer0");
  timeline.begin(Gather, "layer1");
  timeline.begin(GatherWait, "layer0");
  timeline.end(GatherWait, "layer0");
  timeline.end(Gather, "layer0");
  timeline.end(Gather, "layer1");
  timeline.end(Forward, "root");
  const auto seen = timeline.take();
  const auto after = timeline.now();
  REQUIRE(seen.size() == 4);
  CHECK(seen[0].activity == Forward);
  CHECK(seen[0].unit == "root");
  CHECK(seen[1].activity == Gather);
  CHECK(seen[2].unit == "layer1");
  CHECK(seen[3].activity == GatherWait);
  CHECK(before <= seen[0].begin);
  CHECK(seen[0].begin <= seen[1].begin);
  CHECK(seen[1].begin <= seen[3].begin);
  CHECK(seen[3].begin <= seen[3].end);
  CHECK(seen[3].end <= seen[1].end);
  CHECK(seen[2].end <= seen[0].end);
  CHECK(seen[0].end <= after);
  CHECK(timeline.take().empty());
}

TEST_CASE("an end belongs to the last beginning of its unit and kind") {
  Timeline timeline;
  timeline.begin(Forward, "root");
  timeline.begin(Forward, "layer0");
  timeline.end(Forward, "layer0");
  timeline.begin(Forward, "layer0");
  timeline.end(Forward, "layer0");
  timeline.end(Forward, "root");
  const auto seen = timeline.take();
  REQUIRE(seen.size() == 3);
  CHECK(seen[1].end <= seen[2].begin);
  CHECK(seen[2].end <= seen[0].end);
}

TEST_CASE("what a failed pass has left open is dropped, and its late end changes nothing") {
  Timeline timeline;
  timeline.begin(Backward, "root");
  timeline.begin(Reduce, "layer0");
  CHECK(timeline.take().empty());
  timeline.end(Reduce, "layer0");
  timeline.begin(Reduce, "layer0");
  timeline.end(Reduce, "layer0");
  timeline.end(Backward, "root");
  const auto seen = timeline.take();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].activity == Reduce);
}

TEST_CASE("on a device times are those of its stream, and nothing waits for it before they are taken") {
  using Device = SimulatedDevice;
  Timeline timeline(c10::Device(c10::DeviceType::PrivateUse1, 0));
  for (int step = 0; step < 2; ++step) {
    Device::done = false;
    Device::waits = 0;
    const auto moment = [](double ms) { Device::stream_ms = ms; };
    moment(1000);
    timeline.begin(Forward, "root");
    moment(1002);
    timeline.begin(GatherWait, "root");
    moment(1005);
    timeline.end(GatherWait, "root");
    moment(1250);
    timeline.end(Forward, "root");
    CHECK(Device::waits == 0);
    moment(1300);  // when the loop takes them
    const auto before = timeline.now();
    const auto seen = timeline.take();
    const auto after = timeline.now();
    CHECK(Device::waits == 1);
    REQUIRE(seen.size() == 2);
    CHECK(seen[0].end - seen[0].begin == doctest::Approx(0.25));
    CHECK(seen[1].begin - seen[0].begin == doctest::Approx(0.002));
    CHECK(seen[1].end - seen[1].begin == doctest::Approx(0.003));
    // On the host's clock the stream was at 1300 ms just now.
    CHECK(before <= seen[0].end + 0.05 + 1e-9);
    CHECK(seen[0].end + 0.05 - 1e-9 <= after);
  }
  CHECK(Device::made == 4 + 2);  // events are used again; each `take` has one of its own
}
