// SPDX-License-Identifier: Apache-2.0
// The bodies of flat_param.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/device.hpp>
#include <sealift/train/flat/flat_param.hpp>

namespace sealift::train {

SEALIFT_BODY FlatParam::FlatParam(std::vector<NamedTensor> parameters, Groups groups, Options options, Source* source)
    : parameters_(std::move(parameters)), groups_(std::move(groups)), options_(std::move(options)) {
  at::NoGradGuard no_grad;
  std::vector<std::vector<std::int64_t>> shapes;
  for (const auto& [name, tensor] : parameters_) shapes.push_back(tensor.sizes().vec());
  layout_ = make_flat_layout(shapes, groups_.mesh.shard, alignment_of(options_.stored));
  if (options_.reshard_group > 1) group_ = groups_.subgroup(options_.reshard_group);

  const auto& first = parameters_.front().tensor;
  const auto own = torch::dtype(first.scalar_type()).device(device_for(first, groups_));
  const auto host = own.device(at::kCPU).pinned_memory(options_.pin_memory && is_accelerator(own.device()));
  if (is_stored()) {
    store(source, own, host);
  } else {
    shard_ = torch::zeros({layout_.shard_numel}, options_.on_host ? host : own);
    first_values(shard_, source, own);
    codec_ = make_codec(options_.gather, first.scalar_type());
  }

  whole_ = detail::flat_without_memory(layout_.padded_numel(),
                                       own.dtype(options_.compute_dtype.value_or(first.scalar_type())));
  if (options_.on_host && !whole_.is_cpu()) streams_ = std::make_unique<SideStreams>(whole_.device());
  guard_ = detail::guard_storage(whole_.device(), whole_.nbytes(),
                                 "the parameters of unit '" + options_.unit +
                                     "' are sharded and hold values only while their unit runs forward or backward; "
                                     "to read them, keep `const auto whole = parallel.gather_parameters();` alive; to "
                                     "train them, make the optimizer from Parallel::shards()");
  for (std::size_t i = 0; i < size(); ++i) {
    auto& parameter = parameters_[i].tensor;
    detail::replace_data(parameter, view(whole_, i));
    auto leaf = is_stored() ? torch::empty({0}, own)
                            : layout_.fragment_of(shard_, i, groups_.shard.rank(), parameter.sizes()).detach();
    fragments_.push_back({parameters_[i].name, leaf.set_requires_grad(parameter.requires_grad())});
  }
  release();
}

SEALIFT_BODY void FlatParam::start_unshard() {
  if (!has_memory()) gather();
}

SEALIFT_BODY void FlatParam::start_unshard(std::int64_t epoch) {
  if (has_memory() && epoch_ == epoch) return;
  if (residence_ == Residence::Gathering) finish_unshard();
  if (residence_ == Residence::GroupSharded && epoch_ != epoch) reshard();
  gather();
  epoch_ = epoch;
}

SEALIFT_BODY void FlatParam::finish_unshard() {
  if (residence_ != Residence::Gathering) return;
  {
    const ObservedScope waiting(*groups_.observers, Activity::GatherWait, options_.label);
    ticket_.wait();
    if (streams_) streams_->wait(SideStreams::Current, std::exchange(arrived_, nullptr));
  }
  groups_.observers->end(Activity::Gather, options_.label);
  source_.reset();
  if (const auto messages = std::exchange(messages_, {}); messages.defined()) {
    codec_->decode(whole_, messages, layout_.shards);
  }
  residence_ = Residence::Unsharded;
}

SEALIFT_BODY void FlatParam::unshard() {
  start_unshard();
  finish_unshard();
}

SEALIFT_BODY void FlatParam::unshard(std::int64_t epoch) {
  start_unshard(epoch);
  finish_unshard();
}

SEALIFT_BODY void FlatParam::reshard() {
  if (residence_ == Residence::Gathering) finish_unshard();
  if (residence_ == Residence::Unsharded) release();
  source_.reset();
  residence_ = Residence::Sharded;
}

SEALIFT_BODY void FlatParam::reshard_to_group() {
  if (residence_ != Residence::Unsharded) return;
  if (group_.size() == 1) return reshard();  // a replicated unit: nobody to gather from
  const auto numel = layout_.padded_numel() / group_.size();
  const auto mine = whole_.narrow(0, group_.rank() * numel, numel);
  const detail::UseBuffers use(options_.memory);
  source_ = options_.memory ? detail::flat_buffer(numel, mine.options()).copy_(mine) : mine.clone();
  release();
  residence_ = Residence::GroupSharded;
}

SEALIFT_BODY void FlatParam::first_values(const at::Tensor& shard, Source* source, const at::TensorOptions& own) {
  if (!source && options_.broadcast && groups_.world.size() > 1) {
    detail::receive_shard(shard, parameters_, layout_, groups_, own, options_.unit);
  } else {
    detail::fill_shard(shard, parameters_, layout_, groups_.shard.rank(), source);
  }
}

SEALIFT_BODY void FlatParam::store(Source* source, const at::TensorOptions& own, const at::TensorOptions& host) {
  at::Tensor shard;
  if (!source) first_values(shard = torch::zeros({layout_.shard_numel}, own), nullptr, own);
  const auto read = [&](std::size_t index, std::int64_t begin, at::Tensor out) {
    const auto part = layout_.fragment(index, groups_.shard.rank());
    const auto& [name, tensor] = parameters_[index];
    source ? source->read(name, tensor.sizes(), begin, out)
           : static_cast<void>(out.copy_(shard.narrow(0, part.in_shard + begin - part.in_parameter, out.numel())));
  };
  const auto codec = make_stored_codec(options_.stored);
  shard_ = codec->store(layout_, read, own, groups_, options_.unit);
  if (options_.on_host) shard_ = torch::empty_like(shard_, host.dtype(at::kByte)).copy_(shard_);
  codec_ = codec;
}

SEALIFT_BODY at::Tensor FlatParam::view(const at::Tensor& whole, std::size_t index) const {
  return layout_.view_of(whole, index, parameters_[index].tensor.sizes());
}

SEALIFT_BODY void FlatParam::gather() {
  at::NoGradGuard no_grad;
  const detail::UseBuffers use(options_.memory);
  version_ = shard_._version();
  groups_.observers->begin(Activity::Gather, options_.label);
  if (!has_memory()) refill();
  if (residence_ == Residence::GroupSharded) {
    ticket_ = group_.all_gather(whole_, source_, options_.unit);
  } else if (streams_) {
    // The whole's memory may be in use until now; from here on nothing that computes waits for the host.
    streams_->wait(SideStreams::In, streams_->mark(SideStreams::Current));
    streams_->run(SideStreams::In, [&] { gather_from(shard_.to(whole_.device(), /*non_blocking=*/true)); });
    arrived_ = streams_->mark(SideStreams::In);
  } else {
    gather_from(shard_);
  }
  residence_ = Residence::Gathering;
}

SEALIFT_BODY void FlatParam::gather_from(const at::Tensor& shard) {
  if (layout_.shards == 1) {
    is_stored() ? codec_->decode(whole_, shard, 1) : static_cast<void>(whole_.copy_(shard, /*non_blocking=*/true));
    return;
  }
  source_ = codec_->encode(shard, whole_.options());
  if (!codec_->is_whole()) messages_ = detail::flat_buffer(source_.numel() * layout_.shards, source_.options());
  ticket_ = groups_.shard.all_gather(messages_.defined() ? messages_ : whole_, source_, options_.unit);
}

SEALIFT_BODY void FlatParam::release() {
  auto* storage = whole_.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(at::DataPtr(nullptr, storage->device()));
  storage->set_nbytes(0);
  point_parameters_to(guard_);
}

SEALIFT_BODY void FlatParam::refill() {
  const c10::DeviceGuard on(whole_.device());  // an allocator takes the current one
  auto* storage = whole_.storage().unsafeGetStorageImpl();
  const auto bytes = static_cast<std::size_t>(whole_.numel()) * whole_.element_size();
  storage->set_data_ptr_noswap(options_.memory ? options_.memory->take(bytes, whole_.device())
                                               : storage->allocator()->allocate(bytes));
  storage->set_nbytes(bytes);
  point_parameters_to(whole_.storage());
}

SEALIFT_BODY void FlatParam::point_parameters_to(const c10::Storage& storage) {
  for (auto& [name, parameter] : parameters_) parameter.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
}

}  // namespace sealift::train
