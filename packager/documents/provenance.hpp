// SPDX-License-Identifier: Apache-2.0
// Where a bundle comes from, as an in-toto Statement (v1) with a SLSA provenance predicate (v1). Unsigned: it repeats
// what the signed manifest says, and with a lock where the bytes were fetched and how wheels were built.
// Source: slsa.dev, "Provenance" v1.0; in-toto/attestation, "Statement" and "ResourceDescriptor" v1.
#pragma once

#include <string>

#include "packager/documents/bundle_facts.hpp"

namespace sealift::packager {

std::string provenance_json(const BundleFacts& facts);

}  // namespace sealift::packager
