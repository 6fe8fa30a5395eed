//! Compares the program's output with files below `tests/golden`. `UPDATE=1` rewrites them, and
//! `KEEP_PNG=DIR` keeps pictures for inspection.

#![allow(dead_code, reason = "each test binary uses a part")]

use resvg::{tiny_skia, usvg};
use std::path::Path;

/// Compares with `tests/golden/<name>`.
#[track_caller]
pub(crate) fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; UPDATE=1 writes it", path.display()));
    for (number, (actual, golden_line)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(actual, golden_line, "{name}, line {}; UPDATE=1 accepts it", number + 1);
    }
    assert!(text == expected, "{name} has other lines or ends; UPDATE=1 accepts it");
}

/// A picture that is not blank, compared with `tests/golden/<name>.svg`.
#[track_caller]
pub(crate) fn picture(name: &str, svg: &str) {
    let mut options = usvg::Options { font_family: "DejaVu Sans".into(), ..Default::default() };
    let font = include_bytes!("../../../../document/assets/DejaVuSans-Latin.ttf");
    options.fontdb_mut().load_font_data(font.to_vec());
    options.fontdb_mut().set_sans_serif_family("DejaVu Sans");
    let tree = usvg::Tree::from_str(svg, &options).unwrap();
    let size = tree.size().to_int_size();
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height()).unwrap();
    resvg::render(&tree, tiny_skia::Transform::identity(), &mut pixels.as_mut());
    let png = pixels.encode_png().unwrap();
    if let Some(folder) = std::env::var_os("KEEP_PNG") {
        let file = Path::new(name).file_name().unwrap();
        std::fs::write(Path::new(&folder).join(file).with_extension("png"), &png).unwrap();
    }
    assert!(png.len() > 4000, "{name} is blank: {} bytes", png.len());
    golden(&format!("{name}.svg"), svg);
}
