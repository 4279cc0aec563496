// SPDX-License-Identifier: Apache-2.0
// Collectives with known answers.
// See measure.hpp.
// Cases of every dtype and odd sizes, with parts of different sizes as experts send them.
#include "verify/communication/known_answers.hpp"
#include "verify/communication/measure.hpp"
#include "verify/communication/timing.hpp"

#include <cmath>
#include <thread>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kElementsOfAll = 1 << 22;  ///< of all parts of one case together

/// The bits in which two elements of one dtype differ: "0x00000400".
std::string other_bits(const at::Tensor& got, const at::Tensor& expected) {
  const auto bits = [&](const at::Tensor& element) {
    const auto size = element.element_size();
    const auto kind = size == 8 ? at::kLong : size == 4 ? at::kInt : at::kShort;
    return static_cast<std::uint64_t>(element.reshape({1}).view(kind).to(at::kLong).item<std::int64_t>());
  };
  const auto digits = static_cast<int>(2 * got.element_size());
  const auto mask = digits == 16 ? ~std::uint64_t{0} : (std::uint64_t{1} << (4 * digits)) - 1;
  char text[24];
  std::snprintf(text, sizeof text, "0x%0*llx", digits,
                static_cast<unsigned long long>((bits(got) ^ bits(expected)) & mask));
  return text;
}

/// The cases of one line with one dtype, and what was wrong in them.
class RightCases {
 public:
  RightCases(const Line& line, at::Device device, const CommunicationFaults& faults, Json& wrong)
      : line_(line),
        group_(line.group),
        device_(device),
        faults_(faults),
        wrong_(wrong),
        rank_(group_.rank()),
        ranks_(group_.size()) {}

  std::int64_t run(const std::string& dtype, std::int64_t size) {
    dtype_ = dtype;
    size_ = size;
    all_reduce(size);
    size_ = std::min(size, std::max<std::int64_t>(1, kElementsOfAll / ranks_));
    reduce_scatter(size_);
    all_gather(size_);
    broadcast(size);
    all_to_all(size_);
    return 5;
  }

  /// Everyone must wait for who comes last. Tried three times, since a rank that the host does not run looks the same.
  std::int64_t barrier() {
    constexpr auto kSleep = std::chrono::milliseconds(100);
    for (int attempt = 0; attempt < 3; ++attempt) {
      auto waited = at::zeros({ranks_});
      group_.all_gather(waited, at::zeros({1})).wait();
      const auto began = Clock::now();
      if (rank_ == 0) std::this_thread::sleep_for(kSleep);
      group_.barrier();
      const auto mine = at::full({1}, rank_ == 0 ? 1 : seconds_since(began), at::kFloat);
      group_.all_gather(waited, mine).wait();
      if (waited.min().item<double>() > 0.02) break;
      if (attempt == 2 && mine.item<double>() <= 0.02) note("barrier", "fp32", 1, -1, mine.item<double>(), 0.1, 0);
    }
    return 1;
  }

 private:
  at::Tensor here(const at::Tensor& values) const { return values.to(dtype_named(dtype_)).to(device_); }
  void before(const char* op, const at::Tensor& sent) const {
    if (faults_.before) faults_.before(op, sent);
  }

  void all_reduce(std::int64_t n) {
    auto data = here(added(rank_, ranks_, 0, n, dtype_));
    before("all_reduce", data);
    group_.all_reduce(data).wait();
    compare("all_reduce", data, sum_of_all(ranks_, 0, n, dtype_), {});
  }

  void reduce_scatter(std::int64_t n) {
    const auto full = here(added(rank_, ranks_, 0, ranks_ * n, dtype_));
    auto part = at::full({n}, 99, full.options());
    before("reduce_scatter", full);
    group_.reduce_scatter(part, full).wait();
    compare("reduce_scatter", part, sum_of_all(ranks_, rank_ * n, n, dtype_), {});
  }

  void all_gather(std::int64_t n) {
    const auto part = here(moved(rank_, 0, n, dtype_));
    auto full = at::full({ranks_ * n}, 99, part.options());
    before("all_gather", part);
    group_.all_gather(full, part).wait();
    std::vector<at::Tensor> expected;
    for (std::int64_t peer = 0; peer < ranks_; ++peer) expected.push_back(moved(peer, 0, n, dtype_));
    compare("all_gather", full, at::cat(expected), std::vector<std::int64_t>(static_cast<std::size_t>(ranks_), n));
  }

  void broadcast(std::int64_t n) {
    auto data = here(moved(rank_, 0, n, dtype_));
    before("broadcast", data);
    group_.broadcast(data).wait();
    compare("broadcast", data, moved(0, 0, n, dtype_), {n});
  }

  /// Parts of different sizes, as experts send them.
  void all_to_all(std::int64_t n) {
    std::vector<at::Tensor> sent, expected;
    std::vector<std::int64_t> rows;
    for (std::int64_t peer = 0; peer < ranks_; ++peer) {
      rows.push_back(n + (rank_ + peer) % 3);
      sent.push_back(moved(rank_, peer * 4099, rows.back(), dtype_));
      expected.push_back(moved(peer, rank_ * 4099, rows.back(), dtype_));
    }
    const auto in = here(at::cat(sent));
    auto out = at::full_like(in, 99);
    before("all_to_all", in);
    group_.all_to_all(out, in, rows, rows).wait();
    compare("all_to_all", out, at::cat(expected), rows);
  }

  /// `parts`: how many elements came from each rank of the group, in order; none: a sum.
  void compare(const char* op, const at::Tensor& got, const at::Tensor& expected,
               const std::vector<std::int64_t>& parts) {
    settle(got);
    if (faults_.after) faults_.after(op, got);
    const auto have = got.cpu().flatten(), want = expected.to(have.scalar_type()).flatten();
    const auto mine = have.to(at::kDouble), right = expected.to(at::kDouble);
    if (mine.equal(right)) return;
    const auto differ = mine.ne(right);
    std::int64_t first = 0;
    for (std::size_t peer = 0; peer < std::max<std::size_t>(1, parts.size()); ++peer) {
      const auto n = parts.empty() ? mine.numel() : parts[peer];
      const auto places = differ.narrow(0, first, n).nonzero();
      if (places.numel() > 0) {
        const auto at = places[0].item<std::int64_t>();
        note(op, dtype_, size_, parts.empty() ? -1 : group_.members().at(peer), mine[first + at].item<double>(),
             right[first + at].item<double>(), at, other_bits(have[first + at], want[first + at]));
      }
      first += n;
    }
  }

  void note(const std::string& op, const std::string& dtype, std::int64_t size, std::int64_t from, double got,
            double expected, std::int64_t index, const std::string& bits = {}) {
    if (wrong_.size() >= kWrongElementsKept) return;
    wrong_.push_back({{"group", line_.name},
                      {"ranks", ranks_},
                      {"op", op},
                      {"dtype", dtype},
                      {"size", size},
                      {"index", index},
                      {"from", from},
                      {"got", got},
                      {"expected", expected},
                      {"bits", bits}});
  }

  const Line& line_;
  train::Collectives group_;
  at::Device device_;
  const CommunicationFaults& faults_;
  Json& wrong_;
  std::int64_t rank_, ranks_, size_ = 0;
  std::string dtype_;
};

}  // namespace

Json measure_right(const Lines& lines, const std::vector<std::int64_t>& sizes, const CommunicationFaults& faults) {
  Json wrong = Json::array();
  std::int64_t cases = 0;
  for (const auto& line : lines.all) {
    RightCases right(line, lines.groups.device, faults, wrong);
    for (const auto* dtype : {"fp32", "bf16", "fp16", "int64"}) {
      for (const auto size : sizes) cases += right.run(dtype, size);
    }
    cases += right.barrier();
  }
  return {{"cases", cases}, {"facts", facts_of_lines(lines)}, {"faults", wrong}};
}

Json measure_right_for(const Lines& lines, const std::vector<std::int64_t>& sizes,
                       std::chrono::duration<double> duration, const CommunicationFaults& faults) {
  const auto began = Clock::now();
  auto world = lines.groups.world;
  auto total = measure_right(lines, sizes, faults);
  while (true) {
    const bool more = seconds_since(began) < duration.count() && total["faults"].empty();
    auto go = at::full({1}, more ? 1 : 0, at::kLong);  // rank 0's answer is everyone's
    world.broadcast(go).wait();
    if (go.item<std::int64_t>() == 0) return total;
    const auto again = measure_right(lines, sizes, faults);
    total["cases"] = total["cases"].get<std::int64_t>() + again["cases"].get<std::int64_t>();
    if (total["faults"].empty()) total["faults"] = again["faults"];
  }
}

}  // namespace sealift::verify
