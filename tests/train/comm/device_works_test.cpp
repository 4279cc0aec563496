// SPDX-License-Identifier: Apache-2.0
// device_works.hpp: which collective a device waits for, and what is remembered of finished ones.
// Works are made by hand, so no rank and no device is needed; device_engine_test.cpp has ranks.
#include <sealift/train/comm/device_works.hpp>

#include <doctest/doctest.h>

namespace {

using namespace sealift::train;

struct Work final : c10d::Work {
  bool breaks_on_question = false;
  bool isCompleted() override {
    TORCH_CHECK(!breaks_on_question, "CUDA error: an illegal memory access was encountered");
    return c10d::Work::isCompleted();
  }
  void end(std::exception_ptr error = nullptr) { finish(std::move(error)); }
};

/// Works 0, 1, 2 of one group and a work of another.
struct Device {
  Device() {
    for (std::uint64_t i = 0; i < 3; ++i) add(7, i);
    add(8, 0);
  }

  void add(std::size_t group, std::uint64_t number) {
    const auto id = made.size();
    made.push_back(c10::make_intrusive<Work>());
    works.add(group, {id, number, {"all_gather", "layer" + std::to_string(number)}, made.back(), {}, {}});
  }
  std::map<std::size_t, std::uint64_t> oldest() {
    std::map<std::size_t, std::uint64_t> numbers;
    works.waits([&](std::size_t group, const auto& running) { numbers[group] = running.number; });
    return numbers;
  }

  DeviceWorks works;
  std::vector<c10::intrusive_ptr<Work>> made;
};

}  // namespace

TEST_CASE("a device waits for the oldest collective of each group that is not done") {
  Device device;
  CHECK(device.oldest() == std::map<std::size_t, std::uint64_t>{{7, 0}, {8, 0}});
  device.made[0]->end();
  device.made[3]->end();
  CHECK(device.oldest() == std::map<std::size_t, std::uint64_t>{{7, 1}});
  device.made[2]->end();  // by c10d's contract it is done after number 1
  CHECK(device.oldest() == std::map<std::size_t, std::uint64_t>{{7, 1}});
  device.made[1]->end();
  CHECK(device.oldest().empty());
}

TEST_CASE("a wait counts from when the one before it was done, and ends when it is") {
  Device device;
  DeviceWorks::Clock::time_point first, second;
  device.works.waits([&](std::size_t group, const auto& running) {
    if (group == 7) first = *running.since;
  });
  device.made[0]->end();
  CHECK(!device.works.contains(0));
  CHECK(device.works.contains(1));
  const auto before = DeviceWorks::Clock::now();
  device.works.waits([&](std::size_t group, const auto& running) {
    if (group == 7) second = *running.since;
  });
  CHECK(first < before);
  CHECK(second >= before);
}

TEST_CASE("what is done is forgotten, by who adds as by who asks") {
  Device device;
  for (const auto& work : device.made) CHECK(work.use_count() == 2);
  for (const auto& work : device.made) work->end();
  device.add(9, 0);
  for (std::size_t i = 0; i < 4; ++i) CHECK(device.made[i].use_count() == 1);
  device.made[4]->end();
  CHECK(!device.works.error());
  CHECK(device.made[4].use_count() == 1);
}

TEST_CASE("the first error is kept: of a work that ended with one, and of a device that cannot answer") {
  Device device;
  device.made[0]->end(std::make_exception_ptr(std::runtime_error("remote process exited\nand a stack")));
  const auto error = device.works.error();
  REQUIRE(error);
  CHECK(error->first.unit == "layer0");
  CHECK(error->second == "remote process exited");

  Device broken;
  broken.made[3]->breaks_on_question = true;
  CHECK(broken.works.error()->second == "CUDA error: an illegal memory access was encountered");
  CHECK(broken.oldest() == std::map<std::size_t, std::uint64_t>{{7, 0}});
}
