// SPDX-License-Identifier: Apache-2.0
// The hashes of requirements files, as pip's format has them.
#include "packager/resolve/requirement_hashes.hpp"

#include <doctest/doctest.h>

#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::TempDir;
using sealift::test::write_file;

namespace {

const std::string kA(64, 'a'), kB(64, 'b');

bundle::Digest digest(const std::string& hex) {
  return *bundle::Digest::from_hex(hex);
}

}  // namespace

TEST_CASE("lines of requirements are joined, without comments and blanks") {
  CHECK(requirement_lines(
            "a==1 \\\n    --hash=sha256:x \\\r\n  --hash=sha256:y\n\n# no\nb # why\n c @ http://h/c#egg=c") ==
        std::vector<std::string>{"a==1 --hash=sha256:x --hash=sha256:y", "b", "c @ http://h/c#egg=c"});
  CHECK(requirement_lines("a \\").size() == 1);
  CHECK(requirement_lines("").empty());
}

TEST_CASE("every hash of a requirement may be the file's, and names are as the index spells them") {
  const TempDir dir;
  write_file(dir / "reqs.txt", "Demo_Pkg[x]==1.0 ; python_version > '3' --hash=sha256:" + kA +
                                   " \\\n --hash sha256:" + kB + " --hash=md5:00\nfree\n");
  const RequirementHashes hashes = read_requirement_hashes(dir / "reqs.txt");
  REQUIRE(hashes.size() == 1);
  CHECK(hashes.at("demo-pkg") == std::set<bundle::Digest>{digest(kA), digest(kB)});
}

TEST_CASE("hashes of files that are included count, wherever those lie") {
  const TempDir dir;
  write_file(dir / "reqs.txt", "-r sub/one.txt\n--requirement=sub/two.txt\n--require-hashes\n-c sub/none.txt\n");
  write_file(dir / "sub/one.txt", "a==1 --hash=sha256:" + kA + "\n");
  write_file(dir / "sub/two.txt", "-r one.txt\nb==1 --hash=sha256:" + kB + "\n");
  const RequirementHashes hashes = read_requirement_hashes(dir / "reqs.txt");
  CHECK(hashes.size() == 2);
  CHECK(hashes.at("b").contains(digest(kB)));
}

TEST_CASE("hashes that cannot be checked, and files without end, are refused") {
  const TempDir dir;
  write_file(dir / "md5.txt", "a==1 --hash=md5:00\n");
  CHECK_REFUSED(read_requirement_hashes(dir / "md5.txt"), Format, "md5.txt, a");
  write_file(dir / "short.txt", "a==1 --hash=sha256:00\n");
  CHECK_REFUSED(read_requirement_hashes(dir / "short.txt"), Format, "none that can be checked");
  write_file(dir / "loop.txt", "-r loop.txt\n");
  CHECK_REFUSED(read_requirement_hashes(dir / "loop.txt"), Usage, "without end");
  write_file(dir / "lost.txt", "-r gone.txt\n");
  CHECK_REFUSED(read_requirement_hashes(dir / "lost.txt"), Missing, "gone.txt");
}

TEST_CASE("indexes that requirements files bring along are found in all of them, and told without their passwords") {
  const TempDir dir;
  write_file(dir / "a.txt", "demo==1\n--extra-index-url https://me:secret@a.invalid/simple\n-r b.txt\n-c c.txt\n");
  write_file(dir / "b.txt", "-i http://b.invalid/simple\n# -i http://comment.invalid\n");
  write_file(dir / "c.txt", "--find-links=/srv/wheels\n");
  CHECK(index_lines(dir / "a.txt") == std::vector<std::string>{"--extra-index-url https://a.invalid/simple",
                                                               "-i http://b.invalid/simple",
                                                               "--find-links /srv/wheels"});
}
