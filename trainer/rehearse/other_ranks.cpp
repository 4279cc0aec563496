// SPDX-License-Identifier: Apache-2.0
// See other_ranks.hpp. A store that has every key of others, an engine for the host, an engine for the device.
// The watch, whose thread asks the store once a second, gets a store that does not count: time must not change a count.
#include "trainer/rehearse/other_ranks.hpp"

namespace sealift::trainer {
namespace {

using c10d::Work;
using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<Work>;

class DoneWork final : public Work {
 public:
  DoneWork() { finish(); }
  bool wait(std::chrono::milliseconds) override { return true; }
  void synchronize() override {}
};

WorkPtr done() {
  return c10::make_intrusive<DoneWork>();
}

std::int64_t nbytes(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

/// A store where this rank's keys are, and any key of another rank.
class MetStore final : public c10d::Store {
 public:
  MetStore(std::int64_t size, Limits limits, std::shared_ptr<Messages> messages)
      : size_(size), limits_(limits), messages_(std::move(messages)) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<MetStore>(size_, Limits{}, std::make_shared<Messages>());
  }
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override {
    const auto lock = begin_request();
    values_[key] = value;
  }
  std::vector<std::uint8_t> get(const std::string& key) override {
    const auto lock = begin_request();
    const auto found = values_.find(key);
    return found == values_.end() ? std::vector<std::uint8_t>{} : found->second;
  }
  std::int64_t add(const std::string& key, std::int64_t value) override {
    const auto lock = begin_request();
    return numbers_[key] += value;
  }
  bool deleteKey(const std::string& key) override {
    const auto lock = begin_request();
    return values_.erase(key) > 0;
  }
  std::int64_t getNumKeys() override { return static_cast<std::int64_t>(values_.size()); }

  /// Whether the store has answered the ranks that set `keys` before its time was over: rank R is the R-th.
  bool check(const std::vector<std::string>& keys) override {
    const auto lock = begin_request();
    return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
      if (values_.contains(key) || limits_.store_requests_a_second == 0) return values_.contains(key) || !gave_up_;
      const auto rank = static_cast<double>(std::atoll(key.substr(key.rfind('/') + 1).c_str()));
      return rank * static_cast<double>(own_at_wait_) <= answered_in_time();
    });
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, limits_.timeout); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    const auto lock = begin_request();
    messages_->awaited_keys += static_cast<std::int64_t>(keys.size());
    // Every rank has asked as much as this one; to answer a wait the store looks at each of its keys.
    own_at_wait_ = messages_->store_requests + messages_->awaited_keys;
    if (limits_.store_requests_a_second == 0) return;
    gave_up_ = static_cast<double>(own_at_wait_ * size_) > answered_in_time();
    if (gave_up_) C10_THROW_ERROR(DistStoreError, "wait timeout after the store's time was over");
  }

 private:
  std::unique_lock<std::mutex> begin_request() {
    std::unique_lock lock(mutex_);
    ++messages_->store_requests;
    return lock;
  }
  double answered_in_time() const {
    return limits_.store_requests_a_second * static_cast<double>(limits_.timeout.count()) / 1000;
  }

  const std::int64_t size_;
  const Limits limits_;
  std::shared_ptr<Messages> messages_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::uint8_t>> values_;
  std::map<std::string, std::int64_t> numbers_;
  std::int64_t own_at_wait_ = 0;
  bool gave_up_ = false;
};

/// In place of Gloo: a peer sends what this rank sends to it.
class HostEngine final : public c10d::Backend {
 public:
  HostEngine(int rank, int size, std::shared_ptr<Messages> messages, std::shared_ptr<IssuedLog> log)
      : Backend(rank, size), messages_(std::move(messages)), log_(std::move(log)) {
    messages_->host_peers += size - 1;
  }
  const std::string getBackendName() const override { return "rehearsed gloo"; }

  WorkPtr recv(Tensors& tensors, int peer, int /*tag*/) override {
    awaited_[peer] = tensors.at(0);
    return done();
  }
  WorkPtr send(Tensors& tensors, int peer, int tag) override {
    const auto& sent = tensors.at(0);
    messages_->host_messages += 1;
    messages_->host_bytes += nbytes(sent);
    const auto awaited = awaited_.find(peer);
    if (awaited != awaited_.end() && awaited->second.numel() == sent.numel()) awaited->second.copy_(sent);
    if (awaited != awaited_.end()) awaited_.erase(awaited);
    constexpr int kCheck = 1 << 30;  // the engine's mark of messages that compare labels
    if (tag != tag_ && (tag & kCheck) == 0) log_->add(nbytes(sent) * getSize());
    tag_ = tag;
    return done();
  }
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions&) override {
    at::NoGradGuard no_grad;
    log_->add(nbytes(tensors.at(0)));
    tensors[0].mul_(getSize());
    return done();
  }
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions&) override {
    log_->add(nbytes(tensors.at(0)));
    return done();
  }

 private:
  std::shared_ptr<Messages> messages_;
  std::shared_ptr<IssuedLog> log_;
  std::map<int, at::Tensor> awaited_;  ///< what was asked for, by peer
  int tag_ = -1;                       ///< of the last collective made of messages
};

/// In place of NCCL: nothing is sent, and everything is done.
class DeviceEngine final : public c10d::Backend {
 public:
  DeviceEngine(int rank, int size, std::shared_ptr<IssuedLog> log) : Backend(rank, size), log_(std::move(log)) {}
  const std::string getBackendName() const override { return "rehearsed nccl"; }
  void shutdown() override {}
  void abort() override {}

  WorkPtr _allgather_base(at::Tensor& whole, at::Tensor&, const c10d::AllgatherOptions&) override {
    return note(whole);
  }
  WorkPtr _reduce_scatter_base(at::Tensor&, at::Tensor& whole, const c10d::ReduceScatterOptions&) override {
    return note(whole);
  }
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions&) override { return note(tensors.at(0)); }
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions&) override { return note(tensors.at(0)); }
  WorkPtr alltoall_base(at::Tensor&, at::Tensor& in, std::vector<std::int64_t>&, std::vector<std::int64_t>&,
                        const c10d::AllToAllOptions&) override {
    return note(in);
  }

 private:
  WorkPtr note(const at::Tensor& whole) {
    log_->add(nbytes(whole));
    return done();
  }

  std::shared_ptr<IssuedLog> log_;
};

}  // namespace

void IssuedLog::add(std::int64_t bytes) {
  if (!watch_) return;
  const auto report = watch_->issued().report(0, {});
  for (const auto& [group, count] : report.count) {
    if (std::exchange(seen_[group], count) == count || group.ends_with(" check")) continue;
    all_.push_back({group, report.issued.at({group, count - 1}).text, bytes});
  }
}

OtherRanks::OtherRanks(std::int64_t rank, std::int64_t size, Limits limits)
    : rank_(rank), size_(size), limits_(limits) {
  TORCH_CHECK(size >= 1 && rank >= 0 && rank < size, "rank ", rank, " of ", size, "; expected a rank from 0 to ",
              size - 1);
}

train::World OtherRanks::world(at::Device device) const {
  train::World world{.rank = rank_, .size = size_, .timeout = limits_.timeout, .device = device};
  if (size_ > 1) world.store = c10::make_intrusive<MetStore>(size_, limits_, messages_);
  return world;
}

train::GroupOptions OtherRanks::group_options() {
  const auto host = [messages = messages_, log = log_](const train::Store&, int rank, int size) {
    return c10::make_intrusive<HostEngine>(rank, size, messages, log);
  };
  const auto device = [messages = messages_, log = log_, most = limits_.communicators](
                          const train::EngineRequest& request) -> c10::intrusive_ptr<c10d::Backend> {
    const auto number = ++messages->communicators;
    TORCH_CHECK(most == 0 || number <= most, "communicator ", number, " of a rank that may have ", most, ", for group ",
                request.name, "; use a mesh with fewer axes");
    return c10::make_intrusive<DeviceEngine>(request.rank, request.size, log);
  };
  return {.device_engine = device, .host_engine = host};
}

}  // namespace sealift::trainer
