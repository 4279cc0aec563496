// SPDX-License-Identifier: Apache-2.0
// The environment of a plan as one image, made by the sealift-install that makes it at a site: the plan is written as a
// bundle for nobody else, sealed by a key that lives as long as that takes, and that program lays it out behind its own
// gate. So there is one code that knows what a generation is, and both sides get the same bytes.
#pragma once

#include <filesystem>
#include <functional>
#include <map>

#include "packager/pack/pack_plan.hpp"
#include "packager/pack/write_bundle.hpp"

namespace sealift::packager {

// The image's path in each bundle that carries one.
inline constexpr const char* kImageEntry = "environment/image.sqfs";

struct EnvironmentImage {
  PlannedEntry entry;      // its file lies in the scratch folder
  bool mended = false;     // as of WrittenBundle
  bundle::Manifest draft;  // of the bundle that it was made of
};

// Gets that bundle while it is there, whole and sealed, and the fingerprint of its root.
using OnDraft = std::function<void(const std::filesystem::path& folder, const bundle::Digest& fingerprint)>;

// `scratch` is an empty folder with room for the bundle, for what it unpacks to and for the image; `installer` is a
// sealift-install that runs here. Throws Space before anything is written, what write_bundle throws, and the
// installer's own refusal, with its exit code, where the plan cannot be laid out.
EnvironmentImage make_environment_image(const PackPlan& plan, const std::filesystem::path& scratch,
                                        const std::filesystem::path& installer, const Stock& stock,
                                        bundle::Progress& progress, const OnDraft& on_draft = {});

// Adds the image to the plan that it was made of. `alone`: then nothing that it was made of is carried.
void add_image(PackPlan& plan, const EnvironmentImage& image, bool alone);

}  // namespace sealift::packager
