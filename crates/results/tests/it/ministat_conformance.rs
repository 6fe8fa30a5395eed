//! Text of ministat compared byte for byte with the output of its generations for a collection of
//! inputs.
//!
//! Each case is a folder: `cmd` contains the arguments, one per line, `expected` the output of
//! FreeBSD 14, and `expected.GENERATION` the output of another generation if it differs. Cases
//! about the command line itself (usage errors, standard input, terminals, files that cannot be
//! opened) belong to the binary's tests.

use fwdlab_results::stats::ministat::{
    DataSet, Generation, MinistatError, Options, ReadOptions, read_values, render,
};
use fwdlab_testdata::ministat_cases;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn ministat_generations_agree_with_recorded_output() {
    for collection in ministat_cases() {
        let least = if collection.is_larger() { 1000 } else { 700 };
        compare(collection.path(), least);
    }
}

fn compare(folder: &Path, least: usize) {
    let (mut compared, mut skipped, mut wrong) = (0, Vec::new(), Vec::new());
    let mut cases: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    for case in cases.iter().filter(|case| case.join("cmd").is_file()) {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        for generation in Generation::of_freebsd() {
            let Some(actual) = run(case, generation) else {
                skipped.push(name.clone());
                continue;
            };
            compared += 1;
            let (status, expected) = expectation(case, generation);
            if actual != (status, expected.clone()) {
                wrong.push(format!(
                    "{name} {}: exit {} for {status}\n{}---\n{expected}",
                    generation.name(),
                    actual.0,
                    actual.1
                ));
            }
        }
    }
    skipped.dedup();
    println!(
        "{compared} texts of {} cases compared, {} cases left to the command line: {}",
        cases.len(),
        skipped.len(),
        skipped.join(" ")
    );
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > least, "only {compared} texts were compared");
}

/// Exit status and standard output. `None` for cases that only the binary supports.
fn run(case: &Path, generation: Generation) -> Option<(i32, String)> {
    if case.join("tty").exists() {
        return None;
    }
    let command = fs::read_to_string(case.join("cmd")).unwrap();
    let (options, columns, files) = parse(command.lines(), generation)?;
    if files.is_empty() || files.iter().any(|file| !case.join(file).is_file()) {
        return None;
    }
    let text = || -> Result<String, MinistatError> {
        let sets = files
            .iter()
            .map(|file| {
                let bytes = fs::read(case.join(file)).unwrap();
                Ok(DataSet { name: file.to_string(), values: read_values(&bytes, &columns)? })
            })
            .collect::<Result<Vec<_>, MinistatError>>()?;
        render(&sets, &options)
    };
    // Every error of these two leaves standard output empty and exits with 2.
    Some(text().map_or_else(|_| (2, String::new()), |text| (0, text)))
}

/// Parses plain command lines. `None` for all others.
fn parse<'a>(
    mut arguments: impl Iterator<Item = &'a str>,
    generation: Generation,
) -> Option<(Options, ReadOptions, Vec<&'a str>)> {
    let mut options = Options { generation, ..Options::default() };
    let mut columns = ReadOptions { generation, ..ReadOptions::default() };
    let mut files = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument {
            "--" => {}
            "-" => return None,
            _ if !argument.starts_with('-') => files.push(argument),
            "-c" | "-w" | "-C" | "-d" => {
                let value = arguments.next()?;
                match argument {
                    "-c" => {
                        options.confidence = value.parse().ok()?;
                        [80.0, 90.0, 95.0, 98.0, 99.0, 99.5]
                            .contains(&options.confidence)
                            .then_some(())?;
                    }
                    "-w" => options.width = value.parse().ok().filter(|&width| width >= 2)?,
                    "-C" => columns.column = value.trim().parse().ok().filter(|&c| c > 0)?,
                    _ if value.is_empty() => return None,
                    _ => columns.delimiters = value.as_bytes().to_vec(),
                }
            }
            flags if files.is_empty() => {
                for flag in flags[1..].chars() {
                    match flag {
                        'A' => options.no_plot = true,
                        'n' => (options.no_plot, options.no_tests) = (true, true),
                        'q' if generation >= Generation::Fbsd14 => options.quiet = true,
                        's' => options.separate_bars = true,
                        _ => return None,
                    }
                }
            }
            // To the original, options after the first file are file names.
            _ => return None,
        }
    }
    Some((options, columns, files))
}

/// Exit status and standard output of the original.
fn expectation(case: &Path, generation: Generation) -> (i32, String) {
    let specific = format!("expected.{}", generation.name());
    let name = if case.join(&specific).is_file() { specific } else { "expected".to_owned() };
    let status = fs::read_to_string(case.join(format!("{name}.exit"))).unwrap();
    let text = fs::read_to_string(case.join(name)).unwrap();
    (status.trim().parse().unwrap(), text)
}
