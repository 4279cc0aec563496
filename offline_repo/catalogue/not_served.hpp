// SPDX-License-Identifier: Apache-2.0
// Why something of a bundle is not served: the one place of these sentences, in the languages of pages.
// `stem` is NAME-VERSION of the bundle; paths, names and digests stand as they are.
#pragma once

#include <cstddef>
#include <string>

#include "offline_repo/catalogue/in_both.hpp"

namespace sealift::offline_repo {

// A wheel that travels as a patch, or whose bytes on the medium are wrong.
InBoth patched_wheel(const std::string& stem, const std::string& path);
InBoth rotten_wheel(const std::string& stem, const std::string& path);
// `image`: NAME:TAG.
InBoth image_in_part(const std::string& stem, const std::string& image);
// `path`: the first file of the repository that a delta leaves out (`absent`), or whose bytes are wrong.
InBoth rpms_in_part(const std::string& stem, const std::string& path, bool absent);
InBoth missing_debian_package(const std::string& stem, const std::string& file);
// `id`: of the model or data set; `count` of its files are nowhere, among them `path`.
InBoth commit_in_part(const std::string& id, const std::string& commit, std::size_t count, const std::string& path);

// A name under which two bundles have different bytes.
InBoth the_bundle(const std::string& stem);
InBoth the_wheel(const std::string& file_name);
InBoth file_of_model(const std::string& path, const std::string& commit);
InBoth file_of_data(const std::string& path, const std::string& commit);
// A branch of ModelScope moves without a commit, so the bundle's time stands with it.
InBoth file_of_modelscope(const std::string& path, const std::string& commit, const std::string& created);
// What a bundle has other bytes for, and than which `other` one in `folder`; `newer`: that is a newer version of it.
InBoth other_bytes(const InBoth& name, const std::string& other, const std::string& folder, bool newer);
InBoth bundle_left_out(const std::string& stem, const InBoth& why);

}  // namespace sealift::offline_repo
