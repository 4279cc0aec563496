// SPDX-License-Identifier: Apache-2.0
// The calls by which a process could reach the kernel's keys, as a filter for bwrap --seccomp. A session keyring of its
// own is not enough: a user's keyrings are open to every process of that user who finds their numbers.
#pragma once

#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

// A file without a name that holds the filter, at its begin. add_key, request_key and keyctl are then unknown to the
// system (ENOSYS), in each of the ways that its machine has to make a call. Throws Io.
bundle::Descriptor no_keys_filter();

}  // namespace sealift::packager
