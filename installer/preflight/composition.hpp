// SPDX-License-Identifier: Apache-2.0
// What a new generation will consist of, as the record that it gets: a bundle by itself, a bundle with what was added
// to the generation before it, or the current generation with a bundle of models, data or packages added. Made before
// anything is written; install fills in what was checked.
#pragma once

#include <optional>

#include "installer/generations/generation_record.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

// What becomes of bundles that were added to the current generation.
enum class Additions {
  Keep,  // the new generation has them too
  Drop,  // it has the bundle alone
  Add,   // the bundle itself is one more, or the next version of one
};

// The generation in use, as far as it matters here.
struct CurrentGeneration {
  GenerationRecord record;
  bool has_interpreter = false;
};

// Whether the bundle places the environment's interpreter, as a file or somewhere in a tree that makes its root.
bool brings_interpreter(const bundle::Manifest& manifest);

// Whether both were made from the same bundles.
bool same_bundles(const GenerationRecord& one, const GenerationRecord& other);

// The record of what is to be, without number, audit, self-test and host. Throws Conflict for an addition that brings
// an interpreter, packages for one or variables, that has the environment's own name, or that has nothing to be added
// to, or for a file where another bundle of the environment has one; Revoked when something that would be kept was
// withdrawn since.
GenerationRecord composed(const bundle::VerifiedBundle& bundle, const std::optional<CurrentGeneration>& current,
                          Additions additions);

// What to do where two bundles of an environment claim one path; `adds`: the applied bundle is added.
std::string way_beside_added(bool adds);

// What the generation's programs are tested by: the bundle's own environment, or, of an addition, the current one's.
bundle::Environment environment_of(const bundle::VerifiedBundle& bundle, const GenerationRecord& record);

}  // namespace sealift::installer
