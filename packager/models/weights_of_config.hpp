// SPDX-License-Identifier: Apache-2.0
// Whether the weights of a model are those of its config.json: names that a wrapper left, rows of the embedding, a head
// that is tied and stored. transformers loads some of these with random values, and none of its own words stop a
// packer.
#pragma once

#include "packager/models/weight_sets.hpp"

namespace sealift::packager {

// Looks at the set that transformers takes. A model that brings its own code may name its tensors as it likes, so there
// a fault is a warning. Reads the values of an embedding and a head where both are stored and tied.
void check_weights_of_config(const ModelFilePlaces& files, const StoredFiles& stored, std::vector<std::string>& faults,
                             std::vector<std::string>& warnings);

}  // namespace sealift::packager
