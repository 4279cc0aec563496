// SPDX-License-Identifier: Apache-2.0
// The manifest: everything that a bundle says of itself, as plain structs. manifest_json.hpp reads and writes it,
// manifest_check.hpp says which values are a manifest; start here to learn what a bundle is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/manifest/target.hpp"

namespace sealift::bundle {

inline constexpr std::uint64_t kFormatVersion = 2;
inline constexpr std::uint64_t kInstallerLevel = 8;  // grows when bundles need something that older installers lack
inline constexpr std::uint64_t kDefaultChunkSize = std::uint64_t{4} << 20;
inline constexpr std::uint64_t kMinChunkSize = std::uint64_t{4} << 10;
inline constexpr std::uint64_t kMaxChunkSize = std::uint64_t{16} << 20;  // a reader holds one chunk for each thread
inline constexpr std::uint64_t kMaxPayloadSize = std::uint64_t{1} << 50;
inline constexpr std::uint64_t kMaxChunks = std::uint64_t{2} << 20;  // their list is read whole: 64 MiB
inline constexpr std::size_t kMaxEntries = 5'000'000;
inline constexpr std::size_t kMaxVolumes = 10'000;
// The installer's own file in the root of every generation; no entry may be placed there.
inline constexpr std::string_view kGenerationRecord = "generation.json";

// What an entry is, and so what the installer makes of it.
enum class EntryKind {
  Wheel,     // a Python wheel as it was published; unpacked into site-packages
  Tree,      // a tar archive of files and links; unpacked into a folder of the environment
  File,      // one file, such as a program
  Squashfs,  // the environment that the others make, as one image that is mounted; never installed
};

// "wheel", "tree", "file" or "squashfs", as manifests write it.
std::string name_of(EntryKind kind);

// How an entry's bytes are stored in the payload.
enum class Encoding {
  Identity,  // stored as it is
  Zstd,      // stored as one zstd frame
  Patch,     // of a Wheel: without what an item of the target's store has (wheel/patched_wheel.hpp)
};

// "identity", "zstd" or "patch", as manifests write it.
std::string name_of(Encoding encoding);

// Where a wheel comes from, as its packer says.
enum class WheelBuild {
  None,         // as others published it; or nobody said
  Sandboxed,    // built by its packer from source, in a sandbox without a network
  Unsandboxed,  // built by its packer outside of one: the source's code could reach all that the packer can
};

// "sandboxed" or "unsandboxed", as manifests write it.
std::string name_of(WheelBuild build);

// One named item of the payload. Its stored bytes are payload[offset, offset + stored_size).
struct Entry {
  SafePath path = SafePath::parse("unnamed", "");
  EntryKind kind = EntryKind::File;
  std::uint64_t size = 0;  // bytes after decoding
  Digest sha256;           // of those
  Encoding encoding = Encoding::Identity;
  std::uint64_t offset = 0;
  std::uint64_t stored_size = 0;
  Digest stored_sha256;               // of the stored bytes: the blob's name in the payload
  std::uint64_t installed_size = 0;   // bytes on disk once unpacked, each file rounded up to 4 KiB
  std::uint64_t installed_files = 0;  // files, folders and links once unpacked
  bool executable = false;            // for a File
  // Names these stored bytes: a digest over the digests of their chunks (chunk_layout.hpp). The manifest says it of an
  // absent entry; of the others readers of the chunk list compute it.
  Digest content{};
  // The target's store has it, for which a delta is made; or the image has it, which is carried alone. Encoding, offset
  // and stored_* say nothing.
  bool absent = false;
  Digest base{};                        // of a Patch: the content of the wheel that it builds on, in the target's store
  WheelBuild build = WheelBuild::None;  // of a Wheel
  // Of a Squashfs, and of nothing else: the root hash of its tree for dm-verity (SHA-256, blocks of 4 KiB, no salt).
  std::optional<Digest> verity = {};

  bool operator==(const Entry&) const = default;
};

// One file of the payload; the volumes in order are the payload.
struct Volume {
  std::string name;        // NAME-VERSION.vol001 and so on
  std::uint64_t size = 0;  // bytes; a multiple of the chunk size, but for the last volume

  bool operator==(const Volume&) const = default;
};

// What mends a payload that a medium has damaged: recovery chunks by Reed and Solomon's code (recovery_layout.hpp says
// which bytes they are of). They lie in files of their own, and may be left out.
struct Recovery {
  std::uint64_t groups = 0;   // piece i of the payload is in group i mod groups
  std::uint64_t parity = 0;   // recovery chunks of each group: as many lost pieces of it can be mended
  Digest list_digest;         // of NAME-VERSION.recovery: the digests of all recovery chunks
  std::vector<Volume> files;  // NAME-VERSION.rec001 and so on, each of whole recovery chunks

  bool operator==(const Recovery&) const = default;
};

// The byte stream that the volumes hold, and how its chunks are checked.
struct Payload {
  std::uint64_t size = 0;                            // bytes, never 0
  std::uint64_t chunk_size = kDefaultChunkSize;      // bytes, a power of two; the last before a cut may be shorter
  DigestAlgorithm digest = DigestAlgorithm::Sha256;  // of every chunk and of their list
  Digest chunk_list_digest;
  std::vector<Volume> volumes;
  std::optional<Recovery> recovery = {};
  // Where a chunk begins although the one before is not full: at the ends of entries. Sorted; not written, since the
  // entries say it.
  std::vector<std::uint64_t> cuts = {};

  // How many chunks there are; a ChunkLayout tells where.
  std::uint64_t chunk_count() const;
  bool operator==(const Payload&) const = default;
};

// A file that travels beside the bundle, outside the payload: the installer itself.
struct Companion {
  std::string name;
  std::uint64_t size = 0;
  Digest sha256;

  bool operator==(const Companion&) const = default;
};

// glibc's loader and libraries, which a bundle may bring where the target's are too old: they lie in lib/runtime, and
// sealift-start starts the interpreter and the programs through them. Of the target only its kernel counts then.
struct CarriedRuntime {
  GlibcVersion glibc = {};
  std::string kernel = {};  // the oldest one that this glibc runs on: "3.2.0"

  bool operator==(const CarriedRuntime&) const = default;
};

// How the entries make a Python prefix. Paths are relative to the root of the generation.
struct Environment {
  struct Placement {
    SafePath entry;
    std::string into;  // for a Tree the folder ("" = the root), for a File its path; empty for a Wheel
    // For a Wheel: files, by their place below the root, that another entry owns. Sorted.
    std::vector<SafePath> left_out = {};
    // For a Wheel: folders below site_packages that are in another wheel's package, and may have files of this one.
    std::vector<SafePath> shared = {};  // sorted

    bool operator==(const Placement&) const = default;
  };

  SafePath interpreter = SafePath::parse("bin/python3", "");
  SafePath site_packages = SafePath::parse("lib/python3/site-packages", "");
  std::vector<Placement> placements;  // in the order they are made
  std::vector<std::string> imports;   // modules that the self-test imports
  std::vector<Digest> startup_files;  // .pth files that may run code when Python starts; sorted, allowed by the job
  std::optional<CarriedRuntime> runtime;

  bool operator==(const Environment&) const = default;
};

// What the seal signs. Names are plain names (fields.hpp), versions only grow.
struct Manifest {
  std::string name;
  std::string channel;  // name and channel together are one stream of versions
  std::uint64_t version = 0;
  std::string created;  // RFC 3339, UTC
  Target target;
  GlibcVersion glibc_floor;           // what the carried ELF files really need; never above what they run with
  std::uint64_t installer_level = 1;  // at least needed_installer_level
  std::uint64_t rollback_floor = 0;   // once installed, lower versions than this are refused; at most `version`
  std::string driver_floor;  // the oldest driver of NVIDIA's that the carried CUDA runs with; empty: nobody said
  // What the CUDA code of each component is for, in nvcc's words: "torch-2.11.0" -> "sm_75 sm_80 compute_90".
  std::map<std::string, std::string> gpu_code;
  std::vector<std::string> overruled;  // checks against the profile that the job overruled: "driver"; sorted
  // Of a delta, which has absent entries or patches: the inventory that it was made for.
  std::optional<Digest> base;
  Payload payload;
  std::vector<Entry> entries;  // sorted by path
  Environment environment;
  std::vector<Companion> companions;

  // NAME-VERSION, the stem of every file name.
  std::string stem() const { return name + "-" + std::to_string(version); }
  // The entry of that path, or nullptr.
  const Entry* find(const SafePath& path) const;
  // The environment as one image, or nullptr where none is carried.
  const Entry* image() const;
  bool operator==(const Manifest&) const = default;
};

// Whether the environment is carried as an image and in no other way: what it was made of is absent.
bool carries_image_alone(const Manifest& manifest);

// The file names of the wheels that were built in this way; in the order of the entries.
std::vector<std::string> wheels_built(const Manifest& manifest, WheelBuild build);

// Wheels that may have files in a package of another one, each with the folder: "NAME.whl: FOLDER".
std::vector<std::string> packages_shared(const Manifest& manifest);

// For people: up to five of these names, and how many more there are; "none" of none.
std::string few_of(const std::vector<std::string>& names);

// The level of installer that a manifest needs: 8 with an image, 7 with shared packages, 6 with wheels that its packer
// built, 5 with patches or recovery data, 4 with GPU code or overruled checks, 3 with start-up files, 2 when it uses
// what else installers of level 1 lack, else 0, so that older ones read it.
std::uint64_t needed_installer_level(const Manifest& manifest);

}  // namespace sealift::bundle
