// SPDX-License-Identifier: Apache-2.0
// doctest's main, compiled once for all test programs of the bundle half; those of the training half bring their own.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
