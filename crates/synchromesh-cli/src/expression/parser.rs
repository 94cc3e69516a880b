//! Text to syntax tree. Grammar, lowest precedence first:
//!
//! ```text
//! sum     = product (("+" | "-") product)*
//! product = sign ("*" sign)*
//! sign    = ("-" | "+") sign | power
//! power   = atom ("^" integer)?
//! atom    = number | name | name "(" sum ("," sum)* ("," signed)* ")" | "(" sum ")"
//! ```
//!
//! A function that is approximated has, after its operands, the ends of its interval, its tolerance and, if it jumps, its
//! gap: none of them, the ends alone, or in this order as many as are wanted. `clip` has its range before them.
//! A function of integers has the ends of the range of its operands (`equal`, `less`), or the least argument and the value
//! of each from that on (`lookup`).

use super::{ExpressionError, MAX_EXPONENT, MAX_NESTING, MAX_TEXT, Problem};
use crate::number::Number;
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use std::ops::Range;
use synchromesh::circuits::functions::{Function, FunctionName, Table};

/// The interval of a function for which none is given.
const INTERVAL: (f64, f64) = (-1.0, 1.0);

/// The tolerance of a function for which none is given, relative to the largest of 1 and its interval's ends.
const TOLERANCE: f64 = 1.0 / 1024.0;

/// A node of the syntax tree with the text it came from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Syntax {
    pub(super) kind: SyntaxKind,
    pub(super) span: Range<usize>,
}

/// What a node is. Sums and products hold all their terms, so depth is bounded by nesting alone.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SyntaxKind {
    Constant(Number),
    Name(String),
    /// Terms, each with whether it is subtracted.
    Sum(Vec<(bool, Syntax)>),
    Product(Vec<Syntax>),
    Negative(Box<Syntax>),
    Power(Box<Syntax>, u32),
    Rotate(Box<Syntax>, i64),
    Conjugate(Box<Syntax>),
    Refresh(Box<Syntax>),
    /// An approximated function of one or two operands.
    Apply(Vec<Syntax>, Function),
    /// A function of integers of one operand, or of the difference of two.
    Table(Vec<Syntax>, Table),
}

/// The syntax tree of `text`.
pub(super) fn parse(text: &str) -> Result<Syntax, ExpressionError> {
    if text.len() > MAX_TEXT {
        let problem = Problem::TooLarge { what: "bytes", limit: MAX_TEXT };
        return Err(ExpressionError::new(problem, MAX_TEXT..text.len()));
    }
    let mut parser = Parser { text, tokens: tokens(text)?, next: 0, nesting: 0 };
    let tree = parser.sum()?;
    match parser.peek() {
        Token::End => Ok(tree),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    Number,
    Name,
    Symbol(char),
    End,
}

/// The tokens of `text` with their spans, [`Token::End`] last.
fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(first) = text[start..].chars().next() {
        let rest = &text[start..];
        let (token, length) = match first {
            c if c.is_whitespace() => {
                start += c.len_utf8();
                continue;
            }
            '0'..='9' | '.' => (Token::Number, number_length(rest)),
            c if c.is_ascii_alphabetic() || c == '_' => {
                let tail = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
                (Token::Name, rest.len() - tail.len())
            }
            '+' | '-' | '*' | '/' | '^' | '(' | ')' | ',' => (Token::Symbol(first), 1),
            c => return Err(ExpressionError::new(Problem::Character(c), start..start + c.len_utf8())),
        };
        tokens.push((token, start..start + length));
        start += length;
    }
    tokens.push((Token::End, text.len()..text.len()));
    Ok(tokens)
}

/// How many bytes at the head of `text` are digits, points, letters, and the sign of an exponent.
fn number_length(text: &str) -> usize {
    let mut previous = ' ';
    text.find(|c: char| {
        let sign = matches!(c, '+' | '-') && matches!(previous, 'e' | 'E');
        previous = c;
        !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || sign)
    })
    .unwrap_or(text.len())
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, Range<usize>)>,
    next: usize,
    nesting: usize,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<Syntax, ExpressionError> {
        let start = self.enter()?;
        let mut terms = vec![(false, self.product()?)];
        while let Token::Symbol(sign @ ('+' | '-')) = self.peek() {
            self.next += 1;
            terms.push((sign == '-', self.product()?));
        }
        self.nesting -= 1;
        Ok(if terms.len() == 1 { terms.remove(0).1 } else { self.node(SyntaxKind::Sum(terms), start) })
    }

    fn product(&mut self) -> Result<Syntax, ExpressionError> {
        let start = self.span().start;
        let mut factors = vec![self.sign()?];
        loop {
            match self.peek() {
                Token::Symbol('*') => self.next += 1,
                Token::Symbol('/') => return Err(ExpressionError::new(Problem::Division, self.span())),
                _ => break,
            }
            factors.push(self.sign()?);
        }
        Ok(if factors.len() == 1 { factors.remove(0) } else { self.node(SyntaxKind::Product(factors), start) })
    }

    fn sign(&mut self) -> Result<Syntax, ExpressionError> {
        let Token::Symbol(sign @ ('+' | '-')) = self.peek() else { return self.power() };
        let start = self.enter()?;
        self.next += 1;
        let operand = self.sign()?;
        self.nesting -= 1;
        Ok(if sign == '+' { operand } else { self.node(SyntaxKind::Negative(Box::new(operand)), start) })
    }

    fn power(&mut self) -> Result<Syntax, ExpressionError> {
        let start = self.span().start;
        let base = self.atom()?;
        if !self.accept('^') {
            return Ok(base);
        }
        let span = self.span();
        let text = self.text[span.clone()].to_owned();
        let refuse = |text| ExpressionError::new(Problem::Exponent(text), span);
        if self.peek() != Token::Number {
            return Err(refuse(if text.is_empty() { "(missing)".into() } else { text }));
        }
        self.next += 1;
        let exponent = match text.parse() {
            Ok(exponent) if exponent <= MAX_EXPONENT && self.peek() != Token::Symbol('^') => exponent,
            _ => return Err(refuse(text)),
        };
        Ok(self.node(SyntaxKind::Power(Box::new(base), exponent), start))
    }

    fn atom(&mut self) -> Result<Syntax, ExpressionError> {
        let span = self.span();
        match self.peek() {
            Token::Number => {
                let text = &self.text[span.clone()];
                let number = Number::parse(text)
                    .map_err(|_| ExpressionError::new(Problem::Number(text.to_owned()), span.clone()))?;
                self.next += 1;
                Ok(Syntax { kind: SyntaxKind::Constant(number), span })
            }
            Token::Name => {
                self.next += 1;
                let name = self.text[span.clone()].to_owned();
                if self.accept('(') {
                    self.call(&name, span)
                } else {
                    Ok(Syntax { kind: SyntaxKind::Name(name), span })
                }
            }
            Token::Symbol('(') => {
                self.next += 1;
                let inner = self.sum()?;
                self.expect(')', "')'")?;
                Ok(inner)
            }
            _ => Err(self.unexpected("a name, a number or '('")),
        }
    }

    /// The rest of `name(`.
    fn call(&mut self, name: &str, at: Range<usize>) -> Result<Syntax, ExpressionError> {
        let kind = match name {
            "conj" => SyntaxKind::Conjugate(Box::new(self.sum()?)),
            "refresh" => SyntaxKind::Refresh(Box::new(self.sum()?)),
            "rotate" => {
                let operand = Box::new(self.sum()?);
                self.expect(',', "',' and the number of slots")?;
                SyntaxKind::Rotate(operand, self.rotation()?)
            }
            "equal" => self.compared("equal", Table::equal)?,
            "less" => self.compared("less", Table::less)?,
            "lookup" => self.looked_up()?,
            _ => match named(name) {
                Some(function) => self.approximated(function)?,
                None => return Err(ExpressionError::new(Problem::Function(name.to_owned()), at)),
            },
        };
        self.expect(')', "')'")?;
        Ok(self.node(kind, at.start))
    }

    /// The operands of an approximated function, and the numbers that say how it is approximated.
    fn approximated(&mut self, name: FunctionName) -> Result<SyntaxKind, ExpressionError> {
        let mut operands = vec![self.sum()?];
        while operands.len() < name.arguments() {
            self.expect(',', "',' and the second operand")?;
            operands.push(self.sum()?);
        }
        let start = self.span().start;
        let mut numbers = Vec::new();
        while self.accept(',') {
            numbers.push(self.signed()?);
        }
        let takes = match name {
            FunctionName::Clip { .. } => "(x, least, most[, low, high[, tolerance]])",
            _ if name.jumps() => "its operands[, low, high[, tolerance[, gap]]]",
            _ => "its operands[, low, high[, tolerance]]",
        };
        let refuse = |end| ExpressionError::new(Problem::Arguments { function: name.name(), takes }, start..end);
        let (name, numbers) = match (name, &numbers[..]) {
            (FunctionName::Clip { .. }, [low, high, rest @ ..]) => {
                (FunctionName::Clip { low: *low, high: *high }, rest)
            }
            (FunctionName::Clip { .. }, _) => return Err(refuse(self.span().end)),
            (name, numbers) => (name, numbers),
        };
        let usual = |(low, high): (f64, f64)| TOLERANCE * low.abs().max(high.abs()).max(1.0);
        let function = match *numbers {
            [] => Function::new(name, INTERVAL, usual(INTERVAL)),
            [low, high] => Function::new(name, (low, high), usual((low, high))),
            [low, high, tolerance] => Function::new(name, (low, high), tolerance),
            [low, high, tolerance, gap] if name.jumps() => Function::new(name, (low, high), tolerance).with_gap(gap),
            _ => return Err(refuse(self.span().end)),
        };
        Ok(SyntaxKind::Apply(operands, function))
    }

    /// Two operands and the range that both lie in.
    fn compared(
        &mut self,
        function: &'static str,
        table: impl Fn(u32) -> synchromesh::Result<Table>,
    ) -> Result<SyntaxKind, ExpressionError> {
        let first = self.sum()?;
        self.expect(',', "',' and the second operand")?;
        let operands = vec![first, self.sum()?];
        let start = self.span().start;
        let ends = self.integers()?;
        let span = start..self.span().end;
        let refuse = |problem| ExpressionError::new(problem, span.clone());
        let reach = match &ends[..] {
            [low, high] if low < high => (high - low).to_u32(),
            _ => {
                return Err(refuse(Problem::Arguments {
                    function,
                    takes: "two operands and their range: x, y, 0, 15",
                }));
            }
        };
        let table = table(reach.unwrap_or(u32::MAX)).map_err(|error| refuse(Problem::Approximation(error)))?;
        Ok(SyntaxKind::Table(operands, table))
    }

    /// An operand, the least integer that it is, and the values of all integers from that on.
    fn looked_up(&mut self) -> Result<SyntaxKind, ExpressionError> {
        let operands = vec![self.sum()?];
        let start = self.span().start;
        let numbers = self.integers()?;
        let span = start..self.span().end;
        let refuse = |problem| ExpressionError::new(problem, span.clone());
        let takes = "an operand, its least value, and what becomes of each value from that on: x, 0, 5, 7, 9";
        let wrong = || refuse(Problem::Arguments { function: "lookup", takes });
        let [low, values @ ..] = &numbers[..] else { return Err(wrong()) };
        let low = low.to_i64().filter(|_| !values.is_empty()).ok_or_else(wrong)?;
        let table = Table::new(low, values.iter().cloned()).map_err(|error| refuse(Problem::Approximation(error)))?;
        Ok(SyntaxKind::Table(operands, table))
    }

    /// Integers, each after a comma.
    fn integers(&mut self) -> Result<Vec<BigInt>, ExpressionError> {
        let mut integers = Vec::new();
        while self.accept(',') {
            let negative = self.accept('-');
            let span = self.span();
            let value = match (self.peek(), Number::parse(&self.text[span])) {
                (Token::Number, Ok(Number::Int(value))) => value,
                _ => return Err(self.unexpected("a whole number")),
            };
            self.next += 1;
            integers.push(if negative { -value } else { value });
        }
        Ok(integers)
    }

    /// A number with an optional sign.
    fn signed(&mut self) -> Result<f64, ExpressionError> {
        let negative = self.accept('-');
        if self.peek() != Token::Number {
            return Err(self.unexpected("a number"));
        }
        let text = &self.text[self.span()];
        let number = Number::parse(text).ok().and_then(|number| number.to_f64());
        let number = number.ok_or_else(|| ExpressionError::new(Problem::Number(text.to_owned()), self.span()))?;
        self.next += 1;
        Ok(if negative { -number } else { number })
    }

    /// A whole number of slots with an optional sign.
    fn rotation(&mut self) -> Result<i64, ExpressionError> {
        let start = self.span().start;
        let negative = self.accept('-');
        let span = self.span();
        let value = match (self.peek(), Number::parse(&self.text[span.clone()])) {
            (Token::Number, Ok(Number::Int(value))) => value.to_i32().map(i64::from),
            _ => None,
        };
        let value = value.ok_or_else(|| {
            ExpressionError::new(Problem::Rotation(self.text[start..span.end].to_owned()), start..span.end)
        })?;
        self.next += 1;
        Ok(if negative { -value } else { value })
    }

    /// One level deeper; where this node begins.
    fn enter(&mut self) -> Result<usize, ExpressionError> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            let problem = Problem::TooLarge { what: "levels of nesting", limit: MAX_NESTING };
            return Err(ExpressionError::new(problem, self.span()));
        }
        Ok(self.span().start)
    }

    fn node(&self, kind: SyntaxKind, start: usize) -> Syntax {
        let end = self.tokens[self.next.saturating_sub(1)].1.end;
        Syntax { kind, span: start..end }
    }

    fn peek(&self) -> Token {
        self.tokens[self.next].0
    }

    fn span(&self) -> Range<usize> {
        self.tokens[self.next].1.clone()
    }

    fn accept(&mut self, symbol: char) -> bool {
        let found = self.peek() == Token::Symbol(symbol);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: char, expected: &'static str) -> Result<(), ExpressionError> {
        if self.accept(symbol) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn unexpected(&self, expected: &'static str) -> ExpressionError {
        let span = self.span();
        let found = match self.peek() {
            Token::End => "the end".to_owned(),
            _ => format!("'{}'", &self.text[span.clone()]),
        };
        ExpressionError::new(Problem::Unexpected { expected, found }, span)
    }
}

/// The approximated function of this name; a clip's range is not known yet.
fn named(name: &str) -> Option<FunctionName> {
    let all = [
        FunctionName::Exp,
        FunctionName::Log,
        FunctionName::Sigmoid,
        FunctionName::Tanh,
        FunctionName::Gelu,
        FunctionName::Sqrt,
        FunctionName::Rsqrt,
        FunctionName::Inverse,
        FunctionName::Sign,
        FunctionName::Step,
        FunctionName::Abs,
        FunctionName::Relu,
        FunctionName::Clip { low: 0.0, high: 1.0 },
        FunctionName::Compare,
        FunctionName::Max,
        FunctionName::Min,
    ];
    all.into_iter().find(|function| function.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> (Problem, Range<usize>) {
        let error = parse(text).unwrap_err();
        (error.problem, error.span)
    }

    #[test]
    fn a_power_binds_tighter_than_a_sign() {
        let SyntaxKind::Negative(inner) = parse("-x^2").unwrap().kind else { panic!("a sign outside") };
        assert_eq!(inner.span, 1..4);
        assert!(matches!(inner.kind, SyntaxKind::Power(_, 2)));
    }

    #[test]
    fn errors_point_at_the_text_to_blame() {
        assert_eq!(problem("x + $"), (Problem::Character('$'), 4..5));
        assert_eq!(problem("x / 2"), (Problem::Division, 2..3));
        assert_eq!(problem("2 * foo(x)"), (Problem::Function("foo".into()), 4..7));
        assert_eq!(problem("x^2^3"), (Problem::Exponent("2".into()), 2..3));
        assert_eq!(problem("x^-1"), (Problem::Exponent("-".into()), 2..3));
        assert_eq!(problem("x^"), (Problem::Exponent("(missing)".into()), 2..2));
        assert_eq!(problem("x^1.5"), (Problem::Exponent("1.5".into()), 2..5));
        assert_eq!(problem("x^99999"), (Problem::Exponent("99999".into()), 2..7));
        let arguments = |text: &str| matches!(problem(text).0, Problem::Arguments { .. });
        assert!(arguments("exp(x, 1)") && arguments("exp(x, 0, 1, 0.1, 0.1)") && arguments("clip(x, 1)"));
        assert!(arguments("sign(x, -1, 1, 0.1, 0.1, 0.1)") && !arguments("max(x)"));
        assert_eq!(problem("exp(x, y)"), (Problem::Unexpected { expected: "a number", found: "'y'".into() }, 7..8));
        assert_eq!(problem("rotate(x, 1.5)"), (Problem::Rotation("1.5".into()), 10..13));
        assert_eq!(problem("rotate(x, -y)"), (Problem::Rotation("-y".into()), 10..12));
        assert_eq!(problem("rotate(x, 4294967296)"), (Problem::Rotation("4294967296".into()), 10..20));
        assert_eq!(problem("2x"), (Problem::Number("2x".into()), 0..2));
        assert_eq!(problem("1e999*x"), (Problem::Number("1e999".into()), 0..5));
        assert_eq!(problem("é"), (Problem::Character('é'), 0..2));
        for (text, span) in [("", 0..0), ("x +", 3..3), ("(x", 2..2), ("x y", 2..3), ("x)", 1..2), ("rotate(x)", 8..9)]
        {
            let (found, at) = problem(text);
            assert!(matches!(found, Problem::Unexpected { .. }), "{text}");
            assert_eq!(at, span, "{text}");
        }
    }

    #[test]
    fn functions_have_their_operands_interval_tolerance_and_gap() {
        let function = |text: &str| match parse(text).unwrap().kind {
            SyntaxKind::Apply(operands, function) => (operands.len(), function),
            other => panic!("{other:?}"),
        };
        let usual = Function::new(FunctionName::Exp, (-1.0, 1.0), 1.0 / 1024.0);
        assert_eq!(function("exp(2*x)"), (1, usual));
        let wide = Function::new(FunctionName::Sigmoid, (-8.0, 8.0), 8.0 / 1024.0);
        assert_eq!(function("sigmoid(x + y, -8, 8)"), (1, wide));
        assert_eq!(function("sigmoid(x, -8, 8, 1e-4)").1.tolerance, 1e-4);
        let compare = Function::new(FunctionName::Compare, (0.0, 1.0), 0.01).with_gap(0.125);
        assert_eq!(function("compare(x, y, 0, 1, 0.01, 0.125)"), (2, compare));
        let name = FunctionName::Clip { low: -0.5, high: 1.0 };
        assert_eq!(function("clip(x, -0.5, 1, -2, 2)"), (1, Function::new(name, (-2.0, 2.0), 2.0 / 1024.0)));
    }

    #[test]
    fn functions_of_integers_have_their_range_or_their_values() {
        let table = |text: &str| match parse(text).unwrap().kind {
            SyntaxKind::Table(operands, table) => (operands.len(), table),
            other => panic!("{other:?}"),
        };
        assert_eq!(table("equal(x, y + 1, 0, 15)"), (2, Table::equal(15).unwrap()));
        assert_eq!(table("less(x, 2*y, -3, 3)"), (2, Table::less(6).unwrap()));
        assert_eq!(table("lookup(x*y, -2, 5, -7, 9)"), (1, Table::new(-2, [5, -7, 9]).unwrap()));
        for wrong in ["less(x, y)", "less(x, y, 3, 3)", "equal(x, y, 0, 1, 2)", "lookup(x)", "lookup(x, 0)"] {
            assert!(matches!(problem(wrong).0, Problem::Arguments { .. }), "{wrong}");
        }
        assert!(matches!(problem("less(x, y, 0, 1.5)").0, Problem::Unexpected { .. }));
        assert!(matches!(problem("less(x, y, 0, 99999)").0, Problem::Approximation(_)));
        assert!(matches!(problem("less(x, y, 0, 99999999999999999999)").0, Problem::Approximation(_)));
    }

    #[test]
    fn deep_nesting_is_refused_before_the_stack_is() {
        for (open, close) in [("(", ")"), ("-", ""), ("conj(", ")")] {
            let text = |depth: usize| format!("{}x{}", open.repeat(depth), close.repeat(depth));
            assert!(parse(&text(MAX_NESTING - 1)).is_ok());
            let (found, _) = problem(&text(5000));
            assert!(matches!(found, Problem::TooLarge { what: "levels of nesting", .. }));
        }
        assert!(matches!(problem(&"x".repeat(MAX_TEXT + 1)).0, Problem::TooLarge { what: "bytes", .. }));
    }

    #[test]
    fn exponents_of_numbers_are_part_of_the_number() {
        let SyntaxKind::Sum(terms) = parse("1e-3 - 2.5E+2").unwrap().kind else { panic!("a sum") };
        assert_eq!(terms[0].1.kind, SyntaxKind::Constant(Number::Real(1e-3)));
        assert_eq!((terms[1].0, &terms[1].1.kind), (true, &SyntaxKind::Constant(Number::Real(250.0))));
    }
}
