// SPDX-License-Identifier: Apache-2.0
// Whether a header of the core brings its bodies, which stand in a file beside it, named as it and `_inl`.
// Header-only, as a program gets the core by default, it does, and they are inline. Where a program has many sources,
// all but one may see the declarations alone: SEALIFT_TRAIN_COMPILED is defined for the program, and train_compiled.cpp
// is compiled into it. Our own programs are built so; bodies cost more to compile than LibTorch's headers let one see.
#pragma once

#ifndef SEALIFT_TRAIN_COMPILED
#define SEALIFT_TRAIN_BODIES
#define SEALIFT_BODY inline  // what is virtual is declared so too, else every source would emit the class's table
#else
#define SEALIFT_BODY
#endif
