//! The part of protoc's command line that `prost-build` uses: files in, a descriptor set out.
//!
//! `protoc [--include_imports] [--include_source_info] [-I DIR]... -o OUT FILE...`; other flags
//! (`--experimental_...`) ask for what `protox` does anyway and are ignored.

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut includes: Vec<PathBuf> = Vec::new();
    let mut files: Vec<PathBuf> = Vec::new();
    let mut out: Option<PathBuf> = None;
    let (mut imports, mut source_info) = (false, false);

    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-I" => includes.push(args.next().ok_or("-I needs a directory")?.into()),
            "-o" => out = Some(args.next().ok_or("-o needs a file")?.into()),
            "--include_imports" => imports = true,
            "--include_source_info" => source_info = true,
            flag if flag.starts_with('-') => {}
            file => files.push(file.into()),
        }
    }

    let mut compiler = protox::Compiler::new(includes)?;
    compiler.include_imports(imports).include_source_info(source_info);
    compiler.open_files(files)?;
    std::fs::write(out.ok_or("-o is missing")?, compiler.encode_file_descriptor_set())?;
    Ok(())
}
