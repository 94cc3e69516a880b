//! Times a hybrid rotation key switch: `key_switch LOG_N LOG_Q OMEGA [WIDTH]`.

use synchromesh_bench::key_switch::{Op, Request, measure};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<u32> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let [log_n, log_q, omega, ref rest @ ..] = args[..] else { return Err("LOG_N LOG_Q OMEGA [WIDTH]".into()) };
    let request = Request {
        log_n,
        log_q,
        log_p: None,
        omega: omega as usize,
        limbs: None,
        error_multiple: "1".to_owned(),
        op: Op::Rotate,
        input_ntt: true,
        output_ntt: true,
        unfolded: false,
        width: rest.first().copied(),
    };
    let report = measure(&request)?;
    #[expect(clippy::print_stdout, reason = "the result of a command")]
    {
        println!("{report:#?}");
    }
    Ok(())
}
