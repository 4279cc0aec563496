// SPDX-License-Identifier: Apache-2.0
// The simulated step: cases small enough to be computed by hand, and what must hold for shapes drawn from a seed.
#include "trainer/simulate/step_time.hpp"
#include "trainer/simulate/link.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

using namespace sealift::trainer;

namespace {

/// One operation and one byte a second, of everything.
Rates one_a_second() {
  Rates rates;
  rates.flops = rates.link_bytes_per_second = rates.bus_bytes_per_second = rates.memory_bytes_per_second = 1;
  return rates;
}

UnitWork unit(double forward, double backward, std::int64_t gather, std::int64_t reduce) {
  UnitWork work;
  work.forward_flops = forward;
  work.backward_flops = backward;
  work.gather_bytes = gather;
  work.reduce_bytes = reduce;
  return work;
}

/// A root that holds nothing, and two blocks.
StepShape two_blocks(std::int64_t gather = 4, std::int64_t reduce = 6) {
  StepShape shape;
  shape.units = {unit(0, 0, 0, 0), unit(10, 20, gather, reduce), unit(10, 20, gather, reduce)};
  return shape;
}

std::int64_t events_of(const StepShape& shape, StepActivity what) {
  const auto events = simulate_events(shape, one_a_second());
  return std::count_if(events.begin(), events.end(), [&](const auto& event) { return event.what == what; });
}

struct DrawnStep {
  StepShape shape;
  Rates rates;
};

DrawnStep draw_step(std::mt19937& random) {
  const auto number = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
  DrawnStep drawn;
  auto& shape = drawn.shape;
  const bool ddp = number(0, 3) == 0, hsdp = !ddp && number(0, 3) == 0;
  for (int units = number(1, 7); units > 0; --units) {
    shape.units.push_back(unit(number(0, 30), number(0, 60), ddp ? 0 : number(0, 40), number(0, 40)));
    if (hsdp) shape.units.back().copies_bytes = number(0, 20);
    if (number(0, 3) == 0) shape.units.back().bus_in_bytes = number(0, 20);
    if (number(0, 3) == 0) shape.units.back().bus_out_bytes = number(0, 20);
  }
  shape.micro_batches = number(1, 4);
  shape.gather_again_in_backward = number(0, 1);
  shape.reduce_every_micro_batch = number(0, 1);
  shape.keep_gathered = number(0, 1);
  shape.forward_prefetch = number(0, 2);
  shape.backward_prefetch = number(0, 2);
  shape.offload_bytes = number(0, 1) * number(0, 50);
  shape.optimizer_bytes = number(0, 50);
  shape.small_collectives = number(0, 2);
  if (ddp) shape.bucket_bytes = number(5, 50);
  drawn.rates = one_a_second();
  drawn.rates.link_bytes_per_second = number(1, 5);
  drawn.rates.link_latency_seconds = number(0, 3);
  drawn.rates.collectives_at_once = number(1, 2);
  if (number(0, 1)) drawn.rates.copies_bytes_per_second = number(1, 5);
  return drawn;
}

/// Seconds of all events of these kinds, were each alone.
double alone(const DrawnStep& drawn, bool transfers) {
  auto rates = drawn.rates;
  auto shape = drawn.shape;
  double sum = 0;
  for (const auto& event : simulate_events(shape, rates)) {
    const bool computes = event.what == StepActivity::Forward || event.what == StepActivity::Backward;
    if (!transfers && computes) sum += event.end - event.begin;
    if (transfers && event.stream == Stream::Gather) {
      const auto again = event.what == StepActivity::Gather ? shape.units[event.unit].gather_bytes : 0;
      sum += static_cast<double>(again) / rates.link_bytes_per_second;
    }
  }
  return sum;
}

double chain(const std::vector<StepEvent>& events) {
  double sum = 0;
  for (const auto& event : events) sum += event.critical ? event.end - event.begin : 0;
  return sum;
}

}  // namespace

TEST_CASE("one unit is gathered ahead, and its reduction runs beside the next unit's backward") {
  const auto time = simulate(two_blocks(), one_a_second());
  // Gather of block 1: 0 to 4. Forward: 4 to 24, beside it the gather of block 2. Backward gathers block 2 again, 24 to
  // 28, runs until 68, and waits for the reduction of block 1.
  CHECK(time.seconds == 74);
  CHECK(time.compute == 60);
  CHECK(time.exposed_gather == 8);
  CHECK(time.exposed_reduce == 6);
  CHECK(time.offload == 0);
  using enum StepActivity;
  const std::vector<std::pair<StepActivity, double>> chain{{Backward, 40}, {Forward, 20}, {Gather, 8}, {Reduce, 6}};
  const bool same = critical_parts(simulate_events(two_blocks(), one_a_second())) == chain;
  CHECK(same);
}

TEST_CASE("without prefetch every gather is waited for in full") {
  auto shape = two_blocks();
  shape.forward_prefetch = shape.backward_prefetch = 0;
  const auto time = simulate(shape, one_a_second());
  // The last one stands behind block 2's reduction, since a group's collectives keep their order.
  CHECK(time.exposed_gather == 3 * 4 + (6 + 4));
  CHECK(time.seconds == 60 + 22 + 6);
}

TEST_CASE("units that stay until backward are gathered once, and the root always") {
  auto shape = two_blocks();
  shape.units[0] = unit(2, 3, 5, 7);
  CHECK(events_of(shape, StepActivity::Gather) == 5);
  shape.gather_again_in_backward = false;
  CHECK(events_of(shape, StepActivity::Gather) == 3);
  // Root's gather 5, block 1's 4; 20 and the head's 2 forward; 3 and 40 backward; block 1's sum 6, then the root's 7.
  CHECK(simulate(shape, one_a_second()).seconds == 5 + 4 + 22 + 43 + 6 + 7);
}

TEST_CASE("the next unit's reduction waits for the one before, as the reducer does to bound memory") {
  const auto shape = two_blocks(0, 50);
  const auto time = simulate(shape, one_a_second());
  // Block 2's sum: 40 to 90. Block 1's backward ends at 60 and waits until 90.
  CHECK(time.seconds == 90 + 50);
  CHECK(time.exposed_reduce == 30 + 50);
  // With a third block, 30 to 50, its sum ends at 100, and only then block 1's long backward begins.
  auto longer = shape;
  longer.units.push_back(unit(10, 20, 0, 50));
  longer.units[1] = unit(10, 100, 0, 0);
  CHECK(simulate(longer, one_a_second()).seconds == 100 + 100);
}

TEST_CASE("gradients are reduced with the last micro-batch, and units kept between are gathered once") {
  auto shape = two_blocks();
  shape.micro_batches = 3;
  CHECK(events_of(shape, StepActivity::Reduce) == 2);
  CHECK(events_of(shape, StepActivity::Gather) == 3 * 4);
  shape.keep_gathered = true;
  CHECK(events_of(shape, StepActivity::Gather) == 2);
  CHECK(simulate(shape, one_a_second()).seconds == 4 + 3 * 60 + 6);
  shape.reduce_every_micro_batch = true;
  CHECK(events_of(shape, StepActivity::Reduce) == 6);
}

TEST_CASE("ddp reduces a bucket as soon as gradients have filled it, in the middle of a unit too") {
  auto shape = two_blocks(0, 10);
  shape.bucket_bytes = 10;
  CHECK(simulate(shape, one_a_second()).seconds == 60 + 10);
  shape.bucket_bytes = 20;
  CHECK(simulate(shape, one_a_second()).seconds == 60 + 20);
  shape.bucket_bytes = 5;
  CHECK(simulate(shape, one_a_second()).seconds == 60 + 5);
  shape.first_bucket_bytes = 1;  // 1, 5, 5, 5, 4
  CHECK(events_of(shape, StepActivity::Reduce) == 5);
  CHECK(simulate(shape, one_a_second()).seconds == 60 + 4);
  shape.units[0].reduce_bytes = 8;  // the root's gradients come last, with what block 1 has left
  CHECK(simulate(shape, one_a_second()).seconds == 60 + 12);
}

TEST_CASE("hsdp sums over copies after the shards' sum, on their own link if there is one") {
  auto shape = two_blocks(0, 4);
  for (std::size_t i : {1, 2}) shape.units[i].copies_bytes = 3;
  auto rates = one_a_second();
  rates.copies_bytes_per_second = 1;
  // At 60 block 2's sum over copies begins, 60 to 63, and block 1's over shards, 60 to 64, then over copies.
  CHECK(simulate(shape, rates).seconds == 67);
  // Of three blocks, the last one's sum over copies, 70 to 85, is hidden by block 1's backward.
  auto three = shape;
  three.units.push_back(three.units.back());
  for (std::size_t i : {1, 2, 3}) three.units[i].copies_bytes = 15;
  CHECK(simulate(three, rates).seconds == 90 + 15 + 15);
  rates.copies_bytes_per_second = 0;
  // On one link both share until 66; block 1's last byte comes at 67.
  CHECK(simulate(shape, rates).seconds == 70);
}

TEST_CASE("shards on the host come over the bus before their gather, and gradients go after their reduction") {
  auto shape = two_blocks();
  shape.units[1].bus_in_bytes = 3;
  shape.units[1].bus_out_bytes = 2;
  auto time = simulate(shape, one_a_second());
  CHECK(time.seconds == 3 + 74 + 2);
  CHECK(time.offload == 5);
  shape.optimizer_bytes = 8;
  shape.offload_bytes = 11;  // moments stream while the optimizer steps
  time = simulate(shape, one_a_second());
  CHECK(time.optimizer == 8);
  CHECK(time.offload == 5 + 3);
  // One sum at a time goes to the host: block 3's waits for block 4's, 80 to 130, and so does block 1's backward.
  StepShape four;
  four.units = {unit(0, 0, 0, 0), unit(10, 100, 0, 1), unit(10, 20, 0, 1), unit(10, 20, 0, 1), unit(10, 20, 0, 1)};
  four.units[3].bus_out_bytes = four.units[4].bus_out_bytes = 50;
  CHECK(simulate(four, one_a_second()).seconds == 130 + 100 + 1);
}

TEST_CASE("a transfer that takes cores slows down what is computed beside it") {
  auto rates = one_a_second();
  rates.computing_lost_to_transfers = 0.5;
  const auto time = simulate(two_blocks(), rates);
  // Beside 4 of block 2's gather, 4 of block 1's and 6 of block 2's reduction: half of each is lost.
  CHECK(time.compute == 60 + 2 + 2 + 3);
  CHECK(time.seconds == 74 + 7);
}

TEST_CASE("what a pass reads and writes whatever the tokens takes its time beside the operations") {
  auto shape = two_blocks();
  shape.units[1].forward_memory_bytes = 3;
  shape.units[2].backward_memory_bytes = 5;
  CHECK(simulate(shape, one_a_second()).compute == 60 + 8);
  shape.micro_batches = 2;
  CHECK(simulate(shape, one_a_second()).compute == 2 * (60 + 8));
}

TEST_CASE("a link gives each transfer its share, in the order of issue within a group") {
  Link in_order(1, 0, 1), shared(1, 0, 2), late(1, 3, 2);
  const auto run = [](Link& link, double second_at) {
    link.issue(0, 0, 0, 10);
    double now = 0;
    const auto go_to = [&](double until) {
      while (now < until && link.next_change(now) <= until) {
        const auto next = link.next_change(now);
        link.advance(now, next);
        now = next;
      }
      link.advance(now, until);
      now = until;
    };
    go_to(second_at);
    link.issue(0, now, now, 10);
    go_to(100);
    return std::pair(link[0].end, link[1].end);
  };
  CHECK(run(in_order, 5) == std::pair(10.0, 20.0));
  CHECK(in_order[1].begin == 10);
  CHECK(in_order[1].after == 0);
  CHECK(run(shared, 5) == std::pair(15.0, 20.0));
  CHECK(run(late, 5) == std::pair(18.0, 23.0));  // alone from 3 to 8, shared until 18
}

TEST_CASE("whatever the shape, parts add up to the step and the critical chain fills it") {
  std::mt19937 random(20);
  for (int i = 0; i < 600; ++i) {
    const auto drawn = draw_step(random);
    CAPTURE(i);
    const auto time = simulate(drawn.shape, drawn.rates);
    const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b)); };
    CHECK(near(time.compute + time.exposed() + time.optimizer, time.seconds));
    const auto events = simulate_events(drawn.shape, drawn.rates);
    CHECK(near(chain(events), time.seconds));
    double computes_until = 0;
    for (const auto& event : events) {
      CHECK(event.end >= event.begin);
      CHECK(event.end <= time.seconds + 1e-9);
      if (event.stream != Stream::Compute) continue;
      CHECK(event.begin >= computes_until - 1e-9);
      computes_until = event.end;
    }
  }
}

TEST_CASE("no step is shorter than its computing alone, or than what its link carries") {
  std::mt19937 random(21);
  for (int i = 0; i < 600; ++i) {
    const auto drawn = draw_step(random);
    CAPTURE(i);
    double flops = 0;
    for (const auto& each : drawn.shape.units) flops += each.forward_flops + each.backward_flops;
    const auto time = simulate(drawn.shape, drawn.rates);
    const auto computes = flops * static_cast<double>(drawn.shape.micro_batches);
    CHECK(time.compute == doctest::Approx(computes));
    CHECK(time.seconds >= computes - 1e-9);
    CHECK(time.seconds >= alone(drawn, true) - 1e-9);
    // Where transfers take all cores, nothing runs beside them.
    auto rates = drawn.rates;
    rates.computing_lost_to_transfers = 1;
    CHECK(simulate(drawn.shape, rates).seconds >= computes + alone(drawn, true) - 1e-9);
  }
}

TEST_CASE("a faster machine never makes a step longer") {
  std::mt19937 random(22);
  for (int i = 0; i < 400; ++i) {
    const auto drawn = draw_step(random);
    CAPTURE(i);
    const auto before = simulate(drawn.shape, drawn.rates).seconds;
    for (auto rate : {&Rates::flops, &Rates::link_bytes_per_second, &Rates::bus_bytes_per_second,
                      &Rates::memory_bytes_per_second}) {
      auto rates = drawn.rates;
      rates.*rate *= 2;
      CHECK(simulate(drawn.shape, rates).seconds <= before + 1e-9);
    }
  }
}

TEST_CASE("where nothing runs beside anything, a step is the sum of its parts") {
  std::mt19937 random(23);
  for (int i = 0; i < 200; ++i) {
    auto drawn = draw_step(random);
    auto& shape = drawn.shape;
    shape.forward_prefetch = shape.backward_prefetch = shape.offload_bytes = shape.bucket_bytes = 0;
    for (auto& each : shape.units) each.bus_in_bytes = each.bus_out_bytes = each.copies_bytes = 0;
    for (std::size_t u = 1; u < shape.units.size(); ++u) shape.units[u].reduce_bytes = 0;
    double sum = 0;
    for (const auto& event : simulate_events(shape, drawn.rates)) {
      const bool waits = event.what == StepActivity::GatherWait || event.what == StepActivity::ReduceWait;
      sum += waits ? 0 : event.end - event.begin;
    }
    CAPTURE(i);
    CHECK(simulate(shape, drawn.rates).seconds == doctest::Approx(sum));
  }
}

TEST_CASE("shapes and rates that no step has are refused by name") {
  CHECK_THROWS_WITH_AS(simulate({}, one_a_second()), doctest::Contains("number of units"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(simulate(two_blocks(), {}), doctest::Contains("link_bytes_per_second"), std::invalid_argument);
  auto shape = two_blocks();
  shape.micro_batches = 4'000'000'000;
  CHECK_THROWS_WITH_AS(simulate(shape, one_a_second()), doctest::Contains("micro_batches"), std::invalid_argument);
  shape = two_blocks();
  shape.units[1].reduce_bytes = -1;
  CHECK_THROWS_WITH_AS(simulate(shape, one_a_second()), doctest::Contains("reduce_bytes of unit 1"),
                       std::invalid_argument);
  shape.units[1].reduce_bytes = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_AS(simulate(shape, one_a_second()), std::invalid_argument);
  shape = two_blocks();
  shape.units[2].gather_again_bytes = -2;
  CHECK_THROWS_WITH_AS(simulate(shape, one_a_second()), doctest::Contains("gather_again_bytes"), std::invalid_argument);
  auto rates = one_a_second();
  rates.flops = std::nan("");
  CHECK_THROWS_WITH_AS(simulate(two_blocks(), rates), doctest::Contains("flops"), std::invalid_argument);
  rates = one_a_second();
  rates.computing_lost_to_transfers = 1.5;
  CHECK_THROWS_AS(simulate(two_blocks(), rates), std::invalid_argument);
}
