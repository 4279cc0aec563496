// SPDX-License-Identifier: Apache-2.0
// Carries the precompiled header that the tests of this folder share.
