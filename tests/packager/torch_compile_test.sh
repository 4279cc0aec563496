#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# [toolchain] cxx = true in earnest: torch.compile on a CPU, in a bare system without a compiler, openssl or a network, gives
# what torch gives without it, with all threads. And OpenMP as the carried compiler and torch's runtime do it together.
# Needs root, a Debian mirror and the package index, 3 GB of downloads (kept in CACHE) and 15 GB of room; some minutes.
#   torch_compile_test.sh BIN UV CACHE
set -euo pipefail
cache=$(realpath -m "$3")
. "$(dirname "$(realpath "$0")")/real_bundle.sh"
require_bare_system
[ -e /usr/include/python3.11/Python.h ] || { echo "skipped: needs Python's headers"; exit 77; }
export SEALIFT_CACHE=$cache

start_job compile '"torch==2.11.0"' '"torch"' > job.toml
printf '[toolchain]\ncxx = true\n' >> job.toml
pack compile --no-rehearsal
bare_system
install_bundle compile "$work/root/opt/env"
rm -rf out

cat > root/var/tmp/compile.py << 'END'
import os, shutil, time
import torch
assert not any(map(shutil.which, ("cc", "gcc", "g++", "clang"))), "a compiler of the host's is in reach"
assert os.path.realpath(shutil.which("openssl")).startswith("/opt/env/")
torch.manual_seed(1)
torch.set_num_threads(2)

def f(x, y):
    return (torch.sin(x) * y).softmax(-1).sum(0) + torch.nn.functional.gelu(y).mean(0)

x, y = torch.randn(512, 300), torch.randn(512, 300)
begin = time.time()
compiled = torch.compile(f, fullgraph=True)
error = (compiled(x, y) - f(x, y)).abs().max().item()
print("torch.compile on a CPU: %.0f s, differs by %.1e" % (time.time() - begin, error))
assert error < 1e-5

from torch._inductor.utils import run_and_get_code
_, codes = run_and_get_code(torch.compile(lambda a: a.cos() + 2), torch.randn(100000))
assert any("#pragma omp parallel num_threads(2)" in code for code in codes), "it is not compiled for two threads"

layer = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 1))
other = torch.compile(layer)
data = torch.randn(256, 64)
layer(data).square().mean().backward()
expected = [p.grad.clone() for p in layer.parameters()]
layer.zero_grad()
other(data).square().mean().backward()
for p, gradient in zip(layer.parameters(), expected):
    torch.testing.assert_close(p.grad, gradient)
print("and its gradients are those of eager mode")
END
cat > root/var/tmp/openmp.cpp << 'END'
// Every schedule that is offered, up and down, signed and unsigned, of both widths, with more threads than rounds.
#include <cstddef>
#include <cstdio>
#include <omp.h>
int main() {
  int bad = 0;
  for (int threads = 1; threads <= 5; ++threads)
    for (int n = 0; n <= 17; ++n) {
      static int seen[6][32];
      for (auto& row : seen) for (int& x : row) x = 0;
      #pragma omp parallel num_threads(threads)
      {
        #pragma omp for
        for (int i = 0; i < n; ++i) { _Pragma("omp atomic") ++seen[0][i]; }
        #pragma omp for
        for (long i = n - 1; i >= 0; --i) { _Pragma("omp atomic") ++seen[1][i]; }
        #pragma omp for
        for (size_t i = 0; i < (size_t)n; i += 3) { _Pragma("omp atomic") ++seen[2][i]; }
        #pragma omp for schedule(static, 2)
        for (unsigned i = 0; i < (unsigned)n; ++i) { _Pragma("omp atomic") ++seen[3][i]; }
        #pragma omp for schedule(static, 3) nowait
        for (long i = n - 1; i >= 0; i -= 2) { _Pragma("omp atomic") ++seen[4][i]; }
        #pragma omp for collapse(2)
        for (int i = 0; i < n; ++i) for (int j = 0; j < 3; ++j) { _Pragma("omp atomic") ++seen[5][i]; }
      }
      for (int i = 0; i < 32; ++i) {
        const bool in = i < n;
        bad += seen[0][i] != in; bad += seen[1][i] != in; bad += seen[2][i] != (in && i % 3 == 0);
        bad += seen[3][i] != in; bad += seen[4][i] != (in && (n - 1 - i) % 2 == 0); bad += seen[5][i] != 3 * in;
      }
    }
  int a[20], first = 1, second = 2, third = 3, fourth = 4, fifth = 5, sixth = 6, seventh = 7, eighth = 8, ninth = 9;
  int b1 = 1, b2 = 2, b3 = 3, b4 = 4, b5 = 5, b6 = 6, b7 = 7, b8 = 8, b9 = 9, singles = 0;
  long sum = 0;
  #pragma omp parallel num_threads(2)
  {
    a[omp_get_thread_num()] = omp_get_num_threads();
    #pragma omp critical
    sum += first + second + third + fourth + fifth + sixth + seventh + eighth + ninth + b1 + b2 + b3 + b4 + b5 + b6 + b7 +
           b8 + b9;
    #pragma omp barrier
    #pragma omp master
    sum += 1000;
    #pragma omp single
    ++singles;
  }
  bad += sum != 1180; bad += singles != 1; bad += a[0] != 2; bad += a[1] != 2;
  long total = 0;
  double most = 0;
  #pragma omp parallel for reduction(+ : total) reduction(max : most) num_threads(3)
  for (int i = 1; i <= 100; ++i) { total += i; most = i > most ? i : most; }
  bad += total != 5050; bad += most != 100;
  std::printf("OpenMP: %d faults\n", bad);
  return bad != 0;
}
END
host=$work/root
. "$here/../../samples/bare_host.sh"
# bash knows where `activate` lies; another shell would believe that the prefix is where it was made.
activated() { inside /bin/bash -c ". /opt/env/activate; $1"; }
inside /bin/sh -c '! command -v cc && ! command -v g++ && ! command -v openssl'
activated '"$CXX" -O1 -fopenmp /var/tmp/openmp.cpp -o /var/tmp/openmp'
activated 'LD_LIBRARY_PATH=/opt/env/current/lib/python3.11/site-packages/torch/lib /var/tmp/openmp' | grep -qx 'OpenMP: 0 faults'
activated 'python /var/tmp/compile.py'
activated '! "$CXX" -DTORCH_EXTENSION_NAME=mine /var/tmp/openmp.cpp 2>&1' | grep -q 'needs libstdc++'
echo "torch.compile works on a bare host's CPU"
