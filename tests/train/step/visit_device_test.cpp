// SPDX-License-Identifier: Apache-2.0
// Copy in, work, copy out, without a device: streams that run in any order that their marks allow.
// What is issued is queued; the end of a step runs the queues, always the most eager lane that may go on. Six orders
// of eagerness find a wait that is missing, since a real device would only find it on a bad day.
// Peak memory is what LibTorch's allocator reports.
#include <sealift/train/step/adamw.hpp>

#include <c10/util/ThreadLocalDebugInfo.h>

#include <deque>

#include <doctest/doctest.h>

using namespace sealift::train;

namespace {

using Lane = SideStreams::Lane;
using Order = std::array<Lane, 3>;

class Shuffled : public SideStreams {
 public:
  /// Runs lanes in the order of `eager`; waits of the lane `forgets` do not hold.
  explicit Shuffled(Order eager, std::optional<Lane> forgets = {})
      : SideStreams(at::kCPU), eager_(eager), forgets_(forgets) {}

  void run(Lane lane, const std::function<void()>& work) override { lanes_[lane].push_back({.work = work}); }
  Mark mark(Lane lane) override {
    auto passed = std::make_shared<bool>(false);
    lanes_[lane].push_back({.work = [passed] { *passed = true; }});
    return passed;
  }
  void wait(Lane lane, const Mark& mark) override {
    if (mark && forgets_ != lane) lanes_[lane].push_back({.after = std::static_pointer_cast<bool>(mark)});
  }
  void finish(const Mark& mark) override {
    const auto passed = std::static_pointer_cast<bool>(mark);
    while (!*passed) go_on();
  }

 private:
  struct Entry {
    std::function<void()> work = {};
    std::shared_ptr<bool> after = {};
  };

  void go_on() {
    for (const auto lane : eager_) {
      auto& queue = lanes_[lane];
      if (queue.empty() || (queue.front().after && !*queue.front().after)) continue;
      const auto entry = std::move(queue.front());
      queue.pop_front();
      if (entry.work) entry.work();
      return;
    }
    throw std::runtime_error("every lane waits for another");
  }

  Order eager_;
  std::optional<Lane> forgets_;
  std::map<Lane, std::deque<Entry>> lanes_;
};

std::vector<Order> all_orders() {
  Order order{SideStreams::In, SideStreams::Current, SideStreams::Out};
  std::vector<Order> orders;
  do orders.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
  return orders;
}

/// Whether `count` visits of pairs of tensors leave in each home what their work made of it.
bool right_after_visits(SideStreams& streams, std::size_t count) {
  std::vector<Visit> visits;
  std::vector<at::Tensor> expected;
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = static_cast<double>(i + 1);
    Visit visit{.homes = {torch::full({static_cast<std::int64_t>(5 + i % 4)}, number),
                          torch::arange(6.0).view({2, 3}).t() + number}};
    for (const auto& home : visit.homes) expected.push_back(home * 2 + number);
    visit.work = [number](const std::vector<at::Tensor>& copies) {
      for (auto copy : copies) copy.mul_(2).add_(number);
    };
    visits.push_back(visit);
  }
  visit_device(streams, at::kCPU, visits);
  bool right = true;
  for (std::size_t i = 0; i < expected.size(); ++i) right &= visits[i / 2].homes[i % 2].equal(expected[i]);
  return right;
}

/// An optimizer whose moments pass through streams although they are on the host as their parameters are.
class Reordered : public FusedAdamW {
 public:
  Reordered(const std::vector<at::Tensor>& parameters, const torch::optim::AdamWOptions& options, Order eager)
      : FusedAdamW(parameters, options, Moments::OnHost), eager_(eager) {}

 protected:
  bool streams(const at::Tensor&) const override { return true; }
  std::unique_ptr<SideStreams> make_streams(at::Device) override { return std::make_unique<Shuffled>(eager_); }

 private:
  Order eager_;
};

std::vector<at::Tensor> parameters_of_each_shape() {
  std::vector<at::Tensor> parameters;
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{{7, 5}, {33}, {}, {0}, {128, 17}, {4}, {9, 9}}) {
    const auto numel = torch::ones(shape).numel();
    parameters.push_back(torch::sin(torch::arange(numel) + 1.0).view(shape).requires_grad_());
  }
  parameters.push_back(torch::sin(torch::arange(12.0)).view({3, 4}).t().requires_grad_());
  return parameters;
}

void set_cosines_as_gradients(const std::vector<at::Tensor>& parameters, double step) {
  for (const auto& parameter : parameters) {
    at::NoGradGuard no_grad;
    parameter.mutable_grad() = torch::cos(parameter.detach() * 7 + step);
  }
}

/// Bytes of CPU tensors alive on this thread, counted from zero.
class PeakBytes : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t alloc_size, std::size_t, std::size_t, c10::Device) override {
    bytes += alloc_size;
    peak = std::max(peak, bytes);
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::int64_t bytes = 0, peak = 0;
};

// A program keeps its optimizer in a struct that is moved.
static_assert(std::is_move_constructible_v<FusedAdamW>);

}  // namespace

TEST_CASE("whatever streams do first, each home gets what the device made of it") {
  for (const auto& order : all_orders()) {
    Shuffled streams(order);
    for (const std::size_t count : {0, 1, 2, 3, 4, 5, 9}) CHECK(right_after_visits(streams, count));
  }
  SideStreams host(at::kCPU);
  CHECK(right_after_visits(host, 9));
}

TEST_CASE("without the waits of any one lane some order is wrong, so each is needed") {
  for (const auto lane : {SideStreams::In, SideStreams::Current, SideStreams::Out}) {
    CAPTURE(static_cast<int>(lane));
    bool always_right = true;
    for (const auto& order : all_orders()) {
      Shuffled streams(order, lane);
      always_right &= right_after_visits(streams, 9);
    }
    CHECK_FALSE(always_right);
  }
}

TEST_CASE("steps on streams in any order change no bit") {
  for (const bool amsgrad : {false, true}) {
    const auto options = torch::optim::AdamWOptions(1e-2).amsgrad(amsgrad).weight_decay(0.1);
    auto expected = parameters_of_each_shape();
    FusedAdamW plain(expected, options);
    for (int step = 0; step < 4; ++step) {
      set_cosines_as_gradients(expected, step);
      plain.step();
    }
    for (const auto& order : all_orders()) {
      auto got = parameters_of_each_shape();
      Reordered streamed(got, options, order);
      for (int step = 0; step < 4; ++step) {
        set_cosines_as_gradients(got, step);
        streamed.step();
      }
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].equal(expected[i]));
      const auto moments = amsgrad ? 3 : 2;
      CHECK(streamed.copies() == 4 * 7 * 2 * moments);  // steps, parameters with elements, there and back
    }
  }
}

TEST_CASE("the moments of at most three parameters are on the device, however many there are") {
  constexpr std::int64_t kNumel = 100'000;
  const auto peak = [&](std::size_t count) {
    std::vector<at::Tensor> parameters;
    for (std::size_t i = 0; i < count; ++i) parameters.push_back(torch::ones({kNumel}).requires_grad_());
    Reordered optimizer(parameters, torch::optim::AdamWOptions(), all_orders().front());
    set_cosines_as_gradients(parameters, 0);
    optimizer.step();  // makes the moments
    const auto live = std::make_shared<PeakBytes>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, live);
    optimizer.step();
    CHECK(live->bytes < kNumel);  // a few numbers, no moments
    return live->peak;
  };
  constexpr std::int64_t kMoments = 2 * 4 * kNumel;
  CHECK(peak(1) < 1.1 * kMoments);
  for (const std::size_t count : {3, 4, 12}) {
    CAPTURE(count);
    CHECK(peak(count) > 2.9 * kMoments);
    CHECK(peak(count) < 3.1 * kMoments);
  }
}

TEST_CASE("a gradient that cannot be stepped is refused before any moment moves") {
  std::vector<at::Tensor> parameters{torch::ones({3}).requires_grad_(), torch::ones({4, 2}).requires_grad_()};
  Reordered optimizer(parameters, torch::optim::AdamWOptions(), all_orders().front());
  set_cosines_as_gradients(parameters, 0);
  parameters[1].mutable_grad() = parameters[1].grad().to_sparse();
  CHECK_THROWS_WITH_AS(optimizer.step(), doctest::Contains("sparse(false)"), c10::Error);
  CHECK(parameters[0].detach().equal(torch::ones({3})));
}
