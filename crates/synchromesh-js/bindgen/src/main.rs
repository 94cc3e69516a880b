//! `bindgen PROGRAM.wasm OUT`: JavaScript and declarations for browsers in OUT/web, for Node in OUT/node.

use std::path::Path;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (program, out) = args.next().zip(args.next()).context("usage: bindgen PROGRAM.wasm OUT")?;
    for platform in ["web", "node"] {
        let mut bindgen = Bindgen::new();
        bindgen.input_path(&program).out_name("synchromesh").typescript(platform == "web");
        if platform == "web" {
            bindgen.web(true)?.omit_default_module_path(false);
        } else {
            bindgen.nodejs_module(true)?;
        }
        bindgen.generate(Path::new(&out).join(platform))?;
    }
    Ok(())
}
