# SPDX-License-Identifier: Apache-2.0
# The Chinese pages of a report that a real run wrote have no English left: what a reader does not find in a table.
# Used by verbs_test.sh and false_alarms.py, on what a site would file.
# Names of programs, units and what a machine said (host, processor, paths) are nobody's to translate.
# usage: chinese_pages.py FOLDER…      prints each foreign word with its line; exit status 1 if there is one
import html
import json
import pathlib
import re
import sys

# Names and units of the field, and the marks of a page.
KNOWN = """PASS FAIL NOT RUN UTC SHA LibTorch Python PyTorch NCCL Gloo GPU CPU NUMA InfiniBand GPUDirect RDMA NVLink
PCIe ECC MIG NVML NVIDIA glibc shm dev GiB MiB KiB GB TB Gb MB GHz MHz TFLOP TFLOPS nat ms min DDP FSDP FSDP2 HSDP ddp fsdp
hsdp fsdp2 PEFT
LoRA DNS IP TCP UDP HTTP SBOM PID ulimit openssl json toml site report digests sig quick full burn level sealift train sft
verify install run golden all gather reduce scatter broadcast barrier to all_reduce all_gather reduce_scatter
all_to_all send recv fp32 bf16 fp16 fp64 int64 int32 int8 uint8 float bfloat16 bool cpu cuda seccomp Linux
nvidia_peermem doctor only CycloneDX torch transformers swift sendrecv connect sendto sendmsg sendmmsg prefix
bin out io_uring MASTER_ADDR MASTER_PORT SIGTERM SIGINT SIGHUP SIGKILL SIGABRT SIGSEGV SIGBUS SIGFPE SIGILL SIGXCPU""".split()
MACHINE_SAYS = re.compile(r"(cpu|kernel|glibc|governors|name|version|identity|recorded on|run on|signer|driver.*|torch|"
                          r"transformers|NCCL.*|GLOO.*|Python stack)$")


def texts_of_machine(report):
    """What others chose: hosts, devices, paths, values that were read."""
    texts = {report["site"], report["program"]}
    for node in report["nodes"]:
        texts |= {node["host"], *node["devices"]}
    for check in report["checks"]:
        texts |= {check["name"], check["name"].split(".", 2)[-1]}  # a golden run's name too
        texts |= {fact["value"] for fact in check["facts"] if MACHINE_SAYS.search(fact["name"])}
        for matrix in check["matrices"]:
            texts |= {name for name in (*matrix["rows"], *matrix["columns"]) if not name.startswith("rank ")}
        if check["name"] == "arithmetic.same_bits":
            texts |= {fact["name"] for fact in check["facts"]}
        for figure in check["figures"]:  # "matmul fp32, typical of KIND OF DEVICE"
            texts |= set(re.findall(r"(?:typical|lowest) of (.+)$", figure["name"]))
    return sorted((text for text in texts if text and not text.isdigit()), key=len, reverse=True)


def visible(page):
    page = re.sub(r"<(style|head)\b.*?</\1>", " ", page, flags=re.S)
    page = re.sub(r'<[^>]*?aria-label="([^"]*)"[^>]*>', r" \1\n", page)
    return html.unescape(re.sub(r"<[^>]+>", "\n", page))


def foreign_words(text, machine):
    # What is written into a TOML file, whole, since a golden run may be called as a method is; and times.
    text = re.sub(r'\d{4}-\d\d-\d\dT[\d:]+Z|\[\[?\w+\]\]?( \w+( = "\w+")?)?', " ", text)
    for own in machine:
        text = text.replace(own, " ")
    text = re.sub(r"结束：.*?(?=；当时|$)", " ", text, flags=re.M)  # what a program said when it ended
    # Paths and libraries.
    text = re.sub(r"/[\w./+-]+|[\w.+-]*(/[\w.+-]+)+|lib\w+(-\w+)*\.so[\w.]*", " ", text)
    known = set(KNOWN)
    for line in text.splitlines():
        words = [word for word in re.findall(r"[A-Za-z][A-Za-z0-9_]+", line) if word not in known]
        if words:
            yield words, line.strip()


bad = False
for folder in map(pathlib.Path, sys.argv[1:]):
    report = json.loads((folder / "report.json").read_text())
    machine = texts_of_machine(report)
    for name, show in (("report.zh.html", visible), ("report.zh.txt", str)):
        for words, line in foreign_words(show((folder / name).read_text()), machine):
            print(f"{folder / name}: {' '.join(words)} in: {line}")
            bad = True
sys.exit(bad)
