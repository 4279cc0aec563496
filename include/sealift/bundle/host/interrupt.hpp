// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM as an exception: work stops at the next place that asks, destructors remove what is half-done, and
// main then dies of the signal after all. What is worth keeping (downloads, built wheels) is in the cache by then.
#pragma once

namespace sealift::bundle {

// Not an Error: nothing is wrong, and nobody but main may catch it for good.
struct Interrupted {
  int signal;
  const char* next = "the same command goes on from here";  // what main says
};

// For main. The first signal is remembered, the second one kills at once. What the caller ignores stays ignored.
void catch_interrupts();

// For the main of a program that may be killed at any instruction anyway: the first signal writes one line to stderr,
// which must outlive the process, and then ends it as it would have without.
void say_when_interrupted(const char* line);

// Throws Interrupted when a signal has come. To be asked wherever work takes long, on any thread that may throw.
void stop_if_interrupted();

}  // namespace sealift::bundle
