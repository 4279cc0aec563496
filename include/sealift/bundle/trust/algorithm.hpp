// SPDX-License-Identifier: Apache-2.0
// The kinds of signature that Sealift knows, as one table. A key has exactly one spelling here: a fixed prefix, then
// the point; whatever else DER can say (explicit parameters, compressed points) matches no row.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sealift::bundle {

enum class Algorithm { Ed25519, EcdsaP256, EcdsaP384, Sm2 };

struct AlgorithmFacts {
  Algorithm algorithm;
  std::string_view name;         // as root files write it
  const char* key_type;          // OpenSSL's name for making a key
  const char* group;             // of an "EC" key
  const char* digest;            // that the message goes through; null: the algorithm has its own
  std::string_view spki_prefix;  // hex of the SubjectPublicKeyInfo up to the point
  std::size_t point_size;        // bytes: the rest of the SubjectPublicKeyInfo
  std::string_view order;        // hex of the group's order n; r and s of a signature are in [1, n-1]
};

inline constexpr AlgorithmFacts kAlgorithms[] = {
    {Algorithm::Ed25519, "ed25519", "ED25519", nullptr, nullptr, "302a300506032b6570032100", 32, ""},
    {Algorithm::EcdsaP256, "ecdsa-p256", "EC", "P-256", "SHA256",
     "3059301306072a8648ce3d020106082a8648ce3d03010703420004", 64,
     "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"},
    {Algorithm::EcdsaP384, "ecdsa-p384", "EC", "P-384", "SHA384", "3076301006072a8648ce3d020106052b8104002203620004",
     96, "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973"},
    {Algorithm::Sm2, "sm2", "SM2", nullptr, "SM3", "3059301306072a8648ce3d020106082a811ccf5501822d03420004", 64,
     "fffffffeffffffffffffffffffffffff7203df6b21c6052b53bbf40939d54123"}};

// The signer's identity that goes into an SM2 signature (GM/T 0009). Libraries differ in their default, so it is
// always said.
inline constexpr std::string_view kSm2Identity = "1234567812345678";

inline constexpr const AlgorithmFacts& facts_of(Algorithm algorithm) {
  return kAlgorithms[static_cast<std::size_t>(algorithm)];
}
// As root files write it.
std::string name_of(Algorithm algorithm);
// Null for a name that this version does not know.
const AlgorithmFacts* find_algorithm(std::string_view name);
// "ed25519, ecdsa-p256, ecdsa-p384 or sm2"
std::string known_algorithms();

}  // namespace sealift::bundle
