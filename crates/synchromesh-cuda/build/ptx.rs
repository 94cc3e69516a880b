//! PTX as text, read into entries of registers, labels and instructions; whatever is not known here is refused by name.

use std::collections::BTreeMap;
use std::fmt;

/// What of a text cannot be read or translated, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The entry, or nothing outside of one.
    pub(crate) entry: String,
    /// The line.
    pub(crate) line: String,
    /// What of it is not known.
    pub(crate) reason: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "PTX, entry `{}`: `{}`: {}; teach build/cpp.rs and emulator/ptx.h",
            self.entry, self.line, self.reason
        )
    }
}

/// What registers of a class hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Predicate,
    Bits,
    Unsigned,
    Signed,
    Float,
}

/// The type of a register or of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Type {
    pub(crate) kind: Kind,
    /// 1 for a predicate.
    pub(crate) bits: u32,
}

impl Type {
    /// The type of a name such as `u64`.
    pub(crate) fn of(name: &str) -> Option<Self> {
        if name == "pred" {
            return Some(Self { kind: Kind::Predicate, bits: 1 });
        }
        let (kind, bits) = name.split_at_checked(1)?;
        let kind = match kind {
            "b" => Kind::Bits,
            "u" => Kind::Unsigned,
            "s" => Kind::Signed,
            "f" => Kind::Float,
            _ => return None,
        };
        let bits =
            bits.parse().ok().filter(|bits| [16, 32, 64].contains(bits) && (kind != Kind::Float || *bits == 64))?;
        Some(Self { kind, bits })
    }
}

/// An operand of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operand {
    /// By its name, without the percent sign.
    Register(String),
    /// A register of the thread's place: `tid.x`.
    Place(String),
    Integer(i128),
    /// A double by its bits.
    Double(u64),
    /// A variable, the parameter or a label.
    Name(String),
    Vector(Vec<Self>),
    /// What a register or name holds, and bytes beyond it.
    Address(Box<Self>, i64),
}

/// An instruction, perhaps under a predicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instruction {
    /// The register, and whether it must be false.
    pub(crate) guard: Option<(String, bool)>,
    pub(crate) opcode: String,
    pub(crate) operands: Vec<Operand>,
    /// As it was read.
    pub(crate) text: String,
}

/// A line of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    Label(String),
    Instruction(Instruction),
}

/// An entry point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Its one parameter, and that one's bytes.
    pub(crate) parameter: (String, usize),
    /// Most threads of a block.
    pub(crate) threads: u32,
    /// Registers of each class by the beginning of their names.
    pub(crate) registers: BTreeMap<String, (Type, u32)>,
    pub(crate) body: Vec<Line>,
}

/// What a text holds: entries, and whether there is shared memory whose size a launch says, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Unit {
    pub(crate) shared: Option<String>,
    pub(crate) entries: Vec<Entry>,
}

/// Reads a text.
///
/// # Errors
/// On whatever is not known.
pub(crate) fn read(text: &str) -> Result<Unit, Refused> {
    let mut unit = Unit::default();
    let mut open: Option<Entry> = None;
    let mut within = false;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        let entry = open.as_ref().map_or_else(String::new, |entry| entry.name.clone());
        let refused = |reason: &str| Refused { entry, line: line.to_owned(), reason: reason.to_owned() };
        match (&mut open, line) {
            (_, "") => {}
            (Some(_), "{") if !within => within = true,
            (Some(_), "}") if within => {
                unit.entries.extend(open.take());
                within = false;
            }
            (Some(entry), _) if within => {
                statement(entry, line).ok_or_else(|| refused("a statement of another form"))?;
            }
            (Some(entry), _) => heading(entry, line).ok_or_else(|| refused("a directive of another form"))?,
            (None, _) => match outside(&mut unit, line) {
                Some(begun) => open = begun,
                None => return Err(refused("a directive of another form")),
            },
        }
    }
    match open {
        None => Ok(unit),
        Some(entry) => Err(Refused { entry: entry.name, line: String::new(), reason: "it does not end".to_owned() }),
    }
}

/// A directive outside of entries; an entry that begins there.
fn outside(unit: &mut Unit, line: &str) -> Option<Option<Entry>> {
    if let Some(rest) = line.strip_prefix(".visible .entry ") {
        let name = rest.strip_suffix('(')?.to_owned();
        let parameter = (String::new(), 0);
        return Some(Some(Entry { name, parameter, threads: 0, registers: BTreeMap::new(), body: Vec::new() }));
    }
    if let Some(rest) = line.strip_prefix(".extern .shared .align 16 .b8 ") {
        unit.shared = Some(rest.strip_suffix("[];")?.to_owned());
        return Some(None);
    }
    let known = [".version ", ".target sm_"].iter().any(|begin| line.starts_with(begin)) || line == ".address_size 64";
    known.then_some(None)
}

/// A directive between an entry's name and its body.
fn heading(entry: &mut Entry, line: &str) -> Option<()> {
    let parameter = line.strip_prefix(".param .align 8 .b8 ").or_else(|| line.strip_prefix(".param .align 16 .b8 "));
    if let Some(rest) = parameter {
        let (name, bytes) = rest.strip_suffix(']')?.split_once('[')?;
        let first = entry.parameter.0.is_empty();
        entry.parameter = (name.to_owned(), bytes.parse().ok().filter(|_| first)?);
    } else if let Some(threads) = line.strip_prefix(".maxntid ") {
        entry.threads = threads.strip_suffix(", 1, 1")?.parse().ok()?;
    } else if line != ")" {
        line.strip_prefix(".minnctapersm ")?.parse::<u32>().ok()?;
    }
    Some(())
}

/// A line of a body.
fn statement(entry: &mut Entry, line: &str) -> Option<()> {
    if let Some(label) = line.strip_suffix(':') {
        entry.body.push(Line::Label(label.strip_prefix('$')?.to_owned()));
        return Some(());
    }
    let line = line.strip_suffix(';')?;
    if let Some(rest) = line.strip_prefix(".reg ") {
        let (class, names) = rest.trim().strip_prefix('.')?.split_once(char::is_whitespace)?;
        let (name, count) = names.trim().strip_prefix('%')?.strip_suffix('>')?.split_once('<')?;
        entry.registers.insert(name.to_owned(), (Type::of(class)?, count.parse().ok()?));
        return Some(());
    }
    // Hints to the assembler that change no result.
    if let Some(pragma) = line.strip_prefix(".pragma ") {
        return (pragma == "\"nounroll\"" || pragma.starts_with("\"used_bytes_mask ")).then_some(());
    }
    entry.body.push(Line::Instruction(instruction(line)?));
    Some(())
}

/// An instruction without its semicolon.
pub(crate) fn instruction(line: &str) -> Option<Instruction> {
    let text = line.to_owned();
    let (guard, rest) = match line.strip_prefix('@') {
        None => (None, line),
        Some(guarded) => {
            let (guard, rest) = guarded.split_once(char::is_whitespace)?;
            let negated = guard.starts_with('!');
            let name = guard.trim_start_matches('!').strip_prefix('%')?;
            (Some((name.to_owned(), negated)), rest.trim())
        }
    };
    let (opcode, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let operands = apart(operands).into_iter().map(operand).collect::<Option<_>>()?;
    Some(Instruction { guard, opcode: opcode.to_owned(), operands, text })
}

/// A list at its commas, but for those in braces.
fn apart(list: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0u32, 0);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if !list.trim().is_empty() {
        parts.push(&list[from..]);
    }
    parts
}

fn operand(text: &str) -> Option<Operand> {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix('{') {
        let parts = apart(inner.strip_suffix('}')?).into_iter().map(operand).collect::<Option<_>>()?;
        return Some(Operand::Vector(parts));
    }
    if let Some(inner) = text.strip_prefix('[') {
        let inner = inner.strip_suffix(']')?;
        let (base, offset) = inner.split_once('+').unwrap_or((inner, "0"));
        return Some(Operand::Address(Box::new(operand(base)?), offset.parse().ok()?));
    }
    if let Some(name) = text.strip_prefix('%') {
        let made = if name.contains('.') { Operand::Place } else { Operand::Register };
        return Some(made(name.to_owned()));
    }
    if let Some(bits) = text.strip_prefix("0d") {
        return u64::from_str_radix(bits, 16).ok().filter(|_| bits.len() == 16).map(Operand::Double);
    }
    if text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return text.parse().ok().map(Operand::Integer);
    }
    let name = text.strip_prefix('$').unwrap_or(text);
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain.then(|| Operand::Name(name.to_owned()))
}
