// SPDX-License-Identifier: Apache-2.0
// Carries what the programs of this folder share: the precompiled header, and Gloo's turns.
#include <sealift/train/comm/gloo_turns.hpp>
