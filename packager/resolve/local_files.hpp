// SPDX-License-Identifier: Apache-2.0
// Files of this machine that an answer of uv's names: only an index or a list of links that lies here itself may name
// one. An index elsewhere that does would have a file of the packer's, of its choice, carried.
#pragma once

#include "packager/lock/locked_indexes.hpp"
#include "packager/resolve/pylock.hpp"

namespace sealift::packager {

// Throws Format, naming the first file that lies beside none of the local indexes.
void require_own_files(const PythonChoice& choice, const LockedIndexes& indexes);

}  // namespace sealift::packager
