// SPDX-License-Identifier: Apache-2.0
// What documents take from a METADATA file, also from one that was written to annoy them.
#include "packager/documents/wheel_facts.hpp"

#include <doctest/doctest.h>

#include "packager/documents/licence_files.hpp"
#include "packager/documents/model_card.hpp"
#include "packager/documents/requires_dist.hpp"
#include "packager/resolve/metadata_headers.hpp"

using namespace sealift::packager;

namespace {

using Strings = std::vector<std::string>;

WheelFacts facts(const std::string& lines) {
  return read_wheel_facts("Name: Demo_X\nVersion: 1.0\n" + lines + "\n");
}

}  // namespace

TEST_CASE("headers are read in order, folded ones whole, and end at the first empty line") {
  const MetadataHeaders headers("A: 1\r\nb: x\n  y\n\tz\nnot a header\n: nameless\na:2\n\nA: 3\n");
  CHECK(headers.all("a") == Strings{"1", "2"});
  CHECK(headers.first("B") == "x\ny\nz");
  CHECK(headers.first("C").empty());
  CHECK(MetadataHeaders(" folded: into nothing\n").all("folded").empty());
  CHECK(MetadataHeaders("").first("A").empty());
}

TEST_CASE("headers are bounded in number, value and sum, however large METADATA is") {
  std::string many;
  for (std::size_t i = 0; i < kMaxHeaders + 10; ++i) many += "K: v\n";
  CHECK(MetadataHeaders(many).all("K").size() == kMaxHeaders);
  std::string folded = "K: v\n";
  while (folded.size() < 3 * kMaxHeaderValue) folded += " " + std::string(1000, 'x') + "\n";
  CHECK(MetadataHeaders(folded).first("K").size() <= kMaxHeaderValue);
  CHECK(MetadataHeaders("K: " + std::string(2 * kMaxHeaderValue, 'x')).first("K").size() == kMaxHeaderValue);
  const std::string huge(kMaxHeaderBytes, '-');
  CHECK(MetadataHeaders(huge + "\nK: v\n").all("K").empty());
}

TEST_CASE("a licence is an expression, else a name, else what the classifiers say") {
  CHECK(facts("License-Expression: MIT AND (Apache-2.0 OR BSD-3-Clause)\nLicense: other\n").expression ==
        "MIT AND (Apache-2.0 OR BSD-3-Clause)");
  CHECK(facts("License-Expression: MIT\nLicense: other\n").licences.empty());
  CHECK(facts("License: BSD-3\nClassifier: License :: OSI Approved :: BSD License\n").licences == Strings{"BSD-3"});
  CHECK(facts("License: UNKNOWN\nClassifier: License :: OSI Approved :: BSD License\n"
              "Classifier: License :: OSI Approved\nClassifier: Topic :: X\nClassifier: License :: Public Domain\n")
            .licences == Strings{"BSD License", "Public Domain"});
  CHECK(facts("License: MIT License\n\t\n  Permission is hereby\nClassifier: License :: OSI Approved :: MIT License\n")
            .licences == Strings{"MIT License"});
  CHECK(facts("License: Long Terms\n  Permission is\n").licences == Strings{"Long Terms"});
  CHECK(facts("").licence().empty());
}

TEST_CASE("an expression that cannot be one of SPDX is only a name") {
  const WheelFacts hostile = facts("License-Expression: MIT\"},{\"name\":\"x\n");
  CHECK(hostile.expression.empty());
  CHECK(hostile.licences == Strings{"MIT\"},{\"name\":\"x"});
  CHECK(facts("License-Expression: " + std::string(300, 'A') + "\n").expression.empty());
}

TEST_CASE("a requirement is a name, the extras it asks for, and those it is asked for by") {
  const WheelFacts found = facts(
      "Requires-Dist: NumPy_Base>=1.2,<2\nRequires-Dist: tqdm ; extra == 'CLI_x'\n"
      "Requires-Dist: win; sys_platform == 'win32'\n"
      "Requires-Dist: a.b[One, two_2] (>1); python_version<'3.9' and ('x' == extra or extra==\"y\")\n"
      "Requires-Dist: keep; platform_machine == 'extras'\nRequires-Dist: url[z] @ https://example.invalid/x\n"
      "Requires-Dist: odd[; extra != 'x'\nRequires-Dist: named; extra == 'extra'\nRequires-Dist: ;\n");
  using Found = std::vector<WheelRequirement>;
  CHECK(found.requires_dist == Found{{"numpy-base", {}, {}},
                                     {"tqdm", {}, {"cli-x"}},
                                     {"win", {}, {}},
                                     {"a-b", {"one", "two-2"}, {"x", "y"}},
                                     {"keep", {}, {}},
                                     {"url", {"z"}, {}},
                                     {"odd", {}, {""}},
                                     {"named", {}, {"extra"}}});
}

TEST_CASE("lines through an extra are drawn where it is asked for, also by an extra of the same project") {
  const auto needed = [](const std::map<std::string, Strings>& texts) {
    Requirements requirements;
    for (const auto& [project, list] : texts)
      for (requirements[project]; const std::string& text : list)
        requirements[project].push_back(read_requirement(text));
    return needed_projects(requirements);
  };
  const Strings tool = {"base", "gpu; extra == 'cuda'", "tool[cuda]; extra == 'all'", "elsewhere; extra == 'all'",
                        "never; extra != 'x'"};
  const std::map<std::string, Strings> rest = {{"base", {}}, {"gpu", {}}, {"never", {}}};
  const auto with = [&](const Strings& top) {
    std::map<std::string, Strings> all = rest;
    all["tool"] = tool;
    all["top"] = top;
    return needed(all);
  };
  using Names = std::set<std::string>;
  CHECK(with({"tool"}).at("tool") == Names{"base"});
  CHECK(with({"tool[cuda]"}).at("tool") == Names{"base", "gpu"});
  CHECK(with({"tool[all]"}).at("tool") == Names{"base", "gpu"});
  CHECK(with({"tool[all]; extra == 'x'"}).at("tool") == Names{"base"});
  CHECK(with({"tool[other]"}).at("top") == Names{"tool"});
  CHECK(with({"top", "tool"}).at("top") == Names{"tool"});  // never itself
}

TEST_CASE("what is shown has one line, no control characters and one reading direction") {
  CHECK(shown("a\nb\tc\x1b[31m") == "a\\u000ab\\u0009c\\u001b[31m");
  CHECK(shown("a\xe2\x80\xae"
              "gpj.exe") == "a\\u202egpj.exe");
  CHECK(shown("\xd8\x9cx\xe2\x81\xa6y\xe2\x80\x8f") == "\\u061cx\\u2066y\\u200f");
  CHECK(shown("中文") == "中文");
  CHECK(shown("\xff\xe2\x80") == "\\xff\\xe2\\x80");
  CHECK(shown(std::string(1000, 'x')).size() == 200);
}

TEST_CASE("a purl is percent-encoded") {
  CHECK(purl_of("pypi", "torch", "2.11.0+cu130") == "pkg:pypi/torch@2.11.0%2Bcu130");
  CHECK(purl_of("pypi", "a/b", "1@?#2") == "pkg:pypi/a%2Fb@1%40%3F%232");
}

TEST_CASE("a card's licence is SPDX's where it is one of its names, else what the card says") {
  const auto licence = [](const std::string& lines) { return read_card_licence("---\n" + lines + "---\ntext\n"); };
  CHECK(licence("language: en\nlicense: apache-2.0  # as hubs write it\n").expression == "Apache-2.0");
  CHECK(licence("license: 'MIT'\r\n").expression == "MIT");
  CHECK(licence("license: gpl-3.0\n").names == Strings{"gpl-3.0"});  // only, or later: nobody said
  CHECK(licence("license: other\nlicense_name: qwen-research\nlicense_link: https://x\n").names ==
        Strings{"qwen-research"});
  CHECK(licence("license: other\n").names == Strings{"other"});
  CHECK(licence("license: [mit, apache-2.0]\n").names == Strings{"mit", "apache-2.0"});
  CHECK(licence("license:\n- mit\n- mit\n- llama3\ntags:\n- x\n").names == Strings{"mit", "llama3"});
  CHECK(licence("license:\n- mit\n  - mit\n").names == Strings{"mit - mit"});  // one text, as PyYAML reads it
  CHECK(licence("base: x\n  license: mit\nlicenses: mit\n").text().empty());
  CHECK(licence("license: |\n  a text\n").text() == "a text");
  CHECK(read_card_licence("\xef\xbb\xbf---\nlicense: mit\n---").text() == "MIT");
}

TEST_CASE("a card without an end, too long a card and a card of lists are read within bounds") {
  CHECK(read_card_licence("").text().empty());
  CHECK(read_card_licence("---").text().empty());
  CHECK(read_card_licence("---\nlicense: mit\n").text().empty());
  CHECK(read_card_licence("# text\n---\nlicense: mit\n---\n").text().empty());
  CHECK(read_card_licence("---\n" + std::string(kMaxCardBlock, '\n') + "license: mit\n---\n").text().empty());
  CHECK(read_card_licence(std::string(kMaxCardBlock, ' ') + "---\n").text().empty());
  std::string many = "---\nlicense: [";
  for (int i = 0; i < 5000; ++i) many += "x" + std::to_string(i) + ",";
  CHECK(read_card_licence(many + "]\n---\n").names.size() == 20);
  // Malformed YAML has no keys, for hubs neither.
  CHECK(read_card_licence(many + "\n---\n").text().empty());
  CHECK(read_card_licence("---\nlicense: [\n---\n").text().empty());
  CHECK(read_card_licence("---\nlicense: \"mit\nlicense_name: x\n---\n").text().empty());
  CHECK(read_card_licence("---\nlicense_name: \"\\e]0;x\"\n---\n").names == Strings{"\\u001b]0;x"});
}

TEST_CASE("plain names cannot leave their folder, hide, or take each other's place") {
  PlainNames names;
  CHECK(names.take("../../etc/passwd", ".txt") == "_.._.._etc_passwd.txt");
  CHECK(names.take("LICENSE", ".txt") == "LICENSE.txt");
  CHECK(names.take("license.txt", ".txt") == "license_.txt");
  CHECK(names.take("LICENSE", ".txt") == "LICENSE__.txt");
  CHECK(names.take("evil.html", ".txt") == "evil.html.txt");
  CHECK(names.take("-rf") == "_-rf");
  CHECK(names.take("") == "_");
  CHECK(names.take(std::string(4000, 'x'), ".txt").size() <= 200);
  CHECK(names.take(std::string(4000, 'x'), ".txt").size() <= 200);
}
