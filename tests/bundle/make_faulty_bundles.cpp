// SPDX-License-Identifier: Apache-2.0
// Writes small bundles, good ones and one for each fault that verification knows, each into a folder of its own, and
// prints "NAME FINGERPRINT" a line: so that two verifiers can be held to the same verdict on all of them.
//   make_faulty_bundles FOLDER
#include "tests/bundle/faulty/faulty_bundles.hpp"

using namespace sealift::test;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  faulty_folder = argv[1];
  signers_and_roots();
  bad_seals();
  bad_roots();
  bad_manifests();
  deltas();
  recovery_data();
  bad_folders();
}
