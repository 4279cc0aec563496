// SPDX-License-Identifier: Apache-2.0
// The made devices as c10 sees them: which is current, their streams and events, generators and page-locked memory.
#include "tests/train/made_device/allocator.hpp"
#include "tests/train/made_device/fused_kernels.hpp"
#include "tests/train/made_device/kernels.hpp"
#include "tests/train/made_device/made_device.hpp"
#include "tests/train/made_device/memory.hpp"
#include "tests/train/made_device/streams.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/torch.h>

#include <array>
#include <cstring>
#include <mutex>

namespace sealift::test::made {

namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device to) const override {
    const auto before = getDevice();
    setDevice(to);
    return before;
  }
  c10::Device getDevice() const override { return {kType, current_device()}; }
  void setDevice(c10::Device to) const override {
    TORCH_CHECK(to.index() >= -1 && to.index() < kDevices, "there is no device ", to);
    if (to.has_index()) current_device() = to.index();
  }
  void uncheckedSetDevice(c10::Device to) const noexcept override {
    if (to.has_index()) current_device() = to.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }

  c10::Stream getStream(c10::Device on) const override { return stream(on, current_stream(index(on))); }
  c10::Stream getDefaultStream(c10::Device on) const override { return stream(on, 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device on, bool) const override {
    return stream(on, next_stream(index(on)));
  }
  c10::Stream getNewStream(c10::Device on, int) const override { return stream(on, next_stream(index(on))); }
  c10::Stream exchangeStream(c10::Stream to) const override {
    return stream(to.device(), std::exchange(current_stream(to.device_index()), to.id()));
  }

  void record(void** event, const c10::Stream& at, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (!*event) *event = new Mark;
    *static_cast<Mark*>(*event) = made::record(queue(at.device_index(), at.id()));
  }
  void block(void* event, const c10::Stream& waiting) const override {
    if (event) made::block(queue(waiting.device_index(), waiting.id()), *static_cast<Mark*>(event));
  }
  bool queryEvent(void* event) const override { return !event || static_cast<Mark*>(event)->has_passed(); }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<Mark*>(event); }
  void synchronizeEvent(void* event) const override {
    if (event) made::synchronize(*static_cast<Mark*>(event));
  }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const override {
    const auto& begin = *static_cast<Mark*>(from);
    const auto& end = *static_cast<Mark*>(to);
    made::synchronize(begin);
    made::synchronize(end);
    return std::chrono::duration<double, std::milli>(*end.when - *begin.when).count();
  }

  bool queryStream(const c10::Stream& asked) const override {
    auto& of = queue(asked.device_index(), asked.id());
    return of.is_done(of.pushed());
  }
  void synchronizeStream(const c10::Stream& waited) const override {
    made::synchronize(queue(waited.device_index(), waited.id()));
  }
  void synchronizeDevice(const c10::DeviceIndex waited) const override { made::synchronize(waited); }
  void recordDataPtrOnStream(const c10::DataPtr& memory, const c10::Stream& by) const override {
    record_stream(memory, by);
  }

 private:
  static std::int8_t index(c10::Device of) { return of.has_index() ? of.index() : current_device(); }
  static c10::Stream stream(c10::Device on, std::int64_t id) {
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kType, index(on)), id);
  }
};

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  Hooks() {
    for (auto& generator : generators_) generator = at::detail::createCPUGenerator(0);
  }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(c10::DeviceIndex to) const override { current_device() = to; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex to) const override { return std::exchange(current_device(), to); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex to) const override { return exchangeDevice(to); }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return generators_.at(static_cast<std::size_t>(index < 0 ? current_device() : index));
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return at::detail::createCPUGenerator(); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  bool isPinnedPtr(const void* address) const override { return is_pinned(address); }
  at::Device getDeviceFromPtr(void*) const override { return {kType, current_device()}; }

  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    auto* impl = storage.unsafeGetStorageImpl();
    const c10::DeviceGuard on(impl->device());
    auto memory = device_allocator().allocate(bytes);
    if (const auto kept = std::min(bytes, storage.nbytes()); kept > 0 && storage.data()) {
      device_allocator().copy_data(memory.mutable_get(), storage.data(), kept);
    }
    impl->set_data_ptr_noswap(std::move(memory));
    impl->set_nbytes(bytes);
  }

 private:
  std::array<at::Generator, kDevices> generators_;
};

}  // namespace

void install() {
  static const bool done = [] {
    c10::register_privateuse1_backend("made");
    static Guard guard;
    const c10::impl::DeviceGuardImplRegistrar registrar(kType, &guard);
    c10::SetAllocator(kType, &device_allocator());
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    register_kernels();
    register_fused_kernels();
    register_by_length_kernels();
    register_autocast();
    return true;
  }();
  static_cast<void>(done);
}

c10::Device device(std::int64_t index) {
  TORCH_CHECK(index >= 0 && index < kDevices, "there is no made device ", index, "; there are ",
              static_cast<int>(kDevices));
  return {kType, static_cast<c10::DeviceIndex>(index)};
}

std::int64_t bytes_in_use(c10::Device device) {
  return bytes_in_use(device.index());
}

void synchronize(c10::Device device) {
  synchronize(device.index());
}

Hold::Hold(c10::Device device) {
  current_queue(device.index()).push([released = released_] { released->get_future().wait(); });
}

void Hold::release() {
  if (const auto released = std::exchange(released_, nullptr)) released->set_value();
}

}  // namespace sealift::test::made
