// SPDX-License-Identifier: Apache-2.0
// Ranks that disagree, fail, die or stop: every other rank must say so, in time, and none may hang or abort.
// Disagreements run in ranks as threads; where a process dies, this program starts itself as a rank of each scenario.
#include <sealift/train.hpp>

#include "tests/support/ranks.hpp"
#include "tests/support/temp_dir.hpp"

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <iostream>

namespace {

using namespace sealift::train;
using sealift::test::on_ranks;

}  // namespace

int main(int argc, char** argv) {
  return doctest::Context(argc, argv).run();
}
