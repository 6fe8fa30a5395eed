//! Files that an experiment names: read through the [`Loader`](super::Loader).

use super::keys::Key;
use super::keys::value::{Node, Reader};
use crate::diagnostic::Diagnostic;
use crate::settings::RoutesFile;
use sha2::{Digest, Sha256};

impl Reader<'_> {
    /// Returns the text of `file`, which `what` describes in messages.
    pub(super) fn text_file(&mut self, what: &str, file: &str, node: &Node) -> Option<String> {
        let text = (self.loader)(file).and_then(|content| {
            String::from_utf8(content).map_err(|_| "it is no text in UTF-8".to_owned())
        });
        match text {
            Ok(text) => Some(text),
            Err(why) => self.unreadable(what, file, node, why),
        }
    }

    /// Reads a file of routes: its name, and the SHA-256 of its content. The router parses the
    /// content when it starts.
    pub(super) fn routes_file(&mut self, key: &Key, node: &Node) -> Option<RoutesFile> {
        let file = self.text(key, node)?;
        match (self.loader)(&file) {
            Ok(content) => {
                let digest = Sha256::digest(&content);
                let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                Some(RoutesFile { file, digest })
            }
            Err(why) => self.unreadable("the file of routes", &file, node, why),
        }
    }

    fn unreadable<T>(&mut self, what: &str, file: &str, node: &Node, why: String) -> Option<T> {
        self.fault(
            Diagnostic::new(node.span(), format!("{what} `{file}` can't be read"))
                .label(why)
                .help("its path is relative to the experiment file"),
        )
    }
}
