// SPDX-License-Identifier: Apache-2.0
// An engine that behaves as NCCL does, on CPU tensors of ranks that are threads: what the watch is tested with.
// Below `device_engine_test`; comes through the same seam as NCCL.
// As NCCL it is asynchronous, starts when all ranks have come, hangs for ever when they do not or bring different
// collectives, tells an error only to who asks a work, and is ended by `abort`.
#pragma once

#include <sealift/train/comm/engines.hpp>

#include <condition_variable>
#include <map>
#include <memory>

namespace sealift::test {

using train::EngineFactory;
using train::EngineRequest;

/// What the engines of all ranks share.
class FakeFabric : public std::enable_shared_from_this<FakeFabric> {
 public:
  /// Whether `synchronize` waits for the data, since the CPU has no stream that could; otherwise it returns at once.
  bool blocking = true;

  EngineFactory factory() {
    return [self = shared_from_this()](const EngineRequest& request) { return self->connect(request); };
  }

  /// A request, without the engine that it splits: engines keep the fabric alive.
  struct Asked {
    EngineRequest request;  ///< without `split_from`
    bool splits = false;    ///< it had one
  };

  /// What was asked for so far, by all ranks.
  std::vector<Asked> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  /// From now on every collective in flight ends with `error`, as when a peer's process has died.
  void break_all(const std::string& error) {
    const std::lock_guard lock(mutex_);
    broken_ = std::make_exception_ptr(std::runtime_error(error));
    for (auto& [place, exchange] : exchanges_) {
      for (auto& [rank, part] : exchange.parts) part.work->end(broken_);
    }
  }

  /// Whether some rank has aborted.
  bool aborted() {
    const std::lock_guard lock(mutex_);
    return aborted_;
  }

 private:
  enum class Op { Gather, Scatter, Sum, Broadcast };

  class Work final : public c10d::Work {
   public:
    explicit Work(bool blocking) : blocking_(blocking) {}
    void synchronize() override {
      std::unique_lock lock(mutex_);
      if (blocking_) cv_.wait(lock, [&] { return completed_; });
    }
    bool wait(std::chrono::milliseconds) override { throw std::logic_error("wait() would block the host"); }
    void end(std::exception_ptr error = nullptr) {
      if (!isCompleted()) finish(std::move(error));
    }

   private:
    bool blocking_;
  };

  /// Tells what another work tells, and holds none of its tensors.
  class LightWork final : public c10d::Work {
   public:
    explicit LightWork(c10::intrusive_ptr<Work> work) : work_(std::move(work)) {}
    bool isCompleted() override { return work_->isCompleted(); }
    std::exception_ptr exception() const override { return work_->exception(); }

   private:
    c10::intrusive_ptr<Work> work_;
  };

  struct Part {
    Op op;
    at::Tensor in, out;
    c10::intrusive_ptr<Work> work;
  };
  struct Exchange {
    std::map<int, Part> parts;  ///< by rank
    bool aborted = false;       ///< by some rank, whose memory may be gone
  };

  class Engine final : public c10d::Backend, public train::LightWorks {
   public:
    Engine(std::shared_ptr<FakeFabric> fabric, EngineRequest request)
        : c10d::Backend(request.rank, request.size), fabric_(std::move(fabric)), request_(std::move(request)) {}

    c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& out, at::Tensor& in,
                                                   const c10d::AllgatherOptions&) override {
      return issue(Op::Gather, in, out);
    }
    c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                                                        const c10d::ReduceScatterOptions& options) override {
      check_plain(options.reduceOp);
      return issue(Op::Scatter, in, out);
    }
    c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                             const c10d::AllreduceOptions& options) override {
      check_plain(options.reduceOp);
      return issue(Op::Sum, tensors.at(0), tensors.at(0));
    }
    c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions&) override {
      return issue(Op::Broadcast, tensors.at(0), tensors.at(0));
    }
    void abort() override { fabric_->abort(request_); }
    const std::string getBackendName() const override { return "fake"; }

    c10::intrusive_ptr<c10d::Work> without_tensors(const c10d::Work& work) const override {
      auto* own = const_cast<Work*>(dynamic_cast<const Work*>(&work));
      return c10::make_intrusive<LightWork>(c10::intrusive_ptr<Work>::unsafe_reclaim_from_nonowning(own));
    }

   private:
    /// NCCL's scaled sum is wrong for a group of one, so nothing may ask for it.
    static void check_plain(const c10d::ReduceOp& op) {
      if (op.op_ != c10d::ReduceOp::SUM) throw std::logic_error("an engine was asked for more than a plain sum");
    }
    c10::intrusive_ptr<c10d::Work> issue(Op op, const at::Tensor& in, const at::Tensor& out) {
      return fabric_->issue(request_, ++number_, op, in, out);
    }

    std::shared_ptr<FakeFabric> fabric_;
    EngineRequest request_;
    std::uint64_t number_ = 0;
  };

  c10::intrusive_ptr<c10d::Backend> connect(const EngineRequest& request) {
    std::unique_lock lock(mutex_);
    requests_.push_back({request, static_cast<bool>(request.split_from)});
    requests_.back().request.split_from.reset();
    if (calls_.empty()) calls_.resize(static_cast<std::size_t>(request.size));  // the world's is the first
    // A split is of all ranks of the world.
    const auto number = ++calls_[static_cast<std::size_t>(request.ranks[static_cast<std::size_t>(request.rank)])];
    changed_.notify_all();
    changed_.wait(lock, [&] { return *std::min_element(calls_.begin(), calls_.end()) >= number; });
    return c10::make_intrusive<Engine>(shared_from_this(), request);
  }

  c10::intrusive_ptr<c10d::Work> issue(const EngineRequest& request, std::uint64_t number, Op op, const at::Tensor& in,
                                       const at::Tensor& out) {
    const std::lock_guard lock(mutex_);
    auto& exchange = exchanges_[{request.name, number}];
    auto work = c10::make_intrusive<Work>(blocking);
    // As a device has them: addresses, which keep no memory alive.
    const auto address = [](const at::Tensor& t) { return at::from_blob(t.data_ptr(), t.sizes(), t.options()); };
    exchange.parts[request.rank] = {op, address(in), address(out), work};
    if (broken_) work->end(broken_);
    if (broken_ || exchange.aborted || exchange.parts.size() < static_cast<std::size_t>(request.size)) return work;
    const auto& first = exchange.parts.begin()->second;
    for (const auto& [rank, part] : exchange.parts) {
      if (part.op != first.op || part.in.numel() != first.in.numel()) return work;  // it hangs
    }
    run(exchange);
    for (auto& [rank, part] : exchange.parts) part.work->end();
    exchanges_.erase({request.name, number});
    return work;
  }

  static void run(const Exchange& exchange) {
    const at::NoGradGuard no_grad;
    const auto& parts = exchange.parts;
    const auto size = static_cast<std::int64_t>(parts.size());
    const auto& first = parts.begin()->second;
    std::vector<at::Tensor> inputs;
    for (const auto& [rank, part] : parts) inputs.push_back(part.in.clone().flatten());
    if (first.op == Op::Gather || first.op == Op::Broadcast) {
      const auto all = first.op == Op::Gather ? at::cat(inputs) : inputs.front();
      for (const auto& [rank, part] : parts) part.out.copy_(all.view(part.out.sizes()));
      return;
    }
    auto sum = inputs.front().clone();
    for (std::size_t i = 1; i < inputs.size(); ++i) sum += inputs[i];
    for (const auto& [rank, part] : parts) {
      const auto n = first.op == Op::Scatter ? sum.numel() / size : sum.numel();
      part.out.copy_(sum.narrow(0, first.op == Op::Scatter ? rank * n : 0, n).view(part.out.sizes()));
    }
  }

  void abort(const EngineRequest& request) {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    for (auto& [place, exchange] : exchanges_) {
      const auto own = exchange.parts.find(request.rank);
      if (place.first != request.name || own == exchange.parts.end()) continue;
      exchange.aborted = true;
      own->second.work->end();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Asked> requests_;
  std::vector<int> calls_;  ///< for an engine, by rank of the world
  std::map<std::pair<std::string, std::uint64_t>, Exchange> exchanges_;
  bool aborted_ = false;
  std::exception_ptr broken_;
};

}  // namespace sealift::test
