// SPDX-License-Identifier: Apache-2.0
// Clones or reads a source and writes it as one tar; see source_tree.hpp.
#include "packager/builds/source_tree.hpp"

#include "packager/files/tree.hpp"
#include "packager/host/process.hpp"
#include "packager/host/url.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// What a repository could make git start: hooks (its template's too), filters' programs, a monitor, odd transports. The
// user's own configuration is read, because it holds the ways to passwords.
std::string git(std::vector<std::string> words, const SourcePackage& source, const GitLogins& logins) {
  static const std::vector<std::string> kQuiet = {"git",
                                                  "-c",
                                                  "core.hooksPath=/dev/null",
                                                  "-c",
                                                  "core.fsmonitor=false",
                                                  "-c",
                                                  "init.templateDir=",
                                                  "-c",
                                                  "protocol.ext.allow=never"};
  words.insert(words.begin(), kQuiet.begin(), kQuiet.end());
  std::map<std::string, std::string> variables = logins.variables();
  variables["GIT_LFS_SKIP_SMUDGE"] = "1";
  const ProcessResult result = run_process(words, variables);
  if (result.exit_code != 0)
    throw Error(ErrorCode::Network, {.what = "git cannot fetch " + source.title(),
                                     .where = without_credentials(source.url) + " at " + source.commit,
                                     .got = without_logins(result.err)});
  return result.out;
}

fs::path clone(const SourcePackage& source, const fs::path& scratch, GitLogins logins) {
  const fs::path folder = clone_of(source, scratch);
  fs::remove_all(folder);
  const std::string address = logins.take("git+" + source.url, source.title()).substr(4);
  git({"clone", "--quiet", "--no-checkout", "--", address, folder.string()}, source, logins);
  git({"-C", folder.string(), "checkout", "--quiet", "--detach", source.commit, "--"}, source, logins);
  // A branch or tag of that name would have been taken first.
  if (const std::string head = git({"-C", folder.string(), "rev-parse", "HEAD"}, source, logins);
      head != source.commit + "\n")
    throw Error(ErrorCode::Digest, {.what = "git has checked out another commit than the one that is locked",
                                    .where = without_credentials(source.url),
                                    .expected = source.commit,
                                    .got = head});
  git({"-C", folder.string(), "submodule", "--quiet", "update", "--init", "--recursive"}, source, logins);
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

fs::path clone_of(const SourcePackage& source, const fs::path& scratch) {
  return scratch / (source.name + ".git");
}

bundle::Digest store_source(const SourcePackage& source, const Cache& cache, const fs::path& scratch,
                            const GitLogins& logins) {
  const fs::path folder = source.kind == SourceKind::Git ? clone(source, scratch, logins) : source.folder;
  Tree tree;
  gather(folder, "", tree);
  const fs::path file = scratch / (source.name + ".tar");
  fs::remove(file);
  const TreeTar tar = write_tree_tar(tree, file);
  cache.adopt(file, tar.sha256);
  return tar.sha256;
}

}  // namespace sealift::packager
