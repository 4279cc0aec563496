// SPDX-License-Identifier: Apache-2.0
// Every body of the training core, compiled once for a program whose other sources see declarations (bodies.hpp).
// The target sealift_train_compiled is this file; a program with the installed headers adds it to its own sources.
#define SEALIFT_TRAIN_BODIES
#include <sealift/train.hpp>
