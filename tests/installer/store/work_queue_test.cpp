// SPDX-License-Identifier: Apache-2.0
// Which piece of work is begun when: by size, within the memory, and not at all after a failure.
#include "installer/store/work_queue.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

using sealift::installer::WorkOrder;
using sealift::installer::WorkQueue;

TEST_CASE("the largest whole goes first, of it the largest part, the rest in payload order, also what comes later") {
  WorkQueue queue(100);
  std::string done;
  const auto piece = [&](char name) { return [&done, name] { done += name; }; };
  queue.add({.whole = 0, .part = 0, .place = 7}, 1, piece('f'));
  queue.add({.whole = 0, .part = 0, .place = 3}, 1, piece('e'));
  queue.add({.whole = 50, .part = 0, .place = 9}, 1, [&] {
    done += 'a';
    queue.add({.whole = 50, .part = 0, .place = 9}, 1, piece('d'));
    queue.add({.whole = 50, .part = 20, .place = 12}, 1, piece('c'));
    queue.add({.whole = 50, .part = 30, .place = 14}, 1, piece('b'));
  });
  queue.add({.whole = 40, .part = 99, .place = 0}, 1, piece('-'));
  queue.run(1);
  CHECK(done == "abcd-ef");
}

TEST_CASE("pieces never have more memory at a time than there is, but for one that needs more than that") {
  WorkQueue queue(100);
  std::atomic<int> used{0}, most{0}, alone{0};
  for (int i = 0; i < 200; ++i) {
    const int memory = i == 100 ? 1000 : 20 + i % 40;
    queue.add({.place = static_cast<std::uint64_t>(i)}, static_cast<std::uint64_t>(memory), [&, memory] {
      const int now = used += memory;
      if (memory > 100) alone = now;
      for (int seen = most; memory <= 100 && seen < now && !most.compare_exchange_weak(seen, now);) continue;
      std::this_thread::yield();
      used -= memory;
    });
  }
  queue.run(16);
  CHECK(most.load() <= 100);
  CHECK(most.load() > 0);
  CHECK(alone.load() == 1000);
}

TEST_CASE("after a failure nothing more is begun, and what was begun ends before the failure is thrown") {
  for (const unsigned threads : {1u, 8u}) {
    WorkQueue queue(1000);
    std::atomic<int> begun{0}, ended{0};
    for (std::uint64_t i = 0; i < 1000; ++i)
      queue.add({.place = i}, 1, [&, i] {
        ++begun;
        if (i == 10) throw std::runtime_error("the tenth");
        ++ended;
      });
    CHECK_THROWS_WITH(queue.run(threads), "the tenth");
    CHECK(begun.load() == ended.load() + 1);
    CHECK((threads > 1 || begun.load() == 11));
  }
}
