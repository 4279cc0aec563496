// SPDX-License-Identifier: Apache-2.0
// The runner of the installer's tests.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
