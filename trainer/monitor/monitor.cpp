// SPDX-License-Identifier: Apache-2.0
// The monitor.
// See monitor.hpp. Numbers of all ranks come together in one gather at the end, traces in pieces of one size.
// The first step of a process is left out: it makes connections, buckets and buffers.
#include "trainer/monitor/monitor.hpp"

#include "trainer/monitor/peak_memory.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <iomanip>
#include <numeric>
#include <sstream>

#include <unistd.h>

namespace sealift::trainer {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kTracedSteps = 10;
/// Steps that count before rank 0 gives advice during the run.
constexpr std::size_t kStepsUntilAdvice = 20;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

OrderedJson spread(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {{"min", *least}, {"median", median(values)}, {"max", *most}};
}

/// Each rank's numbers: by number, then by rank.
std::vector<std::vector<double>> gather_numbers(train::Collectives& world, const std::vector<double>& mine) {
  const auto count = static_cast<std::int64_t>(mine.size());
  const auto own = torch::tensor(mine, torch::kFloat64);
  auto all = torch::zeros({world.size() * count}, torch::kFloat64);
  if (world.size() > 1) {
    world.all_gather(all, own, "monitor").wait();
  } else {
    all.copy_(own);
  }
  std::vector<std::vector<double>> result(mine.size());
  const auto* values = all.const_data_ptr<double>();
  for (std::int64_t i = 0; i < all.numel(); ++i) result[static_cast<std::size_t>(i % count)].push_back(values[i]);
  return result;
}

/// Each rank's text, on rank 0; in pieces, so that the other ranks hold a piece of each at once.
std::vector<std::string> gather_texts(train::Collectives& world, const std::string& mine) {
  if (world.size() == 1) return {mine};
  const auto sizes = gather_numbers(world, {static_cast<double>(mine.size())}).front();
  const auto longest = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  constexpr std::size_t kPiece = 1 << 20;
  std::vector<std::string> texts(sizes.size());
  auto all = torch::empty({world.size() * static_cast<std::int64_t>(kPiece)}, torch::kByte);
  for (std::size_t begin = 0; begin < longest; begin += kPiece) {
    auto own = torch::zeros({static_cast<std::int64_t>(kPiece)}, torch::kByte);
    if (begin < mine.size()) {
      std::copy_n(mine.data() + begin, std::min(kPiece, mine.size() - begin), reinterpret_cast<char*>(own.data_ptr()));
    }
    world.all_gather(all, own, "trace").wait();
    if (world.rank() != 0) continue;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      texts[rank].append(reinterpret_cast<const char*>(all.const_data_ptr()) + rank * kPiece, kPiece);
    }
  }
  for (std::size_t rank = 0; rank < texts.size() && world.rank() == 0; ++rank) {
    texts[rank].resize(static_cast<std::size_t>(sizes[rank]));
  }
  return texts;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "host";
}

}  // namespace

Monitor::Monitor(const HostOptions& options, Place place)
    : options_(options), place_(std::move(place)), timeline_(std::make_shared<train::Timeline>(place_.device)) {
  if (place_.rank != 0) return;
  if (!options_.tensorboard.empty()) tensorboard_.emplace(options_.tensorboard);
  if (!options_.trace.empty()) {
    std::error_code ignored;  // opening fails then
    std::filesystem::create_directories(std::filesystem::path(options_.trace).parent_path(), ignored);
    trace_.emplace(options_.trace);
    TORCH_CHECK(*trace_, "cannot write ", options_.trace, "; choose another file with --trace");
  }
}

void Monitor::begin_step() {
  timeline_->take();  // what came between the steps is not theirs
  step_begin_ = timeline_->now();
}

void Monitor::end_step(std::int64_t number, const StepResult& result) {
  const auto end = timeline_->now();
  auto activities = timeline_->take();
  const auto seconds = end - step_begin_;
  if (++steps_ == 2) {
    step_seconds_.clear();
    tokens_per_second_.clear();
    times_ = {};
  }
  const auto times = train::times_of(activities);
  times_ += times;
  step_seconds_.push_back(seconds);
  tokens_per_second_.push_back(result.tokens_per_second / static_cast<double>(place_.world_size));
  if (!options_.trace.empty()) {
    if (last_steps_.size() == kTracedSteps) last_steps_.pop_front();
    last_steps_.push_back({{"step " + std::to_string(number), step_begin_, end}, std::move(activities)});
  }
  // A run that goes on from a checkpoint, or went back to one, comes again to steps that may be in the files.
  if (tensorboard_ && (steps_ == 1 || number <= last_)) tensorboard_->restart(number);
  last_ = number;
  scalar(number, "train/loss", result.loss);
  scalar(number, "train/gradient_norm", result.gradient_norm);
  scalar(number, "speed/tokens_per_second_per_device", tokens_per_second_.back());
  scalar(number, "speed/step_seconds", seconds);
  scalar(number, "communication/exposed_share", times.exposed() / seconds);
  scalar(number, "memory/peak_host_bytes", peak_host_memory());
  if (!place_.device.is_cpu()) scalar(number, "memory/peak_device_bytes", peak_device_memory(place_.device));
  if (place_.rank != 0 || step_seconds_.size() != kStepsUntilAdvice) return;
  say(communication_advice(exposed_share(), place_.policy, place_.micro_batches));
}

void Monitor::logged(const OrderedJson& line) {
  constexpr std::string_view kEvaluated = "eval_";
  constexpr std::array kOfStep = {"step", "loss", "grad_norm", "tokens_per_second"};
  if (!tensorboard_ || !line.is_object()) return;
  const auto step = line.value("step", last_);
  for (const auto& [name, value] : line.items()) {
    if (!value.is_number() || std::find(kOfStep.begin(), kOfStep.end(), name) != kOfStep.end()) continue;
    const bool evaluated = std::string_view(name).starts_with(kEvaluated);
    scalar(step, evaluated ? "eval/" + name.substr(kEvaluated.size()) : "train/" + name, value.get<double>());
  }
}

/// Once in a run.
void Monitor::say(const std::optional<std::string>& advice) {
  if (place_.rank != 0 || !advice || std::exchange(advised_, true)) return;
  std::cerr << "note: " << *advice << '\n';
}

void Monitor::saved(std::int64_t number, double begin, double end) {
  checkpoints_.push_back({number, end - begin});
  if (!options_.trace.empty()) saved_spans_.push_back({"checkpoint " + std::to_string(number), begin, end});
  scalar(number, "checkpoint/seconds", end - begin);
}

void Monitor::scalar(std::int64_t step, const std::string& name, double value) {
  if (tensorboard_) tensorboard_->add(step, name, value, timeline_->start() + timeline_->now());
}

ExposedShare Monitor::exposed_share() const {
  const auto all = sum(step_seconds_);
  if (all <= 0) return {};
  return {.gather = times_.gather_wait / all, .reduce = times_.reduce_wait / all};
}

nlohmann::ordered_json Monitor::report(train::Collectives& world) {
  // In this order on every rank.
  std::vector<std::pair<std::string, double>> numbers;
  const auto steps = std::max<double>(1, static_cast<double>(step_seconds_.size()));
  const auto share = exposed_share();
  numbers.emplace_back("exposed_share", share.whole());
  numbers.emplace_back("exposed_share_of_gathers", share.gather);
  numbers.emplace_back("exposed_share_of_reductions", share.reduce);
  numbers.emplace_back("exposed_share_of_forward", times_.forward > 0 ? times_.forward_wait / times_.forward : 0);
  numbers.emplace_back("step", sum(step_seconds_) / steps);
  for (auto [name, part] : {std::pair{"forward", &train::StepTimes::forward},
                            {"backward", &train::StepTimes::backward},
                            {"gather", &train::StepTimes::gather},
                            {"gather_wait", &train::StepTimes::gather_wait},
                            {"reduce", &train::StepTimes::reduce},
                            {"reduce_wait", &train::StepTimes::reduce_wait}}) {
    numbers.emplace_back(name, times_.*part / steps);
  }
  const auto first_phase = numbers.size();
  for (const auto& phase : start_up_.phases()) numbers.push_back(phase);
  numbers.emplace_back("total", start_up_.total());
  const auto memory = numbers.size();
  numbers.emplace_back("peak_host_memory_bytes", peak_host_memory());
  if (!place_.device.is_cpu()) numbers.emplace_back("peak_device_memory_bytes", peak_device_memory(place_.device));

  std::vector<double> mine;
  for (const auto& [name, value] : numbers) mine.push_back(value);
  const auto all = gather_numbers(world, mine);
  const auto part = [&](std::size_t begin, std::size_t end) {
    OrderedJson json;
    for (auto i = begin; i < end; ++i) json[numbers[i].first] = spread(all[i]);
    return json;
  };

  OrderedJson json{{"tokens_per_second_per_device", median(tokens_per_second_)},
                   {"communication", part(0, 4)},
                   {"seconds_per_step", part(4, first_phase)},
                   {"start_up_seconds", part(first_phase, memory)}};
  json.update(part(memory, numbers.size()));
  json["checkpoint_seconds"] = OrderedJson::array();
  for (const auto& each : checkpoints_)
    json["checkpoint_seconds"].push_back({{"step", each.step}, {"seconds", each.seconds}});
  const auto [least, most] = std::minmax_element(all[0].begin(), all[0].end());
  const RankShares ranks{.least = *least, .most = *most, .least_rank = least - all[0].begin()};
  const auto advice = communication_advice({.gather = median(all[1]), .reduce = median(all[2])}, place_.policy,
                                           place_.micro_batches, ranks);
  json["advice"] = advice ? OrderedJson(*advice) : OrderedJson();
  say(advice);
  if (!options_.trace.empty()) write_trace(world);
  return json;
}

void Monitor::write_trace(train::Collectives& world) {
  std::vector<LoopSpan> loop;
  std::vector<train::TimedActivity> activities;
  for (const auto& step : last_steps_) {
    loop.push_back(step.span);
    activities.insert(activities.end(), step.activities.begin(), step.activities.end());
  }
  for (const auto& each : saved_spans_) {
    if (!last_steps_.empty() && each.begin >= last_steps_.front().span.begin) loop.push_back(each);
  }
  const auto starts = gather_numbers(world, {timeline_->start()}).front();
  const auto first = *std::min_element(starts.begin(), starts.end());
  const auto texts =
      gather_texts(world, trace_events(place_.rank, host_name(), loop, activities, timeline_->start() - first));
  if (!trace_) return;
  *trace_ << trace_file(texts) << std::flush;
  if (!*trace_) std::cerr << "note: cannot write " << options_.trace << "; is the disk full?\n";
}

std::string cost_line(const OrderedJson& report) {
  const auto peak = report.contains("peak_device_memory_bytes") ? "peak_device_memory_bytes" : "peak_host_memory_bytes";
  const auto number = [](double value, int digits = 0) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(digits) << value;
    return text.str();
  };
  return number(report["tokens_per_second_per_device"].get<double>()) + " tokens/s per device, " +
         number(100 * report["communication"]["exposed_share"]["median"].get<double>()) +
         " % waiting for communication, peak " + number(report[peak]["max"].get<double>() / (1 << 20)) +
         " MiB, start-up " + number(report["start_up_seconds"]["total"]["max"].get<double>(), 1) + " s";
}

}  // namespace sealift::trainer
