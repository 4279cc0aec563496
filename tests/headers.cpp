// SPDX-License-Identifier: Apache-2.0
// Nothing: it carries the precompiled header of the tests of the bundle half.
