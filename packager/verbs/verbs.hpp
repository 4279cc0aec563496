// SPDX-License-Identifier: Apache-2.0
// The verbs of sealift-pack, one file each: arguments -> options -> one call -> print. main.cpp lists them in the order
// in which people meet them.
#pragma once

#include "bundle/host/command_line.hpp"

namespace sealift::packager {

// The help of --passphrase-file, which several verbs have.
inline constexpr const char* kPassphraseFile = "a file whose first line opens the key (default: $SEALIFT_PASSPHRASE)";

// And of --unsandboxed-builds.
inline constexpr const char* kUnsandboxedBuilds =
    "build sources and run golden jobs outside of a sandbox, where they reach all that you can; the lock tells builds";

void add_keygen(bundle::Program& program);
void add_root(bundle::Program& program);
void add_root_sign(const bundle::Verb& root);  // below `root`
void add_lock(bundle::Program& program);
void add_create(bundle::Program& program);
void add_sign(bundle::Program& program);
void add_rehearse(bundle::Program& program);
void add_recut(bundle::Program& program);
void add_inspect(bundle::Program& program);
void add_diff(bundle::Program& program);
void add_documents(bundle::Program& program);

}  // namespace sealift::packager
