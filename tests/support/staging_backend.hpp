// SPDX-License-Identifier: Apache-2.0
// Collectives of several ranks on one device: each tensor is copied to the host, Gloo works on it there, the result is
// copied back. For tests in NCCL's place, which refuses two ranks on one GPU; goes in by the core's factory of NCCL
// backends. To streams it is what NCCL is: it reads after what the issuing stream had queued, works on a stream of its
// own, and a wait makes the waiting stream wait. So what the core forgets to wait for or frees too early shows, the
// more so with a delay.
#pragma once

#include <sealift/train/comm/engines.hpp>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <thread>

namespace sealift::test {

/// A collective that was issued. Holds its tensors until it was waited for, as NCCL's work does.
class StagedWork final : public c10d::Work {
 public:
  StagedWork(int rank, c10d::OpType type, std::vector<at::Tensor> held)
      : Work(rank, type), device_(held.front().device()), held_(std::move(held)) {
    if (!device_.is_cpu()) done_.emplace(device_.type());
  }

  /// Done on the device too. From any thread.
  bool isCompleted() override { return Work::isCompleted() && (exception() || !done_ || done_->query()); }

  /// Returns once the copy back is queued and the current stream will wait for it; throws the collective's error. Not
  /// by the base's wait, which calls this one with its lock held.
  void synchronize() override {
    when_queued_.get();
    if (done_) done_->block(c10::impl::getDeviceGuardImpl(device_.type())->getStream(device_));
    held_.clear();
  }
  bool wait(std::chrono::milliseconds = kNoTimeout) override {
    synchronize();
    return true;
  }

  /// The worker: everything is queued on `stream`.
  void queued(const std::optional<c10::Stream>& stream) {
    if (done_) done_->record(*stream);
    finish();
    result_.set_value();
  }
  void failed(std::exception_ptr error) {
    finish(error);
    result_.set_exception(error);
  }

 private:
  at::Device device_;
  std::vector<at::Tensor> held_;
  std::optional<c10::Event> done_;
  std::promise<void> result_;
  std::shared_future<void> when_queued_ = result_.get_future().share();
};

/// Ranks on any device over Gloo. One worker thread and one stream per object, so its collectives run in the order of
/// issue.
class StagingBackend final : public c10d::Backend {
 public:
  /// `delay` is called before each copy with the backend's stream as the current one: on a GPU it may queue a sleep.
  StagingBackend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, std::chrono::milliseconds timeout,
                 at::Device device, std::function<void()> delay = {})
      : Backend(rank, size), device_(device), delay_(std::move(delay)) {
    auto options = c10d::ProcessGroupGloo::Options::create(timeout);
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1", false));
    gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, std::move(options));
    if (!device.is_cpu()) {
      stream_ = c10::impl::getDeviceGuardImpl(device.type())->getStreamFromGlobalPool(device, /*isHighPriority=*/true);
    }
    worker_ = std::thread([this] { work(); });
  }

  ~StagingBackend() override {
    {
      const std::lock_guard lock(guard_);
      ending_ = true;
    }
    wake_.notify_one();
    worker_.join();
  }

  const std::string getBackendName() const override { return "staging"; }
  /// Fails what has not begun; what has begun ends with Gloo's time-out.
  void abort() override {
    const std::lock_guard lock(guard_);
    aborted_ = true;
  }
  void shutdown() override {}

  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& whole, at::Tensor& shard,
                                                 const c10d::AllgatherOptions& = {}) override {
    return issue(c10d::OpType::_ALLGATHER_BASE, shard, whole, [this](at::Tensor mine) {
      std::vector<std::vector<at::Tensor>> all(1);
      for (int rank = 0; rank < getSize(); ++rank) all[0].push_back(at::empty_like(mine));
      std::vector<at::Tensor> inputs{mine};
      gloo_->allgather(all, inputs)->wait();
      return at::cat(all[0]);
    });
  }

  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(at::Tensor& shard, at::Tensor& whole,
                                                      const c10d::ReduceScatterOptions& options = {}) override {
    return issue(c10d::OpType::_REDUCE_SCATTER_BASE, whole, shard, [this, op = options.reduceOp](at::Tensor all) {
      const auto numel = all.numel() / getSize();
      return reduced(std::move(all), op).narrow(0, getRank() * numel, numel);
    });
  }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options = {}) override {
    return issue(c10d::OpType::ALLREDUCE, tensors.at(0), tensors.at(0),
                 [this, op = options.reduceOp](at::Tensor all) { return reduced(std::move(all), op); });
  }

  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options = {}) override {
    return issue(c10d::OpType::BROADCAST, tensors.at(0), tensors.at(0), [this, options](at::Tensor all) {
      std::vector<at::Tensor> bytes{all.view(at::kByte)};
      gloo_->broadcast(bytes, options)->wait();
      return all;
    });
  }

 private:
  using OnHost = std::function<at::Tensor(at::Tensor)>;  ///< a flat host tensor in, the flat result out

  /// Sum or mean, in fp32 for 16-bit numbers; Gloo knows the first alone.
  at::Tensor reduced(at::Tensor all, const c10d::ReduceOp& op) {
    const auto dtype = all.scalar_type();
    const bool widen = dtype == at::kHalf || dtype == at::kBFloat16;
    std::vector<at::Tensor> sum{widen ? all.to(at::kFloat) : all};
    c10d::AllreduceOptions options;
    switch (op.op_) {
      case c10d::ReduceOp::SUM:
      case c10d::ReduceOp::AVG:
        break;
      default:
        options.reduceOp = op;
    }
    gloo_->allreduce(sum, options)->wait();
    if (op.op_ == c10d::ReduceOp::AVG) sum[0].div_(getSize());
    return sum[0].to(dtype);
  }

  c10::intrusive_ptr<c10d::Work> issue(c10d::OpType type, const at::Tensor& input, const at::Tensor& output,
                                       OnHost on_host) {
    auto work = c10::make_intrusive<StagedWork>(getRank(), type, std::vector{input, output});
    std::shared_ptr<c10::Event> ready;
    if (stream_) {
      ready = std::make_shared<c10::Event>(device_.type());
      ready->record(c10::impl::getDeviceGuardImpl(device_.type())->getStream(device_));
    }
    {
      const std::lock_guard lock(guard_);
      // Detached: the worker reads the tensors, and autograd is another thread's.
      jobs_.push_back([this, work, ready, input = input.detach(), output = output.detach(), on_host] {
        try {
          TORCH_CHECK(!aborted(), "aborted");
          run(ready.get(), input, output, on_host);
          work->queued(stream_);
        } catch (...) {
          work->failed(std::current_exception());
        }
      });
    }
    wake_.notify_one();
    return work;
  }

  /// On the worker: device to host, Gloo, host to device.
  void run(const c10::Event* ready, const at::Tensor& input, at::Tensor output, const OnHost& on_host) {
    at::NoGradGuard no_grad;
    if (!stream_) {
      output.flatten().copy_(on_host(input.flatten().clone()));
      return;
    }
    const c10::DeviceGuard device(device_);
    const c10::StreamGuard stream(*stream_);
    ready->block(*stream_);
    if (delay_) delay_();
    auto host = input.flatten().to(at::kCPU);  // blocks this thread
    if (delay_) delay_();
    output.flatten().copy_(on_host(std::move(host)).pin_memory(), /*non_blocking=*/true);
  }

  bool aborted() {
    const std::lock_guard lock(guard_);
    return aborted_;
  }

  void work() {
    for (;;) {
      std::function<void()> job;
      {
        std::unique_lock lock(guard_);
        wake_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      job();
    }
  }

  at::Device device_;
  std::function<void()> delay_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  std::optional<c10::Stream> stream_;
  std::mutex guard_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool ending_ = false, aborted_ = false;
  std::thread worker_;
};

/// Makes staging backends where NCCL's are asked for.
inline train::EngineFactory staging_factory(std::function<void()> delay = {}) {
  return [delay = std::move(delay)](const train::EngineRequest& request) -> c10::intrusive_ptr<c10d::Backend> {
    return c10::make_intrusive<StagingBackend>(request.store, request.rank, request.size, request.timeout,
                                               request.device, delay);
  };
}

}  // namespace sealift::test
