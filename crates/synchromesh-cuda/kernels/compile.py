# Compiles kernels.cu to PTX with NVRTC and that PTX with ptxas for several architectures; prints what each kernel takes.
"""usage: compile.py PTX [--check]

Writes the PTX file, or with --check compares it with what the sources give. Fails if a kernel spills registers on an
architecture of ARCHITECTURES. Needs the Python packages nvidia-cuda-nvrtc-cu12 and nvidia-cuda-nvcc-cu12 of one version;
no card and no driver. Started by `cargo xtask kernels`.
"""

import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile

KERNELS = pathlib.Path(__file__).resolve().parent
VIRTUAL = "compute_80"
ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]


def package(name):
    """The folder of an NVIDIA package."""
    for folder in map(pathlib.Path, sys.path):
        if (folder / "nvidia" / name).is_dir():
            return folder / "nvidia" / name
    sys.exit(f"the package nvidia/{name} is not installed")


class Nvrtc:
    """NVIDIA's run-time compiler, as a library."""

    def __init__(self):
        libraries = sorted(package("cuda_nvrtc").glob("lib/libnvrtc.so.*"))
        self.nvrtc = ctypes.CDLL(str(libraries[0]))
        self.nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        result = getattr(self.nvrtc, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: {self.nvrtc.nvrtcGetErrorString(result).decode()}")

    def text(self, kind, program):
        """The log or the PTX of a program."""
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{kind}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{kind}", program, buffer)
        return buffer.value.decode()

    def compile(self, source, options):
        program = ctypes.c_void_p()
        self.call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
        options = [option.encode() for option in options]
        try:
            self.call("nvrtcCompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*options))
        except RuntimeError:
            sys.exit(self.text("ProgramLog", program))
        return self.text("PTX", program)


def without_paths(ptx):
    """PTX without what differs between machines."""
    lines = [line.rstrip() for line in ptx.splitlines() if not line.startswith("//")]
    return "\n".join(lines).strip() + "\n"


def resources(ptx, architecture):
    """Registers and bytes of spills of each kernel, by ptxas."""
    ptxas = package("cuda_nvcc") / "bin" / "ptxas"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "kernels.ptx"
        path.write_text(ptx)
        command = [ptxas, "-v", f"-arch={architecture}", path, "-o", path.with_suffix(".cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    found = {}
    name = None
    for line in done.stderr.splitlines():
        entry = re.search(r"Compiling entry function '(\w+)'", line)
        name = entry.group(1) if entry else name
        spill = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)
        if spill:
            found[name] = [None, sum(map(int, spill.groups()))]
        used = re.search(r"Used (\d+) registers", line)
        if used:
            found[name][0] = int(used.group(1))
    return found


def main():
    path, check = pathlib.Path(sys.argv[1]), "--check" in sys.argv[2:]
    options = [f"--gpu-architecture={VIRTUAL}", "--std=c++17", f"-I{KERNELS}", "--fmad=true"]
    ptx = without_paths(Nvrtc().compile((KERNELS / "kernels.cu").read_text(), options))
    tables = {architecture: resources(ptx, architecture) for architecture in ARCHITECTURES}
    names = list(tables[ARCHITECTURES[0]])
    print("kernel".ljust(24) + "".join(f"{a:>10}" for a in ARCHITECTURES) + "   (registers of a thread)")
    for name in names:
        print(name.ljust(24) + "".join(f"{tables[a][name][0]:>10}" for a in ARCHITECTURES))
    spilled = [(name, a) for a in ARCHITECTURES for name in names if tables[a][name][1] != 0]
    if spilled:
        sys.exit(f"kernels that spill registers or use a stack: {spilled}")
    print(f"{len(names)} kernels on {len(ARCHITECTURES)} architectures, no spills; {len(ptx)} bytes of PTX")
    if not check:
        path.parent.mkdir(exist_ok=True)
        path.write_text(ptx)
        print(f"written to {path}")
    elif not path.is_file() or path.read_text() != ptx:
        sys.exit(f"{path} is not what the sources give: run `cargo xtask kernels`")
    else:
        print("the PTX is unchanged")


main()
