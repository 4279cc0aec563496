// SPDX-License-Identifier: Apache-2.0
// Wheels: names, places, digests and entry points as the specification says; each broken promise is refused.
#include "sealift/bundle/wheel/wheel.hpp"

#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

namespace {

struct Opened {
  MemorySource source;
  Wheel wheel;
  Opened(const std::string& bytes, const std::string& name, const std::set<Digest>& allowed = {})
      : source(Bytes(as_bytes(bytes).begin(), as_bytes(bytes).end()), name), wheel(source, name, allowed) {}
};

Opened opened(const TinyWheel& tiny) {
  return {make_wheel(tiny), tiny.file_name()};
}

std::string record_digest_of(const std::string& bytes) {
  return "sha256=" + to_base64(sha256(as_bytes(bytes)).bytes, Base64::UrlNoPad);
}

const WheelFile& file(const Wheel& wheel, const std::string& path) {
  for (const WheelFile& candidate : wheel.files())
    if (candidate.path == path) return candidate;
  FAIL("no file " << path);
  return wheel.files()[0];
}

}  // namespace

TEST_CASE("wheel file names are taken apart") {
  const auto name = parse_wheel_name("torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl");
  REQUIRE(name);
  CHECK(name->name == "torch");
  CHECK(name->platform_tag == "manylinux_2_28_x86_64");
  CHECK(parse_wheel_name("a-1-1build-py3-none-any.whl")->python_tag == "py3");
  CHECK(parse_wheel_name("a-1-1build-py3-none-any.whl")->build == "1build");
  CHECK(name->build.empty());
  for (const char* bad :
       {"a-1-py3-none.whl", "a-1-py3-none-any.zip", "a--1-py3-none-any.whl", "a-1-2-3-py3-none-any.whl", ".whl"})
    CHECK_FALSE(parse_wheel_name(bad));
  CHECK(normalized_project_name("Foo.-_Bar") == "foo-bar");
}

TEST_CASE("a project's name is a folder's name, so it begins and ends with a letter or digit") {
  for (const char* bad : {"..-1-py3-none-any.whl", ".-1-py3-none-any.whl", "_-1-py3-none-any.whl",
                          "a/b-1-py3-none-any.whl", "a..-1-py3-none-any.whl", "a b-1-py3-none-any.whl"})
    CHECK_FALSE(parse_wheel_name(bad));
  CHECK(parse_wheel_name("a.b_c-1-py3-none-any.whl"));
}

TEST_CASE("versions are compared as Python compares them") {
  const std::pair<const char*, const char*> same[] = {{"2024.07.1", "2024.7.1"},
                                                      {"1.0", "1"},
                                                      {"1.0.0", "1.0"},
                                                      {"1.0-RC1", "1.0rc1"},
                                                      {"1.0.alpha2", "1.0a2"},
                                                      {"v1.0", "1.0"},
                                                      {"2.0+cu1", "2.0+CU1"},
                                                      {"2.0+cu1_x", "2.0+cu1.x"},
                                                      {"0.1.1-22", "0.1.1.post22"},
                                                      {"2.0+cu1-2", "2.0+cu1.2"}};
  for (const auto& [one, other] : same) CHECK(normalized_version(one) == normalized_version(other));
  const std::pair<const char*, const char*> different[] = {{"1.0", "1.0.1"},  {"1.0", "10"},        {"1.0rc1", "1.0"},
                                                           {"1!1.0", "1.0"},  {"1.0", "1.0+local"}, {"1.01", "1.10"},
                                                           {"1.0-1", "1.0.1"}};
  for (const auto& [one, other] : different) CHECK(normalized_version(one) != normalized_version(other));
}

TEST_CASE("a wheel's files come with place and digest") {
  TinyWheel tiny;
  tiny.files = {{"demo/__init__.py", "x"},
                {"demo-1.0.data/scripts/tool", "#!python\nprint(1)\n"},
                {"demo-1.0.data/purelib/pure.py", "p"},
                {"demo-1.0.data/headers/demo.h", "h"},
                {"demo-1.0.data/data/share/x", "d"},
                {"name,with \"quotes\".txt", "q"}};
  tiny.record_digests = {};
  tiny.unrecorded = {"name,with \"quotes\".txt"};
  tiny.extra_record =
      "\"name,with \"\"quotes\"\".txt\",sha256=" + to_base64(sha256(as_bytes("q")).bytes, Base64::UrlNoPad) + ",1\r\n";
  const Opened demo = opened(tiny);
  CHECK(demo.wheel.dist_info() == "demo-1.0.dist-info");
  CHECK(file(demo.wheel, "tool").scheme == Scheme::Scripts);
  CHECK(file(demo.wheel, "tool").python_script);
  CHECK(file(demo.wheel, "tool").executable);
  CHECK(file(demo.wheel, "pure.py").scheme == Scheme::SitePackages);
  CHECK(file(demo.wheel, "demo.h").scheme == Scheme::Headers);
  CHECK(file(demo.wheel, "share/x").scheme == Scheme::Data);
  CHECK(file(demo.wheel, "demo/__init__.py").sha256 == sha256(as_bytes("x")));
  CHECK(file(demo.wheel, "name,with \"quotes\".txt").sha256 == sha256(as_bytes("q")));
  CHECK(demo.wheel.files().size() == 8);  // six, WHEEL and METADATA; not RECORD
}

TEST_CASE("extracting checks every byte against RECORD") {
  Opened demo = opened({});
  std::string text;
  demo.wheel.extract(file(demo.wheel, "demo/__init__.py"), [&](ByteView piece) { text.append(as_text(piece)); });
  CHECK(text == "ANSWER = 42\n");
  TinyWheel lying;
  lying.record_digests["demo/__init__.py"] = "sha256=" + to_base64(sha256(as_bytes("other")).bytes, Base64::UrlNoPad);
  Opened liar = opened(lying);
  CHECK_REFUSED(liar.wheel.extract(file(liar.wheel, "demo/__init__.py"), [](ByteView) {}), Digest, "demo/__init__.py");
}

TEST_CASE("a start-up file is what its own bytes say, whatever digest RECORD has for it") {
  const std::string allowed = "import demo_runtime\n", evil = "import evil\n", harmless = "# a comment\n";
  const auto with = [&](const std::string& bytes, const std::string& listed) {
    return TinyWheel{.files = {{"demo.pth", bytes}}, .record_digests = {{"demo.pth", record_digest_of(listed)}}};
  };
  const auto open_with = [&](const std::string& bytes, const std::string& listed) {
    const TinyWheel tiny = with(bytes, listed);
    return Opened(make_wheel(tiny), tiny.file_name(), {sha256(as_bytes(allowed))}).wheel.allowed_startup_files();
  };
  CHECK(open_with(allowed, allowed) == std::vector<std::string>{"demo.pth"});
  CHECK(open_with(harmless, harmless).empty());
  CHECK_REFUSED(open_with(evil, evil), Format, "when Python starts");
  CHECK_REFUSED(open_with(evil, allowed), Format, "RECORD has another digest of a start-up file: demo.pth");
  CHECK_REFUSED(open_with(harmless, allowed), Format, "RECORD has another digest of a start-up file: demo.pth");
  CHECK_REFUSED(open_with(allowed, harmless), Format, "RECORD has another digest of a start-up file: demo.pth");
}

TEST_CASE(
    "a file that RECORD gives another size is described by its bytes; RECORD may err about few, and never of .pth") {
  const std::string other = "sha256=" + to_base64(sha256(as_bytes("other")).bytes, Base64::UrlNoPad);
  const TinyWheel patched{.files = {{"demo/lib.so", std::string(5000, 'x')}, {"demo/__init__.py", "y"}},
                          .record_digests = {{"demo/lib.so", other}},
                          .record_sizes = {{"demo/lib.so", "4999"}}};
  Opened demo = opened(patched);  // as pynvvideocodec 2.0.4, whose libraries were changed after RECORD was written
  const WheelFile library = file(demo.wheel, "demo/lib.so");
  CHECK(library.misdescribed);
  CHECK(library.sha256 == sha256(as_bytes(patched.files.at("demo/lib.so"))));
  CHECK_NOTHROW(demo.wheel.extract(library, [](ByteView) {}));
  CHECK_FALSE(file(demo.wheel, "demo/__init__.py").misdescribed);
  CHECK_REFUSED(opened({.files = {{"demo.pth", "demo\n"}}, .record_sizes = {{"demo.pth", "4"}}}), Format,
                "another size");
  TinyWheel many{.files = {}};
  for (std::size_t i = 0; i <= kMaxMisdescribed; ++i) {
    const std::string name = "demo/" + std::to_string(i);
    many.files[name] = "text";
    many.record_sizes[name] = "9";
  }
  CHECK_REFUSED(opened(many), Format, "another size");
  many.record_sizes.erase("demo/0");
  CHECK_NOTHROW(opened(many));
}

TEST_CASE("a file that RECORD lacks, or has no SHA-256 of, is described by its bytes, as pip and uv install it") {
  const std::string bytes = "ANSWER = 42\n", size = std::to_string(bytes.size());
  const Digest right = sha256(as_bytes(bytes));
  const TinyWheel wheels[] = {{.unrecorded = {"demo/__init__.py"}},  // selenium 4.46.0
                              {.record_digests = {{"demo/__init__.py", ""}}},
                              {.record_digests = {{"demo/__init__.py", "md5=abc"}}},
                              {.record_digests = {{"demo/__init__.py", "sha512=short"}}},
                              {.record_digests = {{"demo/__init__.py", "sha256=short"}}},
                              {.extra_record = "demo/__init__.py,,\n"},
                              {.unrecorded = {"demo/__init__.py"},
                               .extra_record = "/demo/__init__.py," + record_digest_of(bytes) + "," + size + "\n"}};
  for (const TinyWheel& tiny : wheels) {
    Opened demo = opened(tiny);
    const WheelFile described = file(demo.wheel, "demo/__init__.py");
    CHECK(described.misdescribed);
    CHECK(described.sha256 == right);
    CHECK_NOTHROW(demo.wheel.extract(described, [](ByteView) {}));
  }
  CHECK(opened(wheels[6]).wheel.idle_rows() == 1);
  CHECK(opened({.extra_record = "gone.py,,\n../../x,,\n/etc/passwd,,9x\n"}).wheel.idle_rows() == 3);
  TinyWheel many{.files = {}};
  for (std::size_t i = 0; i < 3 * kMaxMisdescribed; ++i) {
    many.files["demo/" + std::to_string(i)] = "text";
    many.unrecorded.push_back("demo/" + std::to_string(i));
  }
  CHECK_NOTHROW(opened(many));
}

TEST_CASE("RECORD may write a SHA-256 in digits, as bidict 0.24.0 does, and is held to it") {
  const std::string bytes = "ANSWER = 42\n";
  Opened demo = opened({.record_digests = {{"demo/__init__.py", "sha256=" + sha256(as_bytes(bytes)).hex()}}});
  CHECK_FALSE(file(demo.wheel, "demo/__init__.py").misdescribed);
  CHECK(file(demo.wheel, "demo/__init__.py").sha256 == sha256(as_bytes(bytes)));
  Opened liar = opened({.record_digests = {{"demo/__init__.py", "sha256=" + sha256(as_bytes("other")).hex()}}});
  CHECK_REFUSED(liar.wheel.extract(file(liar.wheel, "demo/__init__.py"), [](ByteView) {}), Digest, "demo/__init__.py");
}

TEST_CASE("RECORD may have SHA-384 or SHA-512, and is held to it") {
  // `printf 'ANSWER = 42\n' | openssl dgst -sha384`, -sha512; the base64 of Python's urlsafe_b64encode.
  const std::string wide384 =
      "7dbf7e82177291e82660eba437e111f28a314507c94b426357970aad57ee826ac50e3dca2f2868aeedd770d0935feece";
  const std::string wide512 =
      "c2d2a2ff5962e4a39f233709a490c92012e59297a6c3fc693eaddcb7dad581d7f7e5b4e7ea5c2fca7fd11edf2d8d8ad78c74fdfd344b5b77"
      "fd3ce7164f48c0a9";
  const std::string base384 = "fb9-ghdykegmYOukN-ER8ooxRQfJS0JjV5cKrVfugmrFDj3KLyhoru3XcNCTX-7O",
                    base512 = "wtKi_1li5KOfIzcJpJDJIBLlkpemw_xpPq3ct9rVgdf35bTn6lwvyn_RHt8tjYrXjHT9_TRLW3f9POcWT0jAqQ";
  for (const std::string& said : {"sha384=" + wide384, "sha384=" + base384, "sha512=" + wide512, "sha512=" + base512}) {
    Opened demo = opened({.record_digests = {{"demo/__init__.py", said}}});
    const WheelFile held = file(demo.wheel, "demo/__init__.py");
    CHECK_FALSE(held.misdescribed);
    CHECK(held.sha256 == sha256(as_bytes("ANSWER = 42\n")));
    std::string other = said;
    other[20] = other[20] == 'a' ? 'b' : 'a';
    CHECK_REFUSED(opened({.record_digests = {{"demo/__init__.py", other}}}), Digest, "demo/__init__.py");
  }
  Opened mixed = opened({.record_digests = {{"demo/__init__.py", "sha512=" + base384}}});  // no digest of that kind
  CHECK(file(mixed.wheel, "demo/__init__.py").misdescribed);
}

TEST_CASE("a start-up file without a row of RECORD is judged by its bytes") {
  CHECK_NOTHROW(opened({.files = {{"demo.pth", "# a comment\n"}}, .unrecorded = {"demo.pth"}}));
  CHECK_REFUSED(opened({.files = {{"demo.pth", "import evil\n"}}, .unrecorded = {"demo.pth"}}), Format,
                "when Python starts");
}

TEST_CASE("the file's name alone may have a local version, as prebuilt CUDA wheels have it") {
  const std::string bytes = make_wheel({});
  CHECK(Opened(bytes, "demo-1.0+cu122torch2.3cxx11abiFALSE-py3-none-any.whl").wheel.dist_info() ==
        "demo-1.0.dist-info");
  CHECK_REFUSED(Opened(bytes, "demo-1.1+cu122-py3-none-any.whl"), Format, "of its own name and version");
}

TEST_CASE("METADATA in Latin-1 is read as such, and installed as it is") {
  const std::string latin = "Name: demo\nVersion: 1.0\nAuthor: J\xf6rg\n";
  Opened demo = opened({.files = {{"demo-1.0.dist-info/METADATA", latin}}});
  CHECK(demo.wheel.metadata_field("Author") == "J\xc3\xb6rg");
  CHECK(file(demo.wheel, "demo-1.0.dist-info/METADATA").sha256 == sha256(as_bytes(latin)));
}

TEST_CASE("names in decomposed Unicode stay as they were published, and no other form of them lies beside") {
  const std::string one = "demo/e\xcc\x81.txt", other = "demo/\xc3\xa9.txt";
  Opened made = opened({.files = {{one, "x"}}});
  CHECK(file(made.wheel, one).sha256 == sha256(as_bytes(std::string("x"))));
  CHECK_REFUSED(opened({.files = {{one, "x"}, {other, "y"}}}), Format, "two files have one place");
}

TEST_CASE("the names of a wheel, of its .dist-info and of its .data may be spelled differently") {
  const Opened demo = opened({.name = "spelled.oddly",
                              .files = {{"spelled_oddly-1.0.data/scripts/tool", "#!python\n"},
                                        {"Spelled-Oddly-1.0.data/data/share/x", "d"},
                                        {"other-1.0.data/scripts/tool", "x"}}});
  CHECK(file(demo.wheel, "tool").scheme == Scheme::Scripts);
  CHECK(file(demo.wheel, "other-1.0.data/scripts/tool").scheme == Scheme::SitePackages);
}

TEST_CASE("metadata fields and entry points are read") {
  TinyWheel tiny{.entry_points =
                     "# comment\n[console_scripts]\ndemo-run = demo.cli:main\n x=demo:App.start [extra]\n[other]\na = "
                     "b:c\n[gui_scripts]\ng = demo:g\n",
                 .extra_metadata = "Requires-Python: >=3.10\n"};
  const Opened demo = opened(tiny);
  CHECK(demo.wheel.metadata_field("Requires-Python") == ">=3.10");
  CHECK_FALSE(demo.wheel.metadata_field("Requires-Dist"));
  REQUIRE(demo.wheel.entry_points().size() == 3);
  CHECK(demo.wheel.entry_points()[0].script == "demo-run");
  CHECK(demo.wheel.entry_points()[0].module == "demo.cli");
  CHECK(demo.wheel.entry_points()[0].function == "main");
  CHECK(demo.wheel.entry_points()[1].function == "App.start");
  CHECK(demo.wheel.entry_points()[2].script == "g");
}

TEST_CASE("a wheel that breaks a promise is refused for it") {
  const auto refused = [](TinyWheel tiny, ErrorCode code, const std::string& reason, std::string name = {}) {
    CAPTURE(reason);
    const Error error = refusal([&] { Opened(make_wheel(tiny), name.empty() ? tiny.file_name() : name); });
    INFO(error.what());
    CHECK(error.code() == code);
    CHECK(mentions(error, reason));
  };
  refused({}, ErrorCode::Format, "file name", "demo.whl");
  refused({}, ErrorCode::Format, "of its own name", "other-1.0-py3-none-any.whl");
  refused({.extra_record = "\"open,sha256=x\n"}, ErrorCode::Format, "open quote");
  refused({.extra_record = "a,,,b\n"}, ErrorCode::Format, "not path,digest,size");
  refused({.files = {{"demo-1.0.data/bin/x", "x"}}}, ErrorCode::Format, "unknown part of .data");
  refused({.files = {{"demo-1.0.data/purelib/x.py", "1"}, {"x.py", "2"}}}, ErrorCode::Format, "one place");
  refused({.files = {{"x-1.dist-info/METADATA", "2"}}}, ErrorCode::Format, "more than one .dist-info");
  for (const char* point : {"a = b", "../a = b:c", "a = b;import os:c", "a = b:c()", "a/b = c:d", " = b:c"})
    refused({.entry_points = std::string("[console_scripts]\n") + point + "\n"}, ErrorCode::Format, "");
}
