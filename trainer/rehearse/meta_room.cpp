// SPDX-License-Identifier: Apache-2.0
// See meta_room.hpp. The allocator, the streams that are always done, and the operators: each computes shapes only.
// The operators are registered for the life of a room, so that a meta tensor elsewhere stays what LibTorch says it is.
// What an operator returns has the shape, dtype and strides of the device's kernel, since these are what costs bytes.
#include "trainer/rehearse/meta_room.hpp"

#include <ATen/ExpandUtils.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <array>
#include <atomic>
#include <cmath>
#include <tuple>

namespace sealift::trainer {
namespace {

/// Counts what is allocated on the meta device.
class CountingMeta final : public c10::Allocator {
 public:
  std::atomic<std::int64_t> live = 0, peak = 0;
  std::int64_t capacity = 0;
  std::function<std::string()> doing;

  c10::DataPtr allocate(std::size_t size) override {
    const auto bytes = static_cast<std::int64_t>(size);
    if (bytes == 0) return {nullptr, MetaRoom::device()};
    check(bytes);
    const auto now = live += bytes;
    for (auto seen = peak.load(); now > seen && !peak.compare_exchange_weak(seen, now);) {
    }
    return {nullptr, new Block{this, bytes}, &release, MetaRoom::device()};
  }
  void copy_data(void*, const void*, std::size_t) const override {}

 private:
  struct Block {
    CountingMeta* owner;
    std::int64_t bytes;
  };

  static void release(void* context) {
    const std::unique_ptr<Block> block(static_cast<Block*>(context));
    block->owner->live -= block->bytes;
  }

  void check(std::int64_t bytes) const {
    if (capacity == 0 || live + bytes <= capacity) return;
    const auto gib = [](std::int64_t n) { return static_cast<double>(n) / (1 << 30); };
    TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: tried to allocate ", gib(bytes), " GiB with ", gib(live),
                     " of ", gib(capacity), " GiB taken, in ", doing ? doing() : "the program",
                     "; use smaller units, more ranks that shard, fewer tokens at a time or offload");
  }
};

/// The meta device's streams and events: whatever is issued is done.
struct MetaStreams final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::Meta> {
  using Stream = c10::Stream;
  static Stream stream() { return Stream(Stream::DEFAULT, MetaRoom::device()); }

  c10::Device exchangeDevice(c10::Device) const override { return MetaRoom::device(); }
  c10::Device getDevice() const override { return MetaRoom::device(); }
  Stream getStream(c10::Device) const noexcept override { return stream(); }
  Stream getDefaultStream(c10::Device) const override { return stream(); }
  Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(); }
  Stream getNewStream(c10::Device, int) const override { return stream(); }
  Stream exchangeStream(Stream) const noexcept override { return stream(); }
  void record(void**, const Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
};

// Operators. Where values decide, those of a rank that agrees with the others and whose tokens all count.

bool equal(const at::Tensor& one, const at::Tensor& other) {
  return one.sizes() == other.sizes();
}

at::Scalar local_scalar(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kBool) return true;
  return tensor.is_floating_point() ? at::Scalar(1.0) : at::Scalar(std::int64_t{1});
}

/// The least or the most of all elements.
at::Tensor extreme(const at::Tensor& tensor) {
  return at::empty({}, tensor.options());
}

at::Tensor nonzero(const at::Tensor& tensor) {
  return at::empty({tensor.numel(), tensor.dim()}, tensor.options().dtype(at::kLong));
}

/// LibTorch registers this one for the device, and then looks for a kernel that computes values.
at::Tensor& arange(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  const auto size = std::ceil((end.toDouble() - start.toDouble()) / step.toDouble());
  out.resize_({static_cast<std::int64_t>(size)});
  return out;
}

at::Tensor& absolute(const at::Tensor& tensor, at::Tensor& out) {
  if (out.sizes() != tensor.sizes()) out.resize_(tensor.sizes());
  return out;
}

at::Tensor& logical_and(const at::Tensor& one, const at::Tensor& other, at::Tensor& out) {
  const auto sizes = at::infer_size(one.sizes(), other.sizes());
  if (out.sizes() != at::IntArrayRef(sizes)) out.resize_(sizes);
  return out;
}

at::Tensor index_select(const at::Tensor& tensor, std::int64_t dim, const at::Tensor& index) {
  auto sizes = tensor.sizes().vec();
  sizes[static_cast<std::size_t>(c10::maybe_wrap_dim(dim, tensor.dim()))] = index.numel();
  return at::empty(sizes, tensor.options());
}

at::Tensor bucketize(const at::Tensor& tensor, const at::Tensor&, bool as_int32, bool) {
  return at::empty(tensor.sizes(), tensor.options().dtype(as_int32 ? at::kInt : at::kLong));
}

at::Tensor where(const at::Tensor& condition, const at::Tensor& one, const at::Tensor& other) {
  const auto sizes = at::infer_size(condition.sizes(), at::infer_size(one.sizes(), other.sizes()));
  return at::empty(sizes, condition.options().dtype(at::result_type(one, other)));
}

at::Tensor embedding_backward(const at::Tensor& gradient, const at::Tensor&, c10::SymInt rows, c10::SymInt, bool) {
  return at::empty({rows.expect_int(), gradient.size(-1)}, gradient.options());
}

at::Tensor repeat_interleave(const at::Tensor& repeats, std::optional<c10::SymInt> size) {
  TORCH_CHECK(size, "repeat_interleave in a rehearsal needs its output's size, since there are no values");
  return at::empty({size->expect_int()}, repeats.options());
}

void fused_adamw(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList, double,
                 double, double, double, double, bool, bool, const std::optional<at::Tensor>&,
                 const std::optional<at::Tensor>&) {}

std::vector<at::Tensor> foreach_norm(at::TensorList tensors, const at::Scalar&, std::optional<at::ScalarType> dtype) {
  std::vector<at::Tensor> norms;
  for (const auto& tensor : tensors) {
    norms.push_back(at::empty({}, tensor.options().dtype(dtype.value_or(tensor.scalar_type()))));
  }
  return norms;
}

/// [rows, a] x [groups, a, b] -> [rows, b]; [a, rows] x [rows, b] -> [groups, a, b], the groups those of `ends`.
at::Tensor grouped_mm(const at::Tensor& x, const at::Tensor& y, const std::optional<at::Tensor>& ends,
                      const std::optional<at::Tensor>&, std::optional<at::ScalarType> dtype) {
  const auto options = x.options().dtype(dtype.value_or(x.scalar_type()));
  if (x.dim() == 2 && y.dim() == 2) return at::empty({ends.value().numel(), x.size(0), y.size(1)}, options);
  if (x.dim() == 2) return at::empty({x.size(0), y.size(2)}, options);
  return at::empty({x.size(0), x.size(1), y.size(-1)}, options);
}

/// [batch, heads, time, head_dim] in the memory order [batch, time, heads, head_dim], as flash kernels make it.
at::Tensor by_time(const at::Tensor& like) {
  return at::empty({like.size(0), like.size(2), like.size(1), like.size(3)}, like.options()).transpose(1, 2);
}

std::tuple<at::Tensor, at::Tensor> attention(const at::Tensor& query, const at::Tensor&, const at::Tensor&, double,
                                             bool, const std::optional<at::Tensor>&, std::optional<double>) {
  const auto sums = at::empty({query.size(0), query.size(1), query.size(2)}, query.options().dtype(at::kFloat));
  return {by_time(query), sums};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_backward(const at::Tensor&, const at::Tensor& query,
                                                                  const at::Tensor& key, const at::Tensor& value,
                                                                  const at::Tensor&, const at::Tensor&, double, bool,
                                                                  const std::optional<at::Tensor>&,
                                                                  std::optional<double>) {
  return {by_time(query), by_time(key), by_time(value)};
}

/// Flash attention, which LibTorch would not choose for a device that it does not know.
at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const std::optional<at::Tensor>& mask, double dropout, bool is_causal, std::optional<double> scale,
                  bool) {
  return std::get<0>(
      at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout, is_causal, mask, scale));
}

std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& input, at::IntArrayRef shape,
                                            const std::optional<at::Tensor>&, std::optional<double>) {
  auto rows = input.sizes().vec();
  std::fill(rows.end() - static_cast<std::ptrdiff_t>(shape.size()), rows.end(), 1);
  return {at::empty(input.sizes(), input.options()), at::empty(rows, input.options().dtype(at::kFloat))};
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor&, const at::Tensor& input, at::IntArrayRef,
                                                     const at::Tensor&, const std::optional<at::Tensor>& weight,
                                                     std::array<bool, 2> wanted) {
  std::tuple<at::Tensor, at::Tensor> gradients;
  if (wanted[0]) std::get<0>(gradients) = at::empty(input.sizes(), input.options());
  if (wanted[1] && weight) std::get<1>(gradients) = at::empty_like(*weight);
  return gradients;
}

void add_operators(torch::Library& meta, Imitated imitated) {
  meta.impl("equal", TORCH_FN(equal));
  meta.impl("_local_scalar_dense", TORCH_FN(local_scalar));
  meta.impl("min", TORCH_FN(extreme));
  meta.impl("max", TORCH_FN(extreme));
  meta.impl("nonzero", TORCH_FN(nonzero));
  meta.impl("arange.start_out", TORCH_FN(arange));
  meta.impl("abs.out", TORCH_FN(absolute));
  meta.impl("logical_and.out", TORCH_FN(logical_and));
  meta.impl("index_select", TORCH_FN(index_select));
  meta.impl("bucketize.Tensor", TORCH_FN(bucketize));
  meta.impl("where.self", TORCH_FN(where));
  meta.impl("embedding_dense_backward", TORCH_FN(embedding_backward));
  meta.impl("repeat_interleave.Tensor", TORCH_FN(repeat_interleave));
  meta.impl("_fused_adamw_", TORCH_FN(fused_adamw));
  meta.impl("_foreach_norm.Scalar", TORCH_FN(foreach_norm));
  meta.impl("_grouped_mm", TORCH_FN(grouped_mm));
  meta.impl("_scaled_dot_product_flash_attention_for_cpu", TORCH_FN(attention));
  meta.impl("_scaled_dot_product_flash_attention_for_cpu_backward", TORCH_FN(attention_backward));
  meta.impl("scaled_dot_product_attention", TORCH_FN(attend));
  if (imitated == Imitated::Cpu) return;  // there it is made of small operators
  meta.impl("_fused_rms_norm", TORCH_FN(rms_norm));
  meta.impl("_fused_rms_norm_backward", TORCH_FN(rms_norm_backward));
}

/// One for the process: blocks that outlive a room still give their bytes back to it.
CountingMeta& counting() {
  static auto* allocator = new CountingMeta;
  return *allocator;
}

constexpr auto kMetaIndex = static_cast<std::size_t>(c10::DeviceType::Meta);

}  // namespace

struct MetaRoom::Parts {
  torch::Library meta{torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__};
  torch::Library autograd{torch::Library::IMPL, "aten", c10::DispatchKey::AutogradMeta, __FILE__, __LINE__};
  MetaStreams streams;
  c10::Allocator* allocator_before = c10::GetAllocator(c10::kMeta);
  const c10::impl::DeviceGuardImplInterface* streams_before = c10::impl::device_guard_impl_registry[kMetaIndex].load();
  std::int64_t base = 0;
};

MetaRoom::MetaRoom(Imitated imitated, std::int64_t capacity, std::function<std::string()> doing)
    : parts_(std::make_unique<Parts>()) {
  TORCH_CHECK(parts_->allocator_before != &counting(),
              "a rehearsal runs in this process already; start another process");
  add_operators(parts_->meta, imitated);
  parts_->autograd.impl("scaled_dot_product_attention", TORCH_FN(attend));
  counting().doing = std::move(doing);
  parts_->base = counting().live;
  counting().capacity = capacity > 0 ? parts_->base + capacity : 0;
  counting().peak = parts_->base;
  c10::SetAllocator(c10::kMeta, &counting());
  c10::impl::device_guard_impl_registry[kMetaIndex].store(&parts_->streams);
}

MetaRoom::~MetaRoom() {
  c10::SetAllocator(c10::kMeta, parts_->allocator_before);
  c10::impl::device_guard_impl_registry[kMetaIndex].store(parts_->streams_before);
  counting().capacity = 0;
  counting().doing = {};
}

std::int64_t MetaRoom::live() const {
  return counting().live - parts_->base;
}

std::int64_t MetaRoom::take_peak() {
  return counting().peak.exchange(counting().live.load()) - parts_->base;
}

}  // namespace sealift::trainer
