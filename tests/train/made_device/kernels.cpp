// SPDX-License-Identifier: Apache-2.0
#include "tests/train/made_device/kernels.hpp"

#include "tests/train/made_device/allocator.hpp"
#include "tests/train/made_device/made_device.hpp"
#include "tests/train/made_device/memory.hpp"
#include "tests/train/made_device/streams.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace sealift::test::made {

namespace {

// ---- what is counted

std::mutex counts_mutex;
Counts counted;

void count_wait(const std::string& operation) {
  const std::lock_guard lock(counts_mutex);
  ++counted.waits[operation];
}

// ---- tensors as kernels see them

bool is_made(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::DeviceType::PrivateUse1;
}

at::Tensor on_meta(const at::Tensor& tensor) {
  auto meta = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) meta.unsafeGetTensorImpl()->set_wrapped_number(true);
  return meta;
}

at::Tensor zeros_on_host(const at::Tensor& tensor) {
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU)).zero_();
}

at::Tensor new_tensor(const at::Tensor& like, c10::Device device) {
  const c10::DeviceGuard on(device);
  return at::empty_strided(like.sizes(), like.strides(), like.options().device(device));
}

/// Applies `change` to each tensor in `value`, in lists too.
template <class Change>
c10::IValue changed(const c10::IValue& value, const Change& change) {
  if (value.isTensor()) return change(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> all;
    for (const at::Tensor& each : value.toTensorVector()) all.push_back(change(each));
    return all;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> all;
    for (const auto& each : value.toOptionalTensorVector()) {
      all.push_back(each ? std::optional(change(*each)) : std::nullopt);
    }
    return all;
  }
  return value;
}

template <class Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  changed(value, [&](const at::Tensor& tensor) {
    if (tensor.defined()) visit(tensor);
    return tensor;
  });
}

// ---- one operation

/// A call that reached the device: its arguments as the program gave them, and what it becomes.
class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack* stack)
      : op_(op),
        name_(op.schema().operator_name().name.substr(6)),
        arguments_(torch::jit::pop(*stack, argument_count())) {
    for (const auto& argument : arguments_) {
      for_each_tensor(argument, [&](const at::Tensor& tensor) {
        if (!is_made(tensor)) return;
        if (!device_) device_ = tensor.device();
        bytes_ += static_cast<std::int64_t>(tensor.nbytes());
      });
      if (!device_ && argument.isDevice()) device_ = argument.toDevice();
    }
    if (!device_) device_ = c10::Device(c10::DeviceType::PrivateUse1, current_device());
  }

  void run(torch::jit::Stack* stack) {
    const c10::DeviceGuard on(*device_);
    std::optional<torch::jit::Stack> shapes;
    if (!needs_value()) shapes = ask(on_meta, c10::Device(at::kMeta));
    // Some kernels know no meta device. Their shapes are the shapes of zeros.
    if (!needs_value() && !shapes && !depends_on_values()) shapes = ask(zeros_on_host, c10::Device(at::kCPU));
    auto results = shapes ? queued(std::move(*shapes)) : at_once();
    for (const auto& result : results) {
      for_each_tensor(result, [&](const at::Tensor& tensor) { bytes_ += static_cast<std::int64_t>(tensor.nbytes()); });
    }
    count(name_, bytes_);
    for (auto& result : results) stack->push_back(std::move(result));
  }

 private:
  std::size_t argument_count() const { return op_.schema().arguments().size(); }

  /// Whether a result is no tensor, so that the host has to wait for it.
  bool needs_value() const {
    for (const auto& each : op_.schema().returns()) {
      const auto kind = each.type()->kind();
      if (kind != c10::TypeKind::TensorType && kind != c10::TypeKind::ListType) return true;
    }
    return false;
  }

  /// Whether the shape of a result depends on values.
  bool depends_on_values() const {
    static const std::set<std::string> names{"nonzero",  "masked_select",      "_unique2",         "unique_dim",
                                             "bincount", "unique_consecutive", "repeat_interleave"};
    bool by_mask = false;
    for (const auto& argument : arguments_) {
      if (!argument.isOptionalTensorList()) continue;
      for_each_tensor(argument, [&](const at::Tensor& tensor) {
        by_mask = by_mask || tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte;
      });
    }
    return by_mask || names.contains(name_);
  }

  /// The results for stand-ins on `device` of the tensors; none where that device cannot tell.
  std::optional<torch::jit::Stack> ask(at::Tensor (*stand_in)(const at::Tensor&), c10::Device device) {
    stand_ins_.clear();
    torch::jit::Stack stack;
    for (const auto& argument : arguments_) {
      if (argument.isDevice()) {
        stack.emplace_back(device);
      } else if (argument.isGenerator()) {
        stack.emplace_back();
      } else {
        stack.push_back(changed(argument, [&](const at::Tensor& tensor) {
          if (!is_made(tensor)) return tensor;
          auto [place, is_new] = stand_ins_.try_emplace(tensor.unsafeGetTensorImpl());
          if (is_new) place->second = stand_in(tensor);
          return place->second;
        }));
      }
    }
    try {
      call_cpu(op_, stack);
    } catch (const c10::Error&) {
      return {};  // no such kernel, or the call is wrong: then the CPU's says how
    }
    return stack;
  }

  /// The arguments as the CPU's kernel takes them.
  torch::jit::Stack for_cpu() const {
    torch::jit::Stack stack;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const auto& argument = arguments_[i];
      if (argument.isDevice()) {
        stack.emplace_back(c10::Device(at::kCPU));
      } else if (takes_generator(i)) {
        stack.emplace_back(at::detail::createCPUGenerator(draw(argument)));
      } else {
        stack.push_back(changed(argument, [&](const at::Tensor& tensor) {
          return !tensor.defined() ? tensor : is_made(tensor) ? with_flags(for_task(tensor), tensor) : tensor.clone();
        }));
      }
    }
    return stack;
  }

  static at::Tensor with_flags(at::Tensor task, const at::Tensor& of) {
    if (of.unsafeGetTensorImpl()->is_wrapped_number()) task.unsafeGetTensorImpl()->set_wrapped_number(true);
    return task;
  }

  bool takes_generator(std::size_t i) const {
    return op_.schema().arguments()[i].type()->str().find("Generator") != std::string::npos;
  }

  /// A seed for one kernel, drawn on the host, as a card's generator moves on when a kernel is launched.
  std::uint64_t draw(const c10::IValue& given) const {
    auto generator = given.isGenerator() ? given.toGenerator() : at::globalContext().defaultGenerator(*device_);
    const std::lock_guard lock(generator.mutex());
    return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
  }

  /// The argument that result `i` is; none where it is new.
  std::optional<std::size_t> argument_of_result(std::size_t i) const {
    const auto* alias = op_.schema().returns()[i].alias_info();
    if (!alias) return {};
    for (std::size_t k = 0; k < argument_count(); ++k) {
      const auto* own = op_.schema().arguments()[k].alias_info();
      if (own && own->beforeSets() == alias->beforeSets()) return k;
    }
    return {};
  }

  /// Results that are arguments become these; others become new tensors of the shapes in `shapes`.
  torch::jit::Stack queued(torch::jit::Stack shapes) {
    for (const auto& argument : arguments_) for_each_tensor(argument, [&](const at::Tensor& t) { take_shape(t); });
    std::vector<c10::IValue> results;
    std::vector<std::pair<std::size_t, std::vector<at::Tensor>>> outputs;  // result, where its tensors go
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      if (const auto argument = argument_of_result(i)) {
        TORCH_CHECK(op_.schema().arguments()[*argument].alias_info()->isWrite(), name_,
                    " makes a view and has no kernel of its own on a made device; add one to kernels.cpp");
        results.push_back(arguments_[*argument]);
        continue;
      }
      std::vector<at::Tensor> places;
      results.push_back(changed(shapes[i], [&](const at::Tensor& shape) {
        if (!shape.defined()) return shape;
        auto made = new_tensor(shape, *device_);
        places.push_back(for_task(made));
        return made;
      }));
      outputs.emplace_back(i, std::move(places));
    }
    current_queue(device_->index()).push([op = op_, stack = for_cpu(), outputs = std::move(outputs)]() mutable {
      const at::AutoDispatchBelowAutograd no_autograd;
      call_cpu(op, stack);
      for (auto& [result, places] : outputs) {
        auto place = places.begin();
        for_each_tensor(stack[result], [&](const at::Tensor& tensor) { (place++)->copy_(tensor); });
      }
    });
    return results;
  }

  /// LibTorch returns several `out`s as references to arguments that it has dropped, so something must hold them.
  static void call_cpu(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const auto held = stack;
    op.callBoxed(&stack);
  }

  /// An `out` whose shape the operation has set.
  void take_shape(const at::Tensor& tensor) {
    const auto meta = stand_ins_.find(tensor.unsafeGetTensorImpl());
    if (meta == stand_ins_.end() || meta->second.sizes() == tensor.sizes()) return;
    tensor.resize_(meta->second.sizes());
    if (meta->second.strides() != tensor.strides()) tensor.as_strided_(meta->second.sizes(), meta->second.strides());
  }

  torch::jit::Stack at_once() {
    count_wait(name_);
    made::synchronize(current_queue(device_->index()));
    auto stack = for_cpu();
    const auto given = stack;
    {
      const at::AutoDispatchBelowAutograd no_autograd;
      call_cpu(op_, stack);
    }
    for (std::size_t i = 0; i < arguments_.size(); ++i) {  // an `out` whose shape was set
      if (!arguments_[i].isTensor() || !is_made(arguments_[i].toTensor())) continue;
      const auto own = arguments_[i].toTensor(), task = given[i].toTensor();
      if (own.sizes() == task.sizes()) continue;
      own.resize_(task.sizes());
      made::synchronize(current_queue(device_->index()));
      for_task(own).copy_(task);
    }
    std::vector<c10::IValue> results;
    for (std::size_t i = 0; i < stack.size(); ++i) {
      if (const auto argument = argument_of_result(i)) {
        results.push_back(arguments_[*argument]);
        continue;
      }
      results.push_back(changed(stack[i], [&](const at::Tensor& tensor) {
        if (!tensor.defined()) return tensor;
        auto made = new_tensor(tensor, *device_);
        made::synchronize(current_queue(device_->index()));  // the memory was being filled
        for_task(made).copy_(tensor);
        return made;
      }));
    }
    return results;
  }

  c10::OperatorHandle op_;
  std::string name_;
  std::vector<c10::IValue> arguments_;
  std::optional<c10::Device> device_;
  std::map<c10::TensorImpl*, at::Tensor> stand_ins_;
  std::int64_t bytes_ = 0;
};

void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Call(op, stack).run(stack);
}

// ---- memory, views and copies

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<c10::Layout>,
                 std::optional<c10::Device> device, std::optional<bool>, std::optional<c10::MemoryFormat> format) {
  const c10::OptionalDeviceGuard on(device);
  return at::detail::empty_generic(size, &device_allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<c10::Layout>, std::optional<c10::Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard on(device);
  return at::detail::empty_strided_generic(size, stride, &device_allocator(),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

const at::Tensor& resize(const at::Tensor& self, c10::IntArrayRef size, std::optional<c10::MemoryFormat>) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  const auto bytes = static_cast<std::size_t>(self.numel() + self.storage_offset()) * self.element_size();
  if (self.storage().nbytes() < bytes) at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(self.storage(), bytes);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, c10::Storage storage, std::int64_t offset, c10::IntArrayRef size,
                        c10::IntArrayRef stride) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_storage_offset(offset);
  stride.empty() && !size.empty() ? impl->set_sizes_contiguous(size) : impl->set_sizes_and_strides(size, stride);
  return self;
}

at::Tensor& set_whole(at::Tensor& self, c10::Storage storage) {
  const auto n = static_cast<std::int64_t>(storage.nbytes() / self.element_size());
  return set_storage(self, std::move(storage), 0, {n}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor as_strided(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride,
                      std::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::native::as_strided_tensorimpl(self, size, stride, self.storage_offset());
}

at::Tensor view(const at::Tensor& self, c10::IntArrayRef size) {
  return at::native::view(self, size);
}

at::Tensor unfold(const at::Tensor& self, std::int64_t dim, std::int64_t size, std::int64_t step) {
  return at::native::unfold(self, dim, size, step);
}

/// Queues the copy on the current stream of the device, and waits where one must: a page-locked tensor is read when the
/// stream comes to it.
at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  const auto device = is_made(dst) ? dst.device() : self.device();
  const c10::DeviceGuard on(device);
  auto& stream = current_queue(device.index());
  const bool in = !is_made(self), out = !is_made(dst);
  const auto& host = in ? self : dst;
  const bool later = (!in && !out) || (non_blocking && is_pinned(host.storage().data()));
  auto from = in ? (later ? self : self.clone()) : for_task(self);
  auto to = out ? dst : for_task(dst);
  count("copy_", static_cast<std::int64_t>(self.nbytes() + dst.nbytes()));
  {
    const std::lock_guard lock(counts_mutex);
    counted.copies_in += in;
    counted.copies_out += out;
  }
  if (!in && !out && self.device() != dst.device()) block(stream, record(current_queue(self.device().index())));
  stream.push([from, to] {
    const at::AutoDispatchBelowAutograd no_autograd;
    to.copy_(from);
  });
  if (out && !later) {
    count_wait("copy_ to the host");
    made::synchronize(stream);
  }
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

at::Scalar item(const at::Tensor& self) {
  count_wait("item");
  made::synchronize(current_queue(self.device().index()));
  return for_task(self).item();
}

/// So that `Module::to` may put a device's tensor in the place of the host's; LibTorch knows its own kinds alone.
bool may_replace(const at::Tensor&, const at::Tensor&) {
  return true;
}

void record_use(at::Tensor& self, c10::Stream stream) {
  record_stream(self.storage().data_ptr(), stream);
}

}  // namespace

Counts counts() {
  const std::lock_guard lock(counts_mutex);
  return counted;
}

void reset_counts() {
  const std::lock_guard lock(counts_mutex);
  counted = {};
}

void count(const std::string& operation, std::int64_t bytes) {
  const std::lock_guard lock(counts_mutex);
  ++counted.operations;
  counted.bytes += bytes;
  ++counted.by_operation[operation];
}

at::Tensor for_task(const at::Tensor& tensor) {
  const auto options = at::TensorOptions(tensor.scalar_type()).device(at::kCPU);
  if (!tensor.storage().data()) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  auto* at = static_cast<char*>(for_kernels(tensor.storage().data())) +
             tensor.storage_offset() * static_cast<std::int64_t>(tensor.element_size());
  return at::from_blob(at, tensor.sizes(), tensor.strides(), options);
}

void register_kernels() {
  static torch::Library rest(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  rest.fallback(torch::CppFunction::makeFromBoxedFunction<&call>());

  static torch::Library own(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  own.impl("empty.memory_format", &empty);
  own.impl("empty_strided", &empty_strided);
  own.impl("resize_", &resize);
  own.impl("set_.source_Storage_storage_offset", &set_storage);
  own.impl("set_.source_Storage", &set_whole);
  own.impl("set_.source_Tensor", &set_tensor);
  own.impl("as_strided", &as_strided);
  own.impl("_reshape_alias", &reshape_alias);
  own.impl("view", &view);
  own.impl("unfold", &unfold);
  own.impl("_copy_from", &copy_from);
  own.impl("_copy_from_and_resize", &copy_from_and_resize);
  own.impl("_local_scalar_dense", &item);
  own.impl("_has_compatible_shallow_copy_type", &may_replace);
  own.impl("record_stream", &record_use);
  own.impl("silu_backward", torch::CppFunction::makeFromBoxedFunction<&call>());  // seven operations without
}

}  // namespace sealift::test::made
