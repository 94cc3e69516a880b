# Compiles the kernels to PTX with NVRTC and that PTX with ptxas for several architectures; prints what each kernel takes.
"""usage: compile.py FOLDER [--check]

Writes the PTX files of UNITS and what assemblers make of them, or with --check compares them with what the sources give:
registers.csv has the registers of a thread on each architecture, assembled.csv the instructions that sm_90 has for each
stretch of an entry, those from a label or a branch to the next one, by pipe. Fails if a kernel spills registers on an
architecture of its unit. Needs the Python packages nvidia-cuda-nvrtc-cu12 and nvidia-cuda-nvcc-cu12 of one version and
nvidia-cuda-nvdisasm; no card and no driver. Started by `cargo xtask kernels`.
"""

import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile

KERNELS = pathlib.Path(__file__).resolve().parent
ARCHITECTURES = ["sm_80", "sm_89", "sm_90", "sm_100"]
# The one whose instructions are counted.
COUNTED = "sm_90"
PIPES = ["assembled", "assembled_multiply", "assembled_integer", "assembled_double", "assembled_memory"]
# Translation units: the architecture that the PTX is for, and those of ARCHITECTURES that it runs on.
UNITS = {
    "kernels": ("compute_80", ARCHITECTURES),
    "ntt_forward": ("compute_80", ARCHITECTURES),
    "ntt_forward_sum": ("compute_80", ARCHITECTURES),
    "ntt_inverse": ("compute_80", ARCHITECTURES),
    "key_switch": ("compute_80", ARCHITECTURES),
    "cluster": ("compute_90", ARCHITECTURES[2:]),
}


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

    def compile(self, path, options):
        program, source = ctypes.c_void_p(), path.read_text().encode()
        self.call("nvrtcCreateProgram", ctypes.byref(program), source, path.name.encode(), 0, None, None)
        options = [option.encode() for option in options]
        try:
            self.call("nvrtcCompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*options))
        except RuntimeError:
            sys.exit(self.text("ProgramLog", program))
        return self.text("PTX", program)


def portable(ptx):
    """PTX without what differs between machines, for every driver from CUDA 12.0 on: it has nothing that is newer, which
    the assembler checks. A hint about bytes that are used is left out."""
    lines = [line.rstrip() for line in ptx.splitlines() if not line.startswith("//")]
    lines = [re.sub(r"^\.version \d+\.\d+$", ".version 8.0", line) for line in lines if "used_bytes_mask" not in line]
    return "\n".join(lines).strip() + "\n"


def resources(ptx, architecture):
    """Of each kernel by ptxas, the registers and the bytes of spills and of a stack; and all of it disassembled, where it
    is to be counted."""
    ptxas = package("cuda_nvcc") / "bin" / "ptxas"
    nvdisasm = package("cu13") / "bin" / "nvdisasm"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "kernels.ptx"
        path.write_text(ptx)
        cubin = path.with_suffix(".cubin")
        command = [ptxas, "-v", "-lineinfo", f"-arch={architecture}", path, "-o", cubin]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        text = ""
        if architecture == COUNTED:
            text = subprocess.run([nvdisasm, "-gp", "-c", cubin], capture_output=True, text=True, check=True).stdout
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
    return found, text


def pipe(opcode):
    """The place in PIPES of an assembler's instruction, by which lanes compute it; 0: what is issued and no more."""
    base = opcode.split(".")[0]
    if base.startswith("U") or base in ("R2UR", "S2UR", "S2R", "CS2R", "BRA", "EXIT", "BAR", "BSSY", "BSYNC", "UCGABAR"):
        return 0
    if base.startswith(("LD", "ST", "ATOM", "RED")):
        return 4
    if base in ("DADD", "DMUL", "DFMA", "DSETP", "I2F", "F2I"):
        return 3
    return 1 if base.startswith(("IMAD", "FFMA", "FMUL", "FADD")) else 2


def stretches(ptx):
    """Of each entry, for each stretch the numbers of its lines."""
    found, entry, begins = {}, None, True
    for number, line in enumerate(ptx.splitlines(), 1):
        line = line.strip()
        begun = re.match(r"\.visible \.entry (\w+)\(", line)
        if begun:
            entry, begins = found.setdefault(begun.group(1), []), True
        elif line.endswith(":"):
            begins = True
        elif line.endswith(";") and not line.startswith("."):
            if begins:
                entry.append([])
            entry[-1].append(number)
            begins = re.match(r"(@!?%\w+\s+)?(bra|ret)\b", line) is not None
    return found


def assembled(ptx, text):
    """Of each entry, for each stretch the instructions by PIPES. Where the assembler unrolls a loop, the instructions of
    one turn: those of all copies over the copies that there are of its accesses to memory."""
    lines, line, passed = {}, None, False
    for row in text.splitlines():
        at = re.search(r'"\.nv_debug_ptx_txt", line (\d+)', row)
        line = int(at.group(1)) if at else line
        # An entry ends with a branch to itself, and nothing that is run.
        code = re.match(r"\s+/\*[0-9a-f]+\*/\s+(@!?U?P\w+ )?([A-Z][A-Z0-9_.]*)", row)
        if ".text." in row:
            line = None
        if code and line is not None and code.group(2) != "NOP":
            lines.setdefault(line, []).append(pipe(code.group(2)))
    found = {}
    for entry, parts in stretches(ptx).items():
        found[entry] = []
        for part in parts:
            of_memory = [count for n in part if (count := lines.get(n, []).count(4)) > 0]
            copies = sorted(of_memory)[len(of_memory) // 2] if of_memory else 1
            all_of = [which for n in part for which in lines.get(n, [])]
            counts = [len(all_of)] + [all_of.count(which) for which in range(1, len(PIPES))]
            found[entry].append([round(count / copies) for count in counts])
    return found


def compiled(nvrtc, unit):
    """The PTX of a unit, and what its kernels take on each architecture."""
    virtual, architectures = UNITS[unit]
    options = [f"--gpu-architecture={virtual}", "--std=c++17", f"-I{KERNELS}", "--fmad=true", "-default-device"]
    ptx = portable(nvrtc.compile(KERNELS / f"{unit}.cu", options))
    made = {architecture: resources(ptx, architecture) for architecture in architectures}
    return ptx, {architecture: used for architecture, (used, _) in made.items()}, assembled(ptx, made[COUNTED][1])


def print_registers(units):
    """A line for each kernel; ends the program where one spills."""
    print("kernel".ljust(32) + "".join(f"{a:>8}" for a in ARCHITECTURES) + "   (registers of a thread)")
    spilled, rows = [], ["kernel," + ",".join(ARCHITECTURES)]
    for _, tables, _ in units.values():
        for name in next(iter(tables.values())):
            used = [tables[a][name][0] if a in tables else "-" for a in ARCHITECTURES]
            print(name.ljust(32) + "".join(f"{registers:>8}" for registers in used))
            rows.append(f"{name}," + ",".join(map(str, used)))
            spilled += [(name, a) for a in tables if tables[a][name][1] != 0]
    if spilled:
        sys.exit(f"kernels that spill registers or use a stack: {spilled}")
    size = sum(len(ptx) for ptx, _, _ in units.values())
    print(f"{len(rows) - 1} kernels on {len(ARCHITECTURES)} architectures, no spills; {size} bytes of PTX")
    return "\n".join([rows[0]] + sorted(rows[1:])) + "\n"


def main():
    folder, check = pathlib.Path(sys.argv[1]), "--check" in sys.argv[2:]
    nvrtc = Nvrtc()
    units = {unit: compiled(nvrtc, unit) for unit in UNITS}
    files = {f"{unit}.ptx": ptx for unit, (ptx, _, _) in units.items()}
    files["registers.csv"] = print_registers(units)
    rows = ["kernel,stretch," + ",".join(PIPES)]
    for _, _, entries in units.values():
        for entry, parts in entries.items():
            rows += [f"{entry},{i}," + ",".join(map(str, part)) for i, part in enumerate(parts)]
    files["assembled.csv"] = "\n".join(rows) + "\n"
    folder.mkdir(exist_ok=True)
    differs = []
    for name, text in files.items():
        path = folder / name
        if not check:
            path.write_text(text)
            print(f"written to {path}")
        elif not path.is_file() or path.read_text() != text:
            differs.append(str(path))
    if differs:
        sys.exit(f"not what the sources give: {', '.join(differs)}; run `cargo xtask kernels`")
    if check:
        print("the PTX is unchanged")


main()
