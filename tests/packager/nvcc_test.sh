#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# NVIDIA's compiler as wheels, and the host compiler that it calls as Debian packages, in one bundle: in a bare system
# without a network nvcc says its version and compiles a kernel. Needs root, a Debian mirror and the package index, 250 MB
# of downloads and 2 GB of room; by label `network`.
#   nvcc_test.sh BIN UV
set -euo pipefail
. "$(dirname "$(realpath "$0")")/real_bundle.sh"
require_bare_system

# The extra crt comes with nvcc; cudart has the headers that every .cu includes, and what it is linked with.
# Without its own nvvm, uv takes the newest, whose PTX this assembler refuses.
start_job nvcc '"pip", "cuda-toolkit[nvcc,cudart]==13.0.*", "nvidia-nvvm==13.0.*"' '"pip"' > job.toml
cat >> job.toml << END
[apt]
suite = "$suite"
packages = ["g++"]
END
pack nvcc --no-rehearsal
bare_system
install_bundle nvcc "$work/root/opt/env"
rm -rf out cache
apt_from_bundle g++

cat > root/var/tmp/one.cu << 'END'
__global__ void twice(float* x) { x[threadIdx.x] *= 2; }
int main() {
  float* x = nullptr;
  twice<<<1, 32>>>(x);
  return cudaGetLastError() != cudaSuccess;
}
END
bare() { unshare --net chroot root /usr/bin/env -i PATH=/usr/bin:/bin "$@"; }
nvcc=/opt/env/current/lib/python3.11/site-packages/nvidia/cu13/bin/nvcc
bare "$nvcc" --version
bare "$nvcc" -arch=sm_90 -c /var/tmp/one.cu -o /var/tmp/one.o
bare objdump -h /var/tmp/one.o | grep -q nv_fatbin
