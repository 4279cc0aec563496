// SPDX-License-Identifier: Apache-2.0
// doctest's main, compiled once for all tests of the packager.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
