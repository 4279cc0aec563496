// SPDX-License-Identifier: Apache-2.0
// The choice of a rank's device: what a driver shows, which device a rank takes, what is refused, and loading CUDA's
// half. With a driver and a CUDA half that are made up, and with the real half as far as it goes without a driver. A
// program of its own, since what is loaded stays loaded.
#include "trainer/ranks/device.hpp"

#include "trainer/ranks/by_length.hpp"
#include "trainer/ranks/cuda_faults.hpp"

#include "tests/support/left_out.hpp"
#include "tests/support/ranks.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <doctest/doctest.h>

#include <cstdlib>

using namespace sealift;
using namespace sealift::trainer;
using test::on_ranks;

namespace {

std::string from_environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

CudaDriver fake_driver(int devices) {
  setenv("FAKE_DEVICES", std::to_string(devices).c_str(), 1);
  return find_cuda_driver(from_environment("FAKE_CUDA_DRIVER"));
}

train::Launch local(std::int64_t rank, std::int64_t ranks) {
  return {.rank = rank, .world_size = ranks, .local_rank = rank, .local_world_size = ranks};
}

/// Of the same sizes, without memory, on a CUDA device that nobody has.
at::Tensor on_cuda(const at::Tensor& like) {
  const c10::Storage nothing(c10::Storage::use_byte_size_t(), 0, at::DataPtr(nullptr, {at::kCUDA, 0}), nullptr, false);
  auto made = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(nothing),
                                                       c10::DispatchKeySet(c10::DispatchKey::CUDA), like.dtype());
  made.unsafeGetTensorImpl()->set_sizes_contiguous(like.sizes());
  return made;
}

}  // namespace

TEST_CASE("a driver's devices are described, and a driver that is missing, empty or broken is said to be") {
  const auto driver = fake_driver(2);
  CHECK(driver.missing.empty());
  CHECK(driver.cuda == "13.2");
  REQUIRE(driver.devices.size() == 2);
  CHECK(driver.devices[1].name == "Fake 1");
  CHECK(driver.devices[1].capability == "9.1");
  CHECK(driver.devices[1].bytes == std::uint64_t{5} << 30);
  CHECK(driver.devices[1].uuid == "GPU-29292929292929292929292929292929");
  CHECK(fake_driver(0).missing == "the NVIDIA driver shows no device");
  CHECK(fake_driver(-1).missing == "the NVIDIA driver does not start (cuInit: error 804)");
  CHECK(find_cuda_driver("libno-such-driver.so.1").missing.starts_with("this host has no NVIDIA driver (libno-such"));
  CHECK(find_cuda_driver("libm.so.6").missing.find("no NVIDIA driver") != std::string::npos);
}

TEST_CASE("a rank takes the device of its local number, and auto the CPU where there is none") {
  const auto driver = fake_driver(2);
  CHECK(choose_device("auto", driver, local(1, 2)).device == at::Device(at::kCUDA, 1));
  CHECK(choose_device("cuda", driver, local(0, 2)).gpu->name == "Fake 0");
  CHECK(choose_device("cpu", driver, local(1, 2)).device == at::kCPU);
  const CudaDriver none{.missing = "there is none"};
  CHECK(choose_device("auto", none, local(0, 1)).device == at::kCPU);
  CHECK(choose_device("auto", none, local(0, 1)).reason == "there is none");
  CHECK_THROWS_WITH(choose_device("cuda", none, local(0, 1)), doctest::Contains("device is cuda, but there is none"));
  CHECK_THROWS_WITH(choose_device("gpu", driver, local(0, 1)), "device is 'gpu'; use auto, cpu or cuda");
}

TEST_CASE(
    "more local ranks than devices are refused with both numbers, but one device each may be all a rank is shown") {
  const auto two = fake_driver(2);
  for (const char* wanted : {"auto", "cuda"}) {
    CHECK_THROWS_WITH(choose_device(wanted, two, local(2, 4)),
                      doctest::Contains("this host has 4 ranks but 2 CUDA devices, and LOCAL_RANK is 2"));
  }
  CHECK(choose_device("auto", fake_driver(1), local(3, 4)).device == at::Device(at::kCUDA, 0));
}

TEST_CASE("ranks that share a GPU, or are not all on one kind of device, are refused by all of them") {
  const auto checked = [](std::vector<std::string> uuids) {
    std::vector<std::string> said(uuids.size());
    const auto size = static_cast<std::int64_t>(uuids.size());
    on_ranks(size, [&](const train::World& world) {
      const auto rank = static_cast<std::size_t>(world.rank);
      RankDevice device{.uuid = uuids[rank]};
      if (!device.uuid.empty()) device.device = {at::kCUDA, 0};
      try {
        check_devices(device, local(world.rank, size), world, shares_devices_for_tests());
      } catch (const c10::Error& error) {
        said[rank] = error.what_without_backtrace();
      }
    });
    for (const auto& text : said) CHECK(text == said[0]);
    return said[0];
  };
  CHECK(checked({"GPU-a", "GPU-b", "GPU-c"}).empty());
  CHECK(checked({"", "", ""}).empty());

  CHECK(checked({"GPU-a", "GPU-b", "GPU-a"})
            .starts_with("ranks 0, 2 would share the device GPU-a; this host has 3 ranks"));
  CHECK(checked({"GPU-a", "", "GPU-b"}).starts_with("rank 1 would train on CPUs and ranks 0, 2 on GPUs"));
  for (const auto& [said, opens] : {std::pair{"yes", true}, {"1", false}, {"", false}}) {
    CAPTURE(said);
    setenv(kSharedDeviceForTests, said, 1);
    CHECK(checked({"GPU-a", "GPU-b", "GPU-a"}).empty() == opens);  // the door for tests
    CHECK_FALSE(checked({"GPU-a", "", "GPU-a"}).empty());
  }
  unsetenv(kSharedDeviceForTests);
  unsetenv("NCCL_HOSTID");
}

TEST_CASE("a GPU's kernels are deterministic and its fp32 products without TF32; a CPU's settings stay as they are") {
  auto& context = at::globalContext();
  context.setAllowTF32CuBLAS(true);
  RankDevice cpu;
  compute_reproducibly(cpu);
  CHECK(context.allowTF32CuBLAS());
  CHECK_FALSE(context.deterministicAlgorithms());
  CHECK_FALSE(cpu.description.contains("numerics"));
  RankDevice gpu{.device = {at::kCUDA, 0}};
  compute_reproducibly(gpu);
  CHECK_FALSE(context.allowTF32CuBLAS());
  CHECK(context.deterministicAlgorithms());
  CHECK_FALSE(context.deterministicAlgorithmsWarnOnly());
  CHECK(from_environment("CUBLAS_WORKSPACE_CONFIG") == ":4096:8");
  CHECK(gpu.description["numerics"].dump() == R"({"tf32":false,"deterministic_kernels":true})");
  context.setDeterministicAlgorithms(false, false);
}

TEST_CASE("a CUDA half gives the program's registry its NCCL; what is none of it is said to be") {
  CHECK(load_cuda("libno-such-half.so").starts_with("CUDA's half cannot be loaded (libno-such-half.so: "));
  CHECK(load_cuda("libm.so.6") == "libm.so.6 is not this program's CUDA half; install both from one build");
  CHECK_FALSE(train::registered_engine(at::kCUDA));
  REQUIRE(load_cuda(from_environment("FAKE_CUDA_HALF")).empty());
  const auto engine = train::registered_engine(at::kCUDA);
  REQUIRE(engine);
  CHECK(engine->name == "nccl");
  CHECK_THROWS_WITH(engine->factory({.name = "shard0"}),
                    doctest::Contains("the fake half was asked for shard0 and has its own registry: 1"));
  train::register_engine(at::kCUDA, "nccl", {});
  CHECK_FALSE(train::registered_engine(at::kCUDA));
  // The half's answer of attention by lengths is asked for its own kind of device.
  const auto three = torch::empty({1, 3, 2, 8}), four = torch::empty({1, 4, 2, 8});
  CHECK_FALSE(attends_by_length(three, three, three));
  CHECK(attends_by_length(on_cuda(three), three, three));
  CHECK_FALSE(attends_by_length(on_cuda(four), four, four));
  register_attention_by_length(at::kCUDA, nullptr);
  CHECK_FALSE(attends_by_length(on_cuda(three), three, three));
}

TEST_CASE("the real CUDA half brings kernels, hooks and NCCL into a program that was linked without them") {
  const auto half = from_environment("CUDA_HALF");
  if (half.empty()) return sealift::test::left_out("needs a LibTorch for CUDA");
  const auto add = [] { return c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor"); };
  CHECK_FALSE(add().hasKernelForDispatchKey(c10::DispatchKey::CUDA));
  REQUIRE(load_cuda(half) == "");
  CHECK(add().hasKernelForDispatchKey(c10::DispatchKey::CUDA));
  CHECK(at::detail::getCUDAHooks().hasCUDART());
  const auto cudnn = find_cudnn();
  CHECK(cudnn.loaded >= cudnn.built);
  CHECK(cudnn.loaded >= 90000);
  CHECK(cudnn.library.find("libcudnn.so") != std::string::npos);
  CHECK(train::registered_engine(at::kCUDA));
  // The CPU goes on as before.
  auto weight = torch::ones({3}, torch::requires_grad());
  (weight * 2).sum().backward();
  CHECK(weight.grad().equal(torch::full({3}, 2.0f)));
}
