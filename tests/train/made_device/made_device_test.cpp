// SPDX-License-Identifier: Apache-2.0
// The made device alone: it computes what the CPU does, later; and what a program forgets shows in the values.
// See tests/train/made_device. What the engine does on it: made_training_test.cpp.
#include "tests/train/made_device/made_device.hpp"

#include <torch/torch.h>

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

namespace {

namespace made = sealift::test::made;

at::Device ready_device(std::int64_t index = 0) {
  made::install();
  return made::device(index);
}

c10::Stream main_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getDefaultStream(device);
}

c10::Stream side_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

TEST_CASE("a made device computes what the CPU does, also backward") {
  const auto device = ready_device();
  const auto losses = [](at::Device on) {
    torch::manual_seed(7);
    auto weight = torch::randn({5, 6}), rows = torch::randn({3, 6}), bias = torch::randn({5});
    weight = weight.to(on).requires_grad_();
    auto out = at::gelu(torch::layer_norm(torch::linear(rows.to(on), weight, bias.to(on)), {5}));
    auto loss = torch::nn::functional::cross_entropy(out, torch::tensor({1, 0, 4}).to(on));
    loss.backward();
    return std::pair(loss.cpu(), weight.grad().cpu());
  };
  const auto got = losses(device), wanted = losses(at::kCPU);
  CHECK(got.first.allclose(wanted.first, 1e-6, 1e-7));  // some operations are others' sums on a device
  CHECK(got.second.allclose(wanted.second, 1e-5, 1e-7));
}

TEST_CASE("a host runs ahead of a made device, and is counted where it waits") {
  const auto device = ready_device();
  made::synchronize(device);
  made::reset_counts();
  auto x = torch::ones({4}, device);
  const auto y = (x * 2).add_(1).view({2, 2}).t();
  auto counts = made::counts();
  CHECK(counts.waits.empty());
  CHECK(counts.operations == 3);  // fill, mul, add; no view
  CHECK(y.sum().item<float>() == 12);
  counts = made::counts();
  CHECK(counts.waits == std::map<std::string, std::int64_t>{{"item", 1}});
  CHECK(counts.operations == 4);
}

TEST_CASE("another stream that does not wait finds NaN, and one that waits finds the values") {
  const auto device = ready_device();
  const auto side = side_stream(device);
  const auto read = [&](bool waits) {
    made::Hold hold(device);
    const auto values = torch::full({8}, 3.0f, device);
    c10::Event there(device.type());
    there.record(main_stream(device));
    const c10::StreamGuard guard(side);
    if (waits) there.block(side);
    const auto copy = values * 1;
    if (waits) hold.release();
    return copy.cpu();
  };
  CHECK_FALSE(read(false).equal(torch::full({8}, 3.0f)));
  CHECK(read(true).equal(torch::full({8}, 3.0f)));
}

TEST_CASE("memory that is freed while another stream reads it is NaN there, unless the stream was recorded") {
  const auto device = ready_device();
  const auto side = side_stream(device);
  const auto read = [&](bool records) {
    auto values = torch::full({8}, 3.0f, device);
    made::synchronize(device);
    const c10::StreamGuard guard(side);
    made::Hold hold(device);
    const auto copy = values * 1;
    if (records) values.record_stream(side);
    values.reset();
    {
      const c10::StreamGuard main(main_stream(device));
      torch::ones({1}, device).cpu();  // what was done with the freed memory is done
    }
    hold.release();
    return copy.cpu();
  };
  CHECK(read(false).isnan().all().item<bool>());
  CHECK(read(true).equal(torch::full({8}, 3.0f)));
}

TEST_CASE("page-locked memory is read when the stream comes to it, other memory at once") {
  const auto device = ready_device();
  for (const bool pinned : {false, true}) {
    auto host = torch::full({8}, 1.0f, torch::TensorOptions().pinned_memory(pinned));
    CHECK(host.is_pinned() == pinned);
    made::Hold hold(device);
    const auto there = host.to(device, /*non_blocking=*/true);
    host.fill_(2);
    hold.release();
    CHECK(there.cpu()[0].item<float>() == (pinned ? 2 : 1));
  }
}

TEST_CASE("a host that touches a made device's memory is ended") {
  const auto device = ready_device();
  const auto values = torch::ones({8}, device);
  made::synchronize(device);
  const auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    volatile float read = *static_cast<const float*>(values.data_ptr());
    _exit(read == 1 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
}

TEST_CASE("random numbers move on when a kernel is issued, and come again from the same state") {
  const auto device = ready_device();
  auto generator = at::globalContext().defaultGenerator(device);
  const auto state = generator.get_state();
  const auto first = torch::rand({16}, device), second = torch::rand({16}, device);
  CHECK_FALSE(generator.get_state().equal(state));
  generator.set_state(state);
  CHECK(torch::rand({16}, device).cpu().equal(first.cpu()));
  CHECK(torch::rand({16}, device).cpu().equal(second.cpu()));
}

TEST_CASE("an error of a kernel reaches whoever waits next") {
  const auto device = ready_device();
  const auto out_of_range = torch::ones({3}, device).gather(0, torch::tensor({7}).to(device));
  CHECK_THROWS_WITH(out_of_range.cpu(), doctest::Contains("out of bounds"));
  CHECK(torch::ones({3}, device).cpu().sum().item<float>() == 3);
}

}  // namespace
