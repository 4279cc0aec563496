// SPDX-License-Identifier: Apache-2.0
// Clones or reads a source and writes it as one tar; see source_tree.hpp.
#include "packager/python/source_tree.hpp"

#include "packager/files/tree.hpp"
#include "packager/host/process.hpp"
#include "packager/host/url.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

void git(std::vector<std::string> words, const SourcePackage& source) {
  words.insert(words.begin(), "git");
  const ProcessResult result = run_process(words, {{"GIT_TERMINAL_PROMPT", "0"}, {"GIT_LFS_SKIP_SMUDGE", "1"}});
  if (result.exit_code != 0)
    throw Error(ErrorCode::Network, {.what = "git cannot fetch " + source.title(),
                                     .where = without_credentials(source.url) + " at " + source.commit,
                                     .got = result.err});
}

fs::path clone(const SourcePackage& source, const fs::path& scratch) {
  const fs::path folder = scratch / (source.name + ".git");
  fs::remove_all(folder);
  git({"clone", "--quiet", "--no-checkout", "--", source.url, folder.string()}, source);
  git({"-C", folder.string(), "checkout", "--quiet", "--detach", source.commit, "--"}, source);
  git({"-C", folder.string(), "submodule", "--quiet", "update", "--init", "--recursive"}, source);
  return folder;
}

bool left_out(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  return name == ".git" || name == "__pycache__" || name.ends_with(".pyc") ||
         (entry.is_directory() && fs::exists(entry.path() / "pyvenv.cfg"));
}

void gather(const fs::path& folder, const std::string& place, Tree& tree) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (left_out(entry)) continue;
    const std::string inner = place + entry.path().filename().string();
    switch (entry.symlink_status().type()) {
      case fs::file_type::directory:
        gather(entry.path(), inner + "/", tree);
        break;
      case fs::file_type::symlink:
        tree[inner] = {.text = fs::read_symlink(entry.path()).string(), .link = true};
        break;
      case fs::file_type::regular:
        tree[inner] = {.source = entry.path(),
                       .executable = (entry.status().permissions() & fs::perms::owner_exec) != fs::perms::none};
        break;
      default:
        break;  // sockets and pipes are not source
    }
  }
}

}  // namespace

bundle::Digest store_source(const SourcePackage& source, const Cache& cache, const fs::path& scratch) {
  const fs::path folder = source.kind == SourceKind::Git ? clone(source, scratch) : source.folder;
  Tree tree;
  gather(folder, "", tree);
  const fs::path file = scratch / (source.name + ".tar");
  fs::remove(file);
  const TreeTar tar = write_tree_tar(tree, file);
  cache.adopt(file, tar.sha256);
  return tar.sha256;
}

}  // namespace sealift::packager
