//! PTX entries as C++ functions over the emulator: one statement an instruction; emulator/ptx.h has what each computes.
//!
//! An instruction, type or modifier that is not in [`Body::statement`] is refused by name, never left out. So is what PTX
//! allows and leaves open: a product of doubles without a rounding, which an assembler may fuse with a sum.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::ptx::{Entry, Instruction, Kind, Line, Operand, Refused, Type, Unit};

/// What an instruction counts as; the order of the fields of `Counts` in emulator/emulator.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Multiply64,
    Multiply32,
    Divide,
    Integer64,
    Integer32,
    Double,
    Compare,
    Move,
    Global,
    Shared,
    Generic,
    Parameter,
    Branch,
    Barrier,
}

/// How many classes there are.
const CLASSES: usize = Class::Barrier as usize + 1;

/// An assembler's instructions that are counted: all, and those of each pipe.
const PIPES: usize = 5;

/// What an assembler made of the stretches of each entry.
pub(crate) type Assembled = BTreeMap<String, Vec<[u32; PIPES]>>;

/// Reads `ptx/assembled.csv`; none where a line is of another form.
pub(crate) fn assembled(text: &str) -> Option<Assembled> {
    let mut made = Assembled::new();
    for line in text.lines().skip(1) {
        let mut words = line.split(',');
        let (entry, stretch) = (words.next()?, words.next()?);
        let counts: Vec<u32> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let stretches = made.entry(entry.to_owned()).or_default();
        if stretch.parse() != Ok(stretches.len()) {
            return None;
        }
        stretches.push(counts.try_into().ok()?);
    }
    Some(made)
}

/// The entries of a unit as C++, entered into the emulator's table as a set of kernels.
///
/// # Errors
/// On whatever cannot be translated.
pub(crate) fn translate(unit: &Unit, set: usize, assembled: &Assembled) -> Result<String, Refused> {
    let mut text = "// Made from PTX by build/cpp.rs.\n#include \"ptx.h\"\nnamespace {\n".to_owned();
    for entry in &unit.entries {
        text.push_str(&function(unit, entry, set, assembled)?);
    }
    text.push_str("}\n");
    Ok(text)
}

/// An entry as a function, its tables and its line in the emulator's table.
fn function(unit: &Unit, entry: &Entry, set: usize, assembled: &Assembled) -> Result<String, Refused> {
    let mut body = Body::new(unit, entry);
    for (at, line) in entry.body.iter().enumerate() {
        match line {
            Line::Label(label) => body.label(label),
            Line::Instruction(instruction) => {
                let refused = |reason| Refused { entry: entry.name.clone(), line: instruction.text.clone(), reason };
                if at > 0 && body.awaits && instruction.opcode != "barrier.cluster.wait.acquire" {
                    return Err(refused("work between arriving at the cluster's barrier and waiting at it".to_owned()));
                }
                body.instruction(instruction).map_err(refused)?;
            }
        }
    }
    let name = &entry.name;
    let unfinished = |reason: &str| Refused { entry: name.clone(), line: String::new(), reason: reason.to_owned() };
    if let Some(label) = body.targets.difference(&body.labels).next() {
        return Err(unfinished(&format!("there is no label {label}")));
    }
    if entry.parameter.1 == 0 || entry.threads == 0 {
        return Err(unfinished("no parameter, or no .maxntid"));
    }
    let mut text = format!("void {name}(const void* arguments) {{\n");
    let _ = writeln!(text, "    const ptx::Thread me({}, arguments, {});", body.stretches.len(), entry.parameter.1);
    for register in &body.used {
        let _ = writeln!(text, "    {} {register} = 0;", c_type(body.class_of(register).map_err(|e| unfinished(&e))?));
    }
    let _ = writeln!(text, "    [[maybe_unused]] bool carry = false;\n{}}}", body.text);
    let _ = writeln!(text, "const emulator::Stretch stretches_of_{name}[] = {{");
    let unknown = || body.stretches.iter().map(|_| [0; PIPES]).collect::<Vec<_>>();
    let assembled = assembled.get(name).cloned().unwrap_or_else(unknown);
    if assembled.len() != body.stretches.len() {
        return Err(unfinished("ptx/assembled.csv has another number of stretches: run `cargo xtask kernels`"));
    }
    body.stretches.iter().zip(assembled).for_each(|(counts, assembled)| {
        let list = |counts: &[u32]| counts.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "    {{{{{}}}, {{{}}}}},", list(counts), list(&assembled));
    });
    let _ = writeln!(
        text,
        "}};\nconst emulator::Site sites_of_{name}[] = {{{{0, false, false, false}}, {}}};",
        body.sites.join(", ")
    );
    let _ = writeln!(
        text,
        "const emulator::Listing listing_of_{name} = {{stretches_of_{name}, {}, sites_of_{name}}};\n\
         const bool entered_{name} = emulator::enter({{\"{name}\", {name}, nullptr, 0, {}, {}, {}, {set}, \
         &listing_of_{name}}});",
        body.stretches.len(),
        entry.parameter.1,
        entry.threads,
        !body.waits,
    );
    Ok(text)
}

/// The C++ type of what a type says.
fn c_type(ty: Type) -> &'static str {
    match (ty.kind, ty.bits) {
        (Kind::Predicate, _) => "bool",
        (Kind::Float, _) => "double",
        (Kind::Signed, 16) => "i16",
        (Kind::Signed, 32) => "i32",
        (Kind::Signed, _) => "i64",
        (_, 16) => "u16",
        (_, 32) => "u32",
        _ => "u64",
    }
}

/// What counts a computation with words of a type, doubles or predicates.
const fn integer(ty: Type) -> Class {
    match (ty.kind, ty.bits) {
        (Kind::Float, _) => Class::Double,
        (Kind::Predicate, _) => Class::Compare,
        (_, 64) => Class::Integer64,
        _ => Class::Integer32,
    }
}

/// What counts a product of words of a type.
const fn product(ty: Type) -> Class {
    if ty.bits == 64 { Class::Multiply64 } else { Class::Multiply32 }
}

fn unsigned(bits: u32) -> Type {
    Type { kind: Kind::Unsigned, bits }
}

/// A function in the making.
struct Body<'a> {
    unit: &'a Unit,
    entry: &'a Entry,
    text: String,
    /// Registers that are read or written.
    used: BTreeSet<String>,
    labels: BTreeSet<String>,
    targets: BTreeSet<String>,
    /// Instructions by class, of each stretch that is run as one.
    stretches: Vec<[u32; CLASSES]>,
    /// Whether the next instruction begins a stretch.
    begins: bool,
    /// Every access to memory but to the parameter, as C++.
    sites: Vec<String>,
    /// Whether there is a barrier.
    waits: bool,
    /// Whether threads have arrived at the cluster's barrier and must wait at it next.
    awaits: bool,
}

type Done<T> = Result<T, String>;

impl<'a> Body<'a> {
    const fn new(unit: &'a Unit, entry: &'a Entry) -> Self {
        Self {
            unit,
            entry,
            text: String::new(),
            used: BTreeSet::new(),
            labels: BTreeSet::new(),
            targets: BTreeSet::new(),
            stretches: Vec::new(),
            begins: true,
            sites: Vec::new(),
            waits: false,
            awaits: false,
        }
    }

    fn label(&mut self, label: &str) {
        let _ = writeln!(self.text, "{label}:;");
        self.labels.insert(label.to_owned());
        self.begins = true;
    }

    fn instruction(&mut self, instruction: &Instruction) -> Done<()> {
        if self.begins {
            let _ = writeln!(self.text, "    me.counts[{}]++;", self.stretches.len());
            self.stretches.push([0; CLASSES]);
            self.begins = false;
        }
        self.awaits = false;
        let (statement, class) = self.statement(instruction)?;
        let guard = match &instruction.guard {
            Some((register, negated)) => {
                self.class_of(register)
                    .and_then(|ty| expect(ty.kind == Kind::Predicate, "a guard that is no predicate"))?;
                self.used.insert(register.clone());
                format!("if ({}{register}) ", if *negated { "!" } else { "" })
            }
            None => String::new(),
        };
        let _ = writeln!(self.text, "    {guard}{statement}");
        let stretch = self.stretches.last_mut().expect("invariant: an instruction is in a stretch");
        stretch[class as usize] += 1;
        self.begins = class == Class::Branch;
        Ok(())
    }

    /// The statement of an instruction, and what it counts as.
    fn statement(&mut self, instruction: &Instruction) -> Done<(String, Class)> {
        let parts: Vec<&str> = instruction.opcode.split('.').collect();
        let operands = instruction.operands.as_slice();
        match parts.as_slice() {
            ["ld", modifiers @ .., ty] => self.load(modifiers, known(ty)?, operands),
            ["st", modifiers @ .., ty] => self.store(modifiers, known(ty)?, operands),
            ["bra"] | ["bra", "uni"] => self.branch(operands),
            ["ret"] => Ok(("return;".to_owned(), Class::Branch)),
            ["bar", "sync"] if operands == [Operand::Integer(0)] => self.barrier("emulator::barrier(false);"),
            ["barrier", "cluster", "arrive", "release"] if instruction.guard.is_none() => {
                self.awaits = true;
                self.barrier(";")
            }
            ["barrier", "cluster", "wait", "acquire"] if instruction.guard.is_none() => {
                self.barrier("emulator::barrier(true);")
            }
            ["mov", ty] => Ok((self.simple("", known(ty)?, operands, 1)?, Class::Move)),
            ["cvta", "to", "global", "u64"] => Ok((self.simple("", unsigned(64), operands, 1)?, Class::Move)),
            ["cvta", "shared", "u64"] => {
                Ok((self.simple("me.generic_of_shared", unsigned(64), operands, 1)?, Class::Move))
            }
            ["mapa", "u64"] => {
                let types = [unsigned(64), unsigned(64), unsigned(32)];
                Ok((self.call("me.shared_of", &types, operands)?, Class::Move))
            }
            ["cvt", rounding @ .., to, from] => self.convert(rounding, [known(to)?, known(from)?], operands),
            ["setp", relation, ty] => self.compare(relation, known(ty)?, operands),
            ["selp", ty] => {
                let ty = known(ty)?;
                expect(ty.kind != Kind::Predicate, "a selection of predicates")?;
                let types = [ty, ty, ty, Type { kind: Kind::Predicate, bits: 1 }];
                Ok((self.call("ptx::selp", &types, operands)?, Class::Compare))
            }
            parts => self.arithmetic(parts, operands),
        }
    }

    /// The same of sums, products and quotients.
    fn arithmetic(&mut self, parts: &[&str], operands: &[Operand]) -> Done<(String, Class)> {
        match parts {
            ["add" | "sub", ty] => {
                let ty = summed(ty)?;
                Ok((self.simple(&format!("ptx::{}", parts[0]), ty, operands, 2)?, integer(ty)))
            }
            ["add" | "sub" | "addc" | "subc", cc @ .., ty] if cc.is_empty() || cc == ["cc"] => {
                self.carried(parts, known(ty)?, operands)
            }
            ["add" | "sub" | "mul" | "fma", rounding @ ("rn" | "rz" | "rm" | "rp"), "f64"] => {
                let count = if parts[0] == "fma" { 3 } else { 2 };
                let function = format!("ptx::{}_{rounding}", parts[0]);
                Ok((self.simple(&function, known("f64")?, operands, count)?, Class::Double))
            }
            ["mul" | "mad", "wide", ty] => {
                let ty = whole(ty, &[16, 32])?;
                let wide = Type { bits: 2 * ty.bits, ..ty };
                let types = [wide, ty, ty, wide];
                let count = if parts[0] == "mad" { 4 } else { 3 };
                Ok((self.call(&format!("ptx::{}_wide", parts[0]), &types[..count], operands)?, product(ty)))
            }
            ["mul" | "mad", half @ ("lo" | "hi"), ty] => {
                let ty = whole(ty, &[16, 32, 64])?;
                let count = if parts[0] == "mad" { 3 } else { 2 };
                Ok((self.simple(&format!("ptx::{}_{half}", parts[0]), ty, operands, count)?, product(ty)))
            }
            ["mad" | "madc", "lo" | "hi", cc @ .., ty] if cc.is_empty() || cc == ["cc"] => {
                self.carried(parts, known(ty)?, operands)
            }
            ["div" | "rem", ty] => {
                Ok((self.simple(&format!("ptx::{}", parts[0]), whole(ty, &[16, 32, 64])?, operands, 2)?, Class::Divide))
            }
            ["min" | "max", ty] => {
                let ty = whole(ty, &[16, 32, 64])?;
                Ok((self.simple(&format!("ptx::{}", parts[0]), ty, operands, 2)?, integer(ty)))
            }
            ["neg", ty] => {
                let ty = summed(ty)?;
                expect(ty.kind != Kind::Unsigned, "an unsigned type")?;
                Ok((self.simple("ptx::neg", ty, operands, 1)?, integer(ty)))
            }
            parts => self.logic(parts, operands),
        }
    }

    /// The same of what is done bit by bit, and of shifts.
    fn logic(&mut self, parts: &[&str], operands: &[Operand]) -> Done<(String, Class)> {
        match parts {
            ["and" | "or" | "xor", ty] => {
                let ty = bits(ty)?;
                Ok((self.simple(&format!("ptx::{}_of", parts[0]), ty, operands, 2)?, integer(ty)))
            }
            ["not", ty] => {
                let ty = bits(ty)?;
                Ok((self.simple("ptx::not_of", ty, operands, 1)?, integer(ty)))
            }
            ["brev", ty @ ("b32" | "b64")] => {
                let ty = known(ty)?;
                Ok((self.simple("ptx::brev", ty, operands, 1)?, integer(ty)))
            }
            ["shl" | "shr", ty] => {
                let ty = known(ty)?;
                let fits = matches!(ty.kind, Kind::Bits) || parts[0] == "shr" && ty.kind != Kind::Predicate;
                expect(fits && ty.kind != Kind::Float, "a type that is not shifted so")?;
                let types = [ty, ty, unsigned(32)];
                Ok((self.call(&format!("ptx::{}", parts[0]), &types, operands)?, integer(ty)))
            }
            ["shf", side @ ("l" | "r"), "wrap", "b32"] => {
                let types = [unsigned(32); 4];
                Ok((self.call(&format!("ptx::shf_{side}"), &types, operands)?, Class::Integer32))
            }
            ["prmt", "b32"] => {
                let types = [unsigned(32); 4];
                Ok((self.call("ptx::prmt", &types, operands)?, Class::Integer32))
            }
            ["bfi", ty @ ("b32" | "b64")] => {
                let ty = known(ty)?;
                let types = [ty, ty, ty, unsigned(32), unsigned(32)];
                Ok((self.call("ptx::bfi", &types, operands)?, integer(ty)))
            }
            _ => Err(format!("the instruction `{}` with {} operands is not known", parts.join("."), operands.len())),
        }
    }

    /// An instruction whose operands are all of the type of its result.
    fn simple(&mut self, function: &str, ty: Type, operands: &[Operand], count: usize) -> Done<String> {
        self.call(function, &[ty; 4][..=count], operands)
    }

    /// The result of a function of operands; the first type is the result's.
    fn call(&mut self, function: &str, types: &[Type], operands: &[Operand]) -> Done<String> {
        expect(operands.len() == types.len(), "another number of operands")?;
        let mut values = Vec::new();
        for (operand, ty) in operands.iter().zip(types).skip(1) {
            values.push(self.value(operand, *ty)?);
        }
        self.assign(&operands[0], types[0], &format!("{function}({})", values.join(", ")), false)
    }

    /// Sums with a carry in, a carry out or both; multiplied before for `mad`.
    fn carried(&mut self, parts: &[&str], ty: Type, operands: &[Operand]) -> Done<(String, Class)> {
        expect([Kind::Unsigned, Kind::Signed].contains(&ty.kind) && ty.bits >= 32, "a type without carries")?;
        // A carry is that of the words, whatever their sign.
        let ty = if parts[1] == "hi" { ty } else { unsigned(ty.bits) };
        let (takes, gives) = (parts[0].ends_with('c'), parts.contains(&"cc"));
        let (first, class) = match parts {
            ["mad" | "madc", half, ..] => {
                expect(operands.len() == 4, "another number of operands")?;
                let [x, y] = [self.value(&operands[1], ty)?, self.value(&operands[2], ty)?];
                (format!("ptx::mul_{half}<{}>({x}, {y})", c_type(ty)), product(ty))
            }
            _ => {
                expect(operands.len() == 3, "another number of operands")?;
                (self.value(&operands[1], ty)?, integer(ty))
            }
        };
        let word = unsigned(ty.bits);
        let last = self.value(&operands[operands.len() - 1], word)?;
        let function = if parts[0].starts_with("sub") { "difference" } else { "sum" };
        let call = format!("ptx::{function}<{}>({first}, {last}, {takes}, {gives}, carry)", c_type(word));
        Ok((self.assign(&operands[0], word, &call, false)?, class))
    }

    fn compare(&mut self, relation: &str, ty: Type, operands: &[Operand]) -> Done<(String, Class)> {
        let ordered = ["eq", "ne", "lt", "le", "gt", "ge"].contains(&relation);
        let unordered = relation.strip_suffix('u').is_some_and(|it| ["eq", "ne", "lt", "le", "gt", "ge"].contains(&it));
        let fits = match ty.kind {
            Kind::Float => ordered || unordered,
            Kind::Bits => relation == "eq" || relation == "ne",
            Kind::Predicate => false,
            _ => ordered,
        };
        expect(fits, "a comparison that is not known")?;
        let types = [Type { kind: Kind::Predicate, bits: 1 }, ty, ty];
        Ok((self.call(&format!("ptx::is_{relation}"), &types, operands)?, Class::Compare))
    }

    fn convert(&mut self, rounding: &[&str], [to, from]: [Type; 2], operands: &[Operand]) -> Done<(String, Class)> {
        let whole = |ty: Type| [Kind::Unsigned, Kind::Signed].contains(&ty.kind);
        let function = match (rounding, to.kind, from.kind) {
            ([], ..) if whole(to) && whole(from) => String::new(),
            (["rn"], Kind::Float, _) if whole(from) => String::new(),
            ([to_integer @ ("rni" | "rzi" | "rmi" | "rpi")], _, Kind::Float) if whole(to) && to.bits >= 32 => {
                format!("ptx::{to_integer}<{}>", c_type(to))
            }
            _ => return Err("a conversion that is not known".to_owned()),
        };
        expect(operands.len() == 2, "another number of operands")?;
        let value = self.value(&operands[1], from)?;
        let class = if to.kind == from.kind || whole(to) && whole(from) { Class::Move } else { Class::Double };
        Ok((self.assign(&operands[0], to, &format!("({})({function}({value}))", c_type(to)), false)?, class))
    }

    fn branch(&mut self, operands: &[Operand]) -> Done<(String, Class)> {
        let [Operand::Name(label)] = operands else { return Err("no label".to_owned()) };
        self.targets.insert(label.clone());
        Ok((format!("goto {label};"), Class::Branch))
    }

    fn barrier(&mut self, statement: &str) -> Done<(String, Class)> {
        self.waits = true;
        Ok((statement.to_owned(), Class::Barrier))
    }

    /// Where an access goes, as a C++ expression, and how many words it moves.
    fn place(&mut self, modifiers: &[&str], ty: Type, address: &Operand, writes: bool) -> Done<(String, usize, Class)> {
        // A load's hint that what it brings in is used once.
        let (space, once, vector) = match modifiers {
            ["global", "cs", rest @ ..] if !writes => ("global", true, rest),
            [space @ ("global" | "shared" | "param"), rest @ ..] => (*space, false, rest),
            rest => ("generic", false, rest),
        };
        let count = match vector {
            [] => 1,
            ["v2"] => 2,
            ["v4"] => 4,
            _ => return Err("a modifier that is not known".to_owned()),
        };
        let bytes = count * ty.bits as usize / 8;
        expect(ty.kind != Kind::Predicate && bytes <= 16, "a type that is not loaded or stored so")?;
        let Operand::Address(base, offset) = address else { return Err("no address".to_owned()) };
        let base = self.value(base, unsigned(64))?;
        let mut place = format!("me.{space}({base} + {}ull, {bytes}", *offset as u64);
        let class = match space {
            "global" => Class::Global,
            "shared" => Class::Shared,
            "param" => Class::Parameter,
            _ => Class::Generic,
        };
        if class != Class::Parameter {
            // Site 0 is none.
            self.sites.push(format!("{{{bytes}, {}, {writes}, {once}}}", class == Class::Shared));
            let _ = write!(place, ", {}", self.sites.len());
        }
        place.push(')');
        Ok((place, count, class))
    }

    fn load(&mut self, modifiers: &[&str], ty: Type, operands: &[Operand]) -> Done<(String, Class)> {
        let [to, address] = operands else { return Err("another number of operands".to_owned()) };
        let (place, count, class) = self.place(modifiers, ty, address, false)?;
        let to = words(to);
        expect(to.len() == count, "another number of registers")?;
        let mut text = format!("{{ const char* from = {place};");
        for (i, register) in to.iter().enumerate() {
            let word = format!("ptx::load<{}>(from, {i})", c_type(ty));
            let _ = write!(text, " {}", self.assign(register, ty, &word, true)?);
        }
        Ok((text + " }", class))
    }

    fn store(&mut self, modifiers: &[&str], ty: Type, operands: &[Operand]) -> Done<(String, Class)> {
        let [address, from] = operands else { return Err("another number of operands".to_owned()) };
        expect(!modifiers.contains(&"param"), "a store to the parameter")?;
        let (place, count, class) = self.place(modifiers, ty, address, true)?;
        let from = words(from);
        expect(from.len() == count, "another number of registers")?;
        let mut text = format!("{{ char* to = {place};");
        for (i, word) in from.iter().enumerate() {
            let _ = write!(text, " ptx::store<{}>(to, {i}, {});", c_type(ty), self.value(word, ty)?);
        }
        Ok((text + " }", class))
    }

    fn class_of(&self, register: &str) -> Done<Type> {
        let begin = register.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = register[begin.len()..].parse::<u32>();
        let declared = self.entry.registers.get(begin).filter(|(_, count)| number.is_ok_and(|number| number < *count));
        declared.map(|(ty, _)| *ty).ok_or_else(|| format!("the register %{register} is not declared"))
    }

    /// An operand as a value of a type.
    fn value(&mut self, operand: &Operand, ty: Type) -> Done<String> {
        match operand {
            Operand::Register(register) => {
                let class = self.class_of(register)?;
                expect(class.bits == ty.bits, "a register of another width")?;
                self.used.insert(register.clone());
                Ok(match (class.kind == Kind::Float, ty.kind == Kind::Float) {
                    (true, false) => format!("({})bits_of({register})", c_type(ty)),
                    (false, true) => format!("double_from({register})"),
                    _ => format!("({}){register}", c_type(ty)),
                })
            }
            Operand::Integer(number) if ty.kind != Kind::Float => {
                let bits = ty.bits.min(64);
                let fits = *number >= -(1 << (bits - 1)) && *number < 1 << bits;
                expect(fits, "a number that its type does not hold")?;
                Ok(format!("({}){}ull", c_type(ty), (*number as u128) & ((1 << bits) - 1)))
            }
            Operand::Double(bits) if ty.kind == Kind::Float => Ok(format!("double_from({bits}ull)")),
            Operand::Place(place) if ty.bits == 32 => {
                let (register, axis) = place.split_once('.').unwrap_or_default();
                let from = match register {
                    "tid" => "thread",
                    "ctaid" => "block",
                    "ntid" => "threads",
                    "nctaid" => "blocks",
                    _ => return Err(format!("the register %{place} is not known")),
                };
                expect(["x", "y", "z"].contains(&axis), "an axis that there is not")?;
                Ok(format!("me.at.{from}.{axis}"))
            }
            // The addresses of shared memory begin with it.
            Operand::Name(name) if ty.bits == 64 && self.unit.shared.as_ref() == Some(name) => Ok("(u64)0".to_owned()),
            Operand::Name(name) if ty.bits == 64 && self.entry.parameter.0 == *name => Ok("me.arguments".to_owned()),
            _ => Err(format!("the operand {operand:?} where a value of {} bits is needed", ty.bits)),
        }
    }

    /// A value of a type to a register; to a wider one only where `widens`, by its sign.
    fn assign(&mut self, operand: &Operand, ty: Type, value: &str, widens: bool) -> Done<String> {
        let Operand::Register(register) = operand else { return Err("a result that is no register".to_owned()) };
        let class = self.class_of(register)?;
        let fits = class.bits == ty.bits || widens && class.bits > ty.bits && class.kind != Kind::Float;
        expect(fits && (class.kind == Kind::Predicate) == (ty.kind == Kind::Predicate), "a register of another width")?;
        self.used.insert(register.clone());
        Ok(match (class.kind == Kind::Float, ty.kind == Kind::Float) {
            (true, false) => format!("{register} = double_from((u64){value});"),
            (false, true) => format!("{register} = bits_of({value});"),
            _ => format!("{register} = {value};"),
        })
    }
}

/// A vector's parts, or the one operand.
fn words(operand: &Operand) -> &[Operand] {
    match operand {
        Operand::Vector(parts) => parts,
        one => std::slice::from_ref(one),
    }
}

fn expect(holds: bool, otherwise: &str) -> Done<()> {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

fn known(ty: &str) -> Done<Type> {
    Type::of(ty).ok_or_else(|| format!("the type `{ty}` is not known"))
}

/// An integer type of one of these widths.
fn whole(ty: &str, widths: &[u32]) -> Done<Type> {
    let fits = |ty: &Type| [Kind::Unsigned, Kind::Signed].contains(&ty.kind) && widths.contains(&ty.bits);
    known(ty).and_then(|ty| if fits(&ty) { Ok(ty) } else { Err("a type that is not computed with so".to_owned()) })
}

/// A type for sums: of integers, or of doubles, of which a sum without a rounding is rounded to nearest.
fn summed(ty: &str) -> Done<Type> {
    if ty == "f64" { known(ty) } else { whole(ty, &[16, 32, 64]) }
}

/// An untyped one, or a predicate.
fn bits(ty: &str) -> Done<Type> {
    let ty = known(ty)?;
    expect([Kind::Bits, Kind::Predicate].contains(&ty.kind), "a type that is not computed with so")?;
    Ok(ty)
}
