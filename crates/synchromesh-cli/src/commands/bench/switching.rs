//! `bench key-switch`: the method, gadget and numbers of digits that the flags ask for together.

use synchromesh::cost::Profile;
use synchromesh_bench::key_switch::{Gadget as Stored, Method as Digits, Request, Second, fastest};

use super::{Gadget, KeySwitch, Method, name, unavailable};
use crate::error::Error;

fn refuse<T>(message: String) -> Result<T, Error> {
    Err(Error::Usage { message })
}

/// `request` with the choices of the flags.
pub(super) fn choose(flags: &KeySwitch, request: Request, profile: Option<&Profile>) -> Result<Request, Error> {
    check(flags)?;
    let stored = match (flags.method, flags.gadget) {
        (Some(Method::LevelAware), _) => Stored::Borrowing,
        (_, Some(Gadget::Coalesced)) => Stored::Coalesced,
        _ => Stored::Idempotent,
    };
    let omega2 = flags.omega2.map(|n| n as usize);
    let request = Request { gadget: stored, ..request };
    match flags.method {
        Some(Method::Linear) => Ok(request.linear(flags.alpha.map(|n| n as usize))?),
        Some(Method::Double) => double(flags, request),
        None if omega2.is_some() => double(flags, request),
        Some(Method::Ghs) => Ok(Request { method: Digits::Ghs, ..request }),
        Some(Method::Bv) => Ok(Request { method: Digits::Bv, ..request }),
        Some(Method::LevelAware | Method::Hybrid) => {
            let method = digits(flags).unwrap_or(Digits::Hybrid { omega: 2 });
            Ok(Request { method, second: omega2.map(Second::new), ..request })
        }
        None | Some(Method::Auto) => match digits(flags) {
            Some(method) => Ok(Request { method, ..request }),
            None => automatic(flags, request, profile),
        },
    }
}

/// The digits that are asked for by their number or their length.
fn digits(flags: &KeySwitch) -> Option<Digits> {
    let omega = flags.omega.map(|n| Digits::Hybrid { omega: n as usize });
    omega.or(flags.digit_primes.map(|n| Digits::Digits { primes: n as usize }))
}

fn double(flags: &KeySwitch, request: Request) -> Result<Request, Error> {
    let omega2 = flags.omega2.map(|n| n as usize);
    match (flags.digit_primes, omega2) {
        (Some(primes), Some(omega2)) => {
            let method = Digits::Digits { primes: primes as usize };
            Ok(Request { method, second: Some(Second::new(omega2)), ..request })
        }
        (Some(primes), None) => refuse(format!("--digit-primes {primes} needs --omega2 with --method double")),
        (None, _) => Ok(request.double(flags.omega.map(|n| n as usize), omega2)?),
    }
}

fn automatic(flags: &KeySwitch, request: Request, profile: Option<&Profile>) -> Result<Request, Error> {
    match fastest(&request, !flags.insecure, profile)? {
        Some(found) => Ok(found),
        None if flags.method.is_none() => Ok(request),
        None => Err(unavailable(
            "--method",
            &format!("auto at log N = {} and log q = {}", flags.log_n, flags.log_q),
            "a smaller --log-q or a larger --log-n: no method has 128 bits of security; or --insecure",
        )),
    }
}

/// Refuses flags that contradict each other.
fn check(flags: &KeySwitch) -> Result<(), Error> {
    if let (Some(omega), Some(primes)) = (flags.omega, flags.digit_primes) {
        return refuse(format!("--omega {omega} and --digit-primes {primes} say the same thing: give one of them"));
    }
    let method = flags.method;
    let asked = method.map_or_else(|| "auto".to_owned(), name);
    let one_answer = matches!(method, Some(Method::Ghs | Method::Bv | Method::Linear));
    match (flags.omega, flags.digit_primes) {
        (Some(1), _) if method == Some(Method::Ghs) => {}
        (_, Some(1)) if matches!(method, Some(Method::Bv | Method::Linear)) => {}
        (Some(omega), _) if one_answer => {
            return refuse(format!("--method {asked} fixes the digits; --omega {omega} is for hybrid and double"));
        }
        (_, Some(primes)) if one_answer => {
            return refuse(format!(
                "--method {asked} fixes the digits; --digit-primes {primes} is for hybrid, double and level-aware"
            ));
        }
        _ => {}
    }
    if let Some(omega2) = flags.omega2
        && !matches!(method, None | Some(Method::Double | Method::LevelAware))
    {
        return refuse(format!("--omega2 {omega2} is for --method double and level-aware, not {asked}"));
    }
    if let Some(alpha) = flags.alpha
        && method != Some(Method::Linear)
    {
        return refuse(format!("--alpha {alpha} is for --method linear, not {asked}"));
    }
    match (method, flags.gadget) {
        (Some(Method::LevelAware), Some(Gadget::Idempotent)) => {
            refuse("--method level-aware borrows P and sums stored digits: its gadget is coalesced".to_owned())
        }
        (Some(Method::Auto), Some(Gadget::Coalesced)) => {
            refuse("--method auto chooses the gadget: give --gadget coalesced with a method".to_owned())
        }
        _ => Ok(()),
    }
}
