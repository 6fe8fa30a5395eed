use fwdlab_codediff::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t = std::time::Instant::now();
    let old = Build::new("old", &std::fs::read(&a[1]).unwrap()).unwrap();
    println!("loaded {:?}", t.elapsed());
    let new = Build::new("new", &std::fs::read(&a[2]).unwrap()).unwrap();
    let names = std::fs::read_to_string(&a[3]).unwrap();
    let t = std::time::Instant::now();
    let c = compare(&old, &new, names.lines());
    println!(
        "equal {} moved {} unknown {} changed {} in {:?}",
        c.equal.len(),
        c.moved,
        c.unknown.len(),
        c.changed.len(),
        t.elapsed()
    );
    for x in c.changed.iter().take(60) {
        println!("{}: {}", x.function, x.reason);
    }
    println!("unknown {:?}", &c.unknown[..c.unknown.len().min(20)]);
}
